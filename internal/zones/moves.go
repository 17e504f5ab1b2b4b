package zones

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
)

const (
	// ActWithin is how long after it was written down a move may be acted upon.
	ActWithin = 20 * time.Second
	// WithdrawAfter is how long it counts, though nobody wants it any more. It is
	// longer by what a clock may be wrong and a request may take.
	WithdrawAfter = 40 * time.Second
	// Held is the partition of a zone at rest: above any number of replicas.
	Held = math.MaxInt32
)

// stands is true if what a move is about has not changed since.
func stands(m *v1alpha1.Move, uid types.UID, version string) bool {
	return m != nil && m.UID == uid && m.ResourceVersion == version
}

// keeps is true if a move of the zone still says something: that a Pod may go at
// any moment, or since when it is on its way.
func (z *zone) keeps(m *v1alpha1.Move) bool {
	if m.Pod == "" {
		return stands(m, z.UID, z.ResourceVersion) && z.lasts(m)
	}
	pod := z.podNamed(m.Pod)
	switch {
	case pod == nil:
		return z.has(m.Pod) || z.o.mayBeActedUpon(m)
	case stands(m, pod.UID, pod.ResourceVersion):
		return z.lasts(m)
	case pod.UID == m.UID:
		return pod.Terminating
	default:
		return !pod.Ready
	}
}

// lasts is true of a move that stands if somebody may still act upon it, or will.
func (z *zone) lasts(m *v1alpha1.Move) bool { return z.wants(m) || z.o.mayBeActedUpon(m) }

// mayBeActedUpon is true until it is known for certain that a move came to
// nothing: it is too late for it, and the API server itself says that what it is
// about has not changed. A cache may just not know yet.
func (o *Observed) mayBeActedUpon(m *v1alpha1.Move) bool { return !o.Live || !o.isTooLate(m) }

func (o *Observed) isTooLate(m *v1alpha1.Move) bool { return !o.Now.Before(m.At.Add(WithdrawAfter)) }

// wants is true if a move that stands is still a good idea.
func (z *zone) wants(m *v1alpha1.Move) bool {
	switch {
	case z.o.Group.Spec.Pause != nil || z.o.isClosed() || z.Settings.Paused || z.Deleting || z.stale() || len(z.o.problems()) > 0:
		return false
	case m.Pod == "":
		return z.rolling() && m.Revision == z.UpdateRevision && (m.Lend || z.opensNatively())
	default:
		return z.podNamed(m.Pod).Revision != z.promises() // wherever it was to get when it was permitted
	}
}

// promises is the revision that a Pod gets that is deleted now.
func (z *zone) promises() string {
	if z.rolling() && !z.open() {
		return z.CurrentRevision
	}
	return z.UpdateRevision
}

func (z *zone) podNamed(name string) *Pod {
	i := slices.IndexFunc(z.Pods, func(p Pod) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &z.Pods[i]
}

// has is true if a Pod of this name is one of the replicas.
func (z *zone) has(name string) bool {
	ordinal, err := strconv.Atoi(strings.TrimPrefix(name, z.Name+"-"))
	return err == nil && ordinal >= z.FirstOrdinal && ordinal < z.FirstOrdinal+z.Replicas
}

// moves are those that are kept, also of zones that are gone.
func (d *decision) moves() []v1alpha1.Move {
	var kept []v1alpha1.Move
	for i := range d.o.Group.Status.Moves {
		m := &d.o.Group.Status.Moves[i]
		z := d.zone(m.Zone)
		if z == nil && d.o.mayStray(m) || z != nil && z.moves[m.Pod] != nil {
			kept = append(kept, *m)
		}
	}
	return kept
}

// mayStray is true of a move of a zone that is gone if somebody may still act upon
// it. What is gone has no namesake with its UID, so there is nothing to wait for:
// nobody opens a set that is not there, or deletes a Pod that has changed since.
func (o *Observed) mayStray(m *v1alpha1.Move) bool {
	stray := slices.ContainsFunc(o.Strays, func(p Pod) bool { return p.Name == m.Pod && stands(m, p.UID, p.ResourceVersion) })
	return o.mayBeActedUpon(m) && (stray || !o.Live)
}

// mayWithdraw is true if there are moves that a live look may show to have come
// to nothing.
func (d *decision) mayWithdraw() bool {
	return slices.ContainsFunc(d.moves(), func(m v1alpha1.Move) bool {
		z := d.zone(m.Zone)
		return z == nil || d.o.isTooLate(&m) && (z.stands(&m) && !z.wants(&m) || m.Pod != "" && !z.has(m.Pod))
	})
}

// stands is true of a move of the zone if what it is about has not changed.
func (z *zone) stands(m *v1alpha1.Move) bool {
	if m.Pod == "" {
		return stands(m, z.UID, z.ResourceVersion)
	}
	pod := z.podNamed(m.Pod)
	return pod != nil && !pod.Terminating && stands(m, pod.UID, pod.ResourceVersion)
}

// isBehind is true if somebody may have decided from a newer view than this one.
func (o *Observed) isBehind() bool {
	seen := o.Group.Status.Seen
	return seen != nil && !o.Live && (isOlder(o.AsOf.Pods, seen.Pods) || isOlder(o.AsOf.StatefulSets, seen.StatefulSets))
}

// isOlder compares resource versions, as far as they are known.
func isOlder(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

func newer(a, b string) string {
	if a == "" || isOlder(a, b) {
		return b
	}
	return a
}

// seen is how new the views are that have been decided upon, this one included.
func (o *Observed) seen() *v1alpha1.Seen {
	seen := v1alpha1.Seen{}
	if o.Group.Status.Seen != nil {
		seen = *o.Group.Status.Seen
	}
	seen.Pods, seen.StatefulSets = newer(o.AsOf.Pods, seen.Pods), newer(o.AsOf.StatefulSets, seen.StatefulSets)
	return &seen
}

func (o *Observed) moveOf(z *zone, pod *Pod) v1alpha1.Move {
	return v1alpha1.Move{
		Zone: z.Name, Pod: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		Revision: z.promises(), At: metav1.NewMicroTime(o.Now),
	}
}

func (o *Observed) opening(z *zone) v1alpha1.Move {
	return v1alpha1.Move{
		Zone: z.Name, Lend: z.lends || !z.opensNatively(), UID: z.UID, ResourceVersion: z.ResourceVersion,
		Revision: z.UpdateRevision, At: metav1.NewMicroTime(o.Now),
	}
}
