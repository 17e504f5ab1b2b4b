package sim

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/zones/lock"
)

// downscaler removes replicas of a zone, as guards and scaling do: under the lock, while
// all is healthy, and it gives the lock back once that is seen. The Pods that go may
// terminate for long after that.
type downscaler struct {
	world *world
	zone  string
}

func (d *downscaler) act() {
	w := d.world
	status := &w.group.status

	switch l := status.Lock; {
	case l != nil && l.Purpose == v1alpha1.PurposeDownscale:
		d.goOn()
	case w.storm && l == nil && w.chance(0.05) && w.isWell():
		s := &w.sets[w.rnd.IntN(len(w.sets))]
		if s.deleting || s.replicas < 2 {
			return
		}

		d.zone = s.name
		w.notef("a downscale of %s takes the lock", s.name)
		d.swap(func(status *v1alpha1.RolloutGroupStatus) {
			expires := metav1.NewMicroTime(w.now.Add(lock.LandsWithin))
			status.Lock = &v1alpha1.Lock{
				Holder: lock.DownscaleHolder(s.name), Purpose: v1alpha1.PurposeDownscale, Zone: s.name,
				Since: metav1.NewMicroTime(w.now), Expires: &expires,
			}
			lock.See(status, v1alpha1.Seen{Pods: number(w.podsAt), StatefulSets: number(w.setsAt)})
		})
	}
}

// goOn lowers the replicas, and gives the lock back.
func (d *downscaler) goOn() {
	w := d.world
	s := w.set(d.zone)

	if s != nil && d.zone != "" && w.now.Before(w.group.status.Lock.Expires.Time) && w.isWell() {
		w.count("downscales")
		w.scaleTo(s, s.replicas-1)
		w.oracle.removes(s)
	}

	d.zone = ""
	w.notef("the downscale gives the lock back")
	d.swap(func(status *v1alpha1.RolloutGroupStatus) {
		status.Lock = nil
		if s != nil {
			lock.See(status, v1alpha1.Seen{StatefulSets: number(s.version)})
		}
	})
}

func (d *downscaler) swap(change func(*v1alpha1.RolloutGroupStatus)) {
	status := d.world.group.status.DeepCopy()
	change(status)
	d.world.group.status, d.world.group.version = *status, d.world.next()
}
