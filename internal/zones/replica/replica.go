// Package replica says which replicas of a zone are down. Rollouts, scaling, guards and
// evictions all ask it, so that none of them builds on what another one counts as down.
//
// Invariants:
//
//   - Nothing is up but a Pod that the spec asks for, that is ready, and that stays.
//     What is absent, terminating or not known is down.
//   - A Pod beyond the spec is down for as long as it exists: it is going, or about to. So
//     is one that a downscale was admitted for that does not need the lock.
//   - A count of the status of a StatefulSet makes nothing up.
//
// # Why
//
// The Pods of a downscale terminate for minutes after the lock was given back. A count of the
// spec, or of the status, takes such a zone for whole, and a Pod of another zone is replaced
// beside it. A Pod that fails its readiness for a second would come back, so only one that
// cannot recover is repaired out of its turn: its container crashes in a loop, it has no image
// or config, or it has not been ready for a while.
package replica

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// State is what is known of a replica; anything but Up is down.
type State string

// The states, as what may follow "it is".
const (
	Up          State = "up"
	NotReady    State = "not ready"
	Terminating State = "terminating"
	Absent      State = "not created yet"
	// Surplus is the state of a Pod beyond the spec that does not terminate yet.
	Surplus State = "beyond the replicas of its StatefulSet"
	Unknown State = "unknown"
	// Leaving is the state of a Pod that would be up and is about to be scaled away.
	Leaving State = "about to be scaled away"
)

// Replica is one that the spec asks for, or a Pod beyond these.
type Replica struct {
	Name    string
	Ordinal int
	// Pod is its place among the Pods that were given, -1 for none.
	Pod int
	// Beyond is true of a Pod that the spec does not ask for, or not any more.
	Beyond bool
	State  State
}

// Zone is what matters of a StatefulSet.
type Zone struct {
	Name string
	// First is the first ordinal, Replicas how many the spec asks for.
	First, Replicas int
	// Counted is how many Pods its status counts, where the Pods that are given may not
	// be all; zero otherwise. Those that are missing are unknown.
	Counted int
	// Leaving is how many of the replicas, the last ones, are about to be scaled away.
	Leaving int
	// Unobserved is true while its controller has not observed the spec, so that it may
	// be about to take any Pod.
	Unobserved bool
}

// Pod is what matters of a Pod.
type Pod struct {
	Ordinal            int
	Ready, Terminating bool
}

// Of lists the replicas of a zone by ordinal, and after them the Pods beyond.
func Of[P any](z Zone, pods []P, look func(*P) Pod) []Replica {
	places := make(map[int]int, len(pods))
	for i := range pods {
		places[look(&pods[i]).Ordinal] = i
	}
	replicas := make([]Replica, 0, max(z.Replicas, len(pods)))
	for ordinal := z.First; ordinal < z.First+z.Replicas; ordinal++ {
		r := Replica{Name: z.podName(ordinal), Ordinal: ordinal, Pod: -1, State: Absent}
		if i, exists := places[ordinal]; exists {
			if r.Pod, r.State = i, z.stateOf(look(&pods[i])); r.State == Up && ordinal >= z.First+z.Replicas-z.Leaving {
				r.State = Leaving
			}
		}
		replicas = append(replicas, r)
	}
	for i := range pods {
		if p := look(&pods[i]); p.Ordinal < z.First || p.Ordinal >= z.First+z.Replicas {
			replicas = append(replicas, z.beyond(i, p))
		}
	}
	for i := len(replicas); i < z.Counted; i++ {
		replicas = append(replicas, Replica{Name: fmt.Sprintf("%s unknown %d", z.Name, i), Ordinal: -1, Pod: -1, State: Unknown})
	}
	return replicas
}

// beyond is a Pod that the zone has beyond its replicas.
func (z Zone) beyond(i int, p Pod) Replica {
	r := Replica{Name: z.podName(p.Ordinal), Ordinal: p.Ordinal, Pod: i, Beyond: true, State: Surplus}
	if p.Terminating {
		r.State = Terminating
	}
	return r
}

func (z Zone) podName(ordinal int) string { return z.Name + "-" + strconv.Itoa(ordinal) }

func (z Zone) stateOf(p Pod) State {
	switch {
	case p.Terminating:
		return Terminating
	case !p.Ready:
		return NotReady
	case z.Unobserved:
		return Unknown
	default:
		return Up
	}
}

// OfSet lists the replicas of a StatefulSet, by the Pods that it owns.
func OfSet(set *appsv1.StatefulSet, pods []corev1.Pod) []Replica {
	return Of(ZoneOf(set), pods, func(p *corev1.Pod) Pod { return PodOf(set.Name, p) })
}

// ZoneOf is what matters of a StatefulSet, all of whose Pods are given.
func ZoneOf(set *appsv1.StatefulSet) Zone {
	return Zone{
		Name: set.Name, First: FirstOrdinal(set), Replicas: Count(set),
		Unobserved: set.Generation != set.Status.ObservedGeneration,
	}
}

// PodOf is what matters of a Pod of a StatefulSet.
func PodOf(set string, p *corev1.Pod) Pod {
	_, ready := ReadySince(p)
	return Pod{Ordinal: Ordinal(set, p.Name), Ready: ready, Terminating: p.DeletionTimestamp != nil}
}

// ReadySince is true of a Pod that runs and is ready as a whole, and says since when its
// condition Ready is as it is, zero if that is unknown.
func ReadySince(p *corev1.Pod) (since time.Time, ready bool) {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.LastTransitionTime.Time, c.Status == corev1.ConditionTrue && p.Status.Phase == corev1.PodRunning
		}
	}
	return time.Time{}, false
}

// Count is how many replicas the spec asks for.
func Count(set *appsv1.StatefulSet) int {
	if set.Spec.Replicas == nil {
		return 1
	}
	return int(*set.Spec.Replicas)
}

// FirstOrdinal is that of the first Pod of a StatefulSet.
func FirstOrdinal(set *appsv1.StatefulSet) int {
	if set.Spec.Ordinals == nil {
		return 0
	}
	return int(set.Spec.Ordinals.Start)
}

// Ordinal is that of a Pod of a StatefulSet, -1 if its name has none.
func Ordinal(set, pod string) int {
	suffix, ok := strings.CutPrefix(pod, set+"-")
	n, err := strconv.Atoi(suffix)
	if !ok || err != nil || n < 0 {
		return -1
	}
	return n
}

// FirstDown is the first replica that is down, nil if none is; rather one that is not
// ready than one that is going.
func FirstDown(replicas []Replica) *Replica {
	var first *Replica
	for i := range replicas {
		r := &replicas[i]
		if r.State != Up && (first == nil || first.Beyond && !r.Beyond) {
			first = r
		}
	}
	return first
}

// NeverRan is true if a StatefulSet that goes to fewer replicas loses no Pod but those that no
// node ever had. A node is never taken back from a Pod, so such a one has run nothing. Each of them
// must exist, and a scheduler must have said that there is no node for it: one that was replaced a
// moment ago is absent, or new, though its replica has served until then.
func NeverRan(set *appsv1.StatefulSet, pods []corev1.Pod, to int) bool {
	unscheduled := 0
	for i := range pods {
		n := Ordinal(set.Name, pods[i].Name) - FirstOrdinal(set)
		if n < to || n >= Count(set) {
			continue
		}
		if !isUnschedulable(&pods[i]) {
			return false
		}
		unscheduled++
	}
	return unscheduled > 0 && unscheduled == Count(set)-to
}

func isUnschedulable(p *corev1.Pod) bool {
	if p.Spec.NodeName != "" || p.DeletionTimestamp != nil {
		return false
	}
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodScheduled {
			return c.Status == corev1.ConditionFalse && (c.Reason == corev1.PodReasonUnschedulable || c.Reason == corev1.PodReasonSchedulingGated)
		}
	}
	return false
}
