package sim

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
)

// bystander wants the same lock, as a guard of evictions does: it takes one Pod
// down while all are up, and gives the lock back once that one is up again.
type bystander struct {
	world *world
	pod   string
}

const eviction = "eviction"

func (b *bystander) act() {
	w := b.world
	lock := w.group.status.Lock

	switch {
	case lock != nil && lock.Holder == eviction:
		b.goOn()
	case w.storm && lock == nil && w.chance(0.05) && w.isWell() && len(w.pods) > 0:
		b.pod = ""
		w.notef("the eviction takes the lock")
		b.swap(&v1alpha1.Lock{
			Holder: eviction, Purpose: v1alpha1.PurposeEviction,
			Since: metav1.NewMicroTime(w.now), Expires: new(metav1.NewMicroTime(w.now.Add(w.seconds(30, 90)))),
		})
	}
}

func (b *bystander) swap(lock *v1alpha1.Lock) {
	status := b.world.group.status.DeepCopy()
	status.Lock = lock
	b.world.group.status, b.world.group.version = *status, b.world.next()
}

// goOn takes a Pod down, or gives the lock back.
func (b *bystander) goOn() {
	w := b.world

	if b.pod == "" && w.storm && w.isWell() && holds(w) && len(w.pods) > 0 {
		p := &w.pods[w.rnd.IntN(len(w.pods))]
		b.pod = p.name
		w.notef("the eviction takes down %s", b.pod)
		w.count("evictions")
		p.terminating, p.ready, p.version = true, false, w.nextPod()
		w.oracle.tookDown(w.set(p.zone), p, true, eviction)

		return
	}

	if !w.oracle.isDisrupted(b.pod) {
		w.notef("the eviction gives the lock back")
		b.swap(nil)
	}
}

// holds is true while an eviction holds the lock, which it does for a while only:
// what was evicted may never be ready again.
func holds(w *world) bool {
	lock := w.group.status.Lock

	return lock != nil && lock.Holder == eviction && w.now.Before(lock.Expires.Time)
}
