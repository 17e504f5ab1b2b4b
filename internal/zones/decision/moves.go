package decision

import (
	"math"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/ring"
)

// Held is the partition of a zone at rest: above any number of replicas.
const Held = math.MaxInt32

// intents are the moves of the status, with zone as the zones of this decision.
func (o *Observed) intents(zone func(name string) *zone) *ring.Intents[v1alpha1.Move] {
	return &ring.Intents[v1alpha1.Move]{
		Now: o.Now, Live: o.Live, Written: o.Group.Status.Moves,
		At: func(m *v1alpha1.Move) *metav1.MicroTime { return &m.At },
		State: func(m *v1alpha1.Move) ring.State {
			if z := zone(m.Zone); z != nil {
				return z.state(m)
			}
			return o.orphaned(m)
		},
		PutOff: func(m *v1alpha1.Move) bool { return o.isPutOff(m.Pod) || o.isPutOff(m.Zone) },
		Same:   func(a, b *v1alpha1.Move) bool { return a.Zone == b.Zone && a.Pod == b.Pod },
	}
}

// state is what the zone shows of a move of its own.
func (z *zone) state(m *v1alpha1.Move) ring.State {
	if m.Pod != "" {
		return z.podState(m)
	}
	switch {
	case !isUnchanged(m, z.UID, z.ResourceVersion):
		return ring.Ended
	case z.wants(m):
		return ring.Wanted
	default:
		return ring.Unwanted
	}
}

func (z *zone) podState(m *v1alpha1.Move) ring.State {
	pod := z.podNamed(m.Pod)
	switch {
	case pod == nil && z.has(m.Pod):
		return ring.Underway
	case pod == nil: // a view that is not behind shows it unless it is gone, with its UID
		return ring.Ended
	case isUnchanged(m, pod.UID, pod.ResourceVersion) && z.wants(m):
		return ring.Wanted
	case isUnchanged(m, pod.UID, pod.ResourceVersion):
		return ring.Unwanted
	case pod.UID == m.UID && pod.Terminating, pod.UID != m.UID && !pod.Ready:
		return ring.Underway
	default:
		return ring.Ended
	}
}

// orphaned is the state of a move whose zone is gone. What is deleted has no namesake
// with its UID, so there is nothing to wait for: no manager opens a set that does not
// exist, or deletes a Pod that has changed since.
func (o *Observed) orphaned(m *v1alpha1.Move) ring.State {
	unchanged := func(p Pod) bool { return p.Name == m.Pod && isUnchanged(m, p.UID, p.ResourceVersion) }
	switch {
	case !o.Live:
		return ring.Unseen
	case slices.ContainsFunc(o.Orphans, unchanged):
		return ring.Unwanted
	default:
		return ring.Ended
	}
}

// isUnchanged is true if what a move is about has not changed since.
func isUnchanged(m *v1alpha1.Move, uid types.UID, version string) bool {
	return m != nil && m.UID == uid && m.ResourceVersion == version
}

// wants is true if a move of something that has not changed is still right.
func (z *zone) wants(m *v1alpha1.Move) bool {
	switch {
	case z.stopped || z.Settings.Paused || z.Deleting || z.stale():
		return false
	case m.Pod == "":
		return z.rolling() && m.Revision == z.UpdateRevision && (m.Lend || z.opensNatively())
	default:
		return z.podNamed(m.Pod).Revision != z.promises() // wherever it was to get when it was permitted
	}
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

// isBehind is true if some manager may have decided from a newer view than this one.
func (o *Observed) isBehind() bool {
	seen := o.Group.Status.Seen
	return seen != nil && !o.Live && (ring.IsBehind(o.AsOf.Pods, seen.Pods) || ring.IsBehind(o.AsOf.StatefulSets, seen.StatefulSets))
}

// seen is how new the views are that have been decided upon, this one included.
func (o *Observed) seen() *v1alpha1.Seen {
	seen := v1alpha1.Seen{}
	if o.Group.Status.Seen != nil {
		seen = *o.Group.Status.Seen
	}
	seen.Pods, seen.StatefulSets = ring.Newer(o.AsOf.Pods, seen.Pods), ring.Newer(o.AsOf.StatefulSets, seen.StatefulSets)
	return &seen
}

func (o *Observed) moveOf(z *zone, pod *Pod, repair bool) v1alpha1.Move {
	return v1alpha1.Move{
		Zone: z.Name, Pod: pod.Name, Repair: repair, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		Revision: z.promises(), At: metav1.NewMicroTime(o.Now),
	}
}

// promises is the revision that a Pod gets that is deleted now.
func (z *zone) promises() string {
	if z.rolling() && !z.open() {
		return z.CurrentRevision
	}
	return z.UpdateRevision
}

// opening is the move that opens a zone. It is lent if each of its Pods that moves is
// to be deleted by Spillway.
func (o *Observed) opening(z *zone, each bool) v1alpha1.Move {
	return v1alpha1.Move{
		Zone: z.Name, Lend: each || !z.opensNatively(), UID: z.UID, ResourceVersion: z.ResourceVersion,
		Revision: z.UpdateRevision, At: metav1.NewMicroTime(o.Now),
	}
}
