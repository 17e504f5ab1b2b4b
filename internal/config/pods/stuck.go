package pods

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/internal/health"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Stuck is a Pod for which a StatefulSet waits before it updates, and which was never ready at
// the earlier revision that it runs: it serves nothing.
type Stuck struct {
	Name, Version string
	UID           types.UID
	// Revision is the earlier one, Hash that of its config.
	Revision, Hash string
	// Reason is why it is not ready.
	Reason string
	// At is when it counts as stuck, zero if it is broken. Until then it may become ready.
	At time.Time
}

// StuckOf is the Pod for which a StatefulSet waits in vain, nil if there is none. That is the
// first one, in the order of the ordinals, that is not ready.
func (p Pods) StuckOf(set *appsv1.StatefulSet, now time.Time) *Stuck {
	if p.Forbidden || p.Unknown != "" {
		return nil
	}
	selector, of := selectorOf(set), map[int]*corev1.Pod{}
	for _, pod := range p.Items {
		if ordinal, err := strconv.Atoi(strings.TrimPrefix(pod.Name, set.Name+"-")); err == nil && isOf(set, selector, pod) {
			of[ordinal] = pod
		}
	}
	first, count := 0, 1
	if set.Spec.Ordinals != nil {
		first = int(set.Spec.Ordinals.Start)
	}
	if set.Spec.Replicas != nil {
		count = int(*set.Spec.Replicas)
	}
	for ordinal := first; ordinal < first+count; ordinal++ {
		pod := of[ordinal]
		if pod == nil {
			return nil // its controller creates it first
		}
		if _, ready := readySince(pod); !ready || pod.DeletionTimestamp != nil || IsOver(pod) {
			return stuck(set, pod, ordinal, now)
		}
	}
	return nil
}

// stuck is nil of a Pod that goes already, that would come back at its revision, or that may
// have served.
func stuck(set *appsv1.StatefulSet, pod *corev1.Pod, ordinal int, now time.Time) *Stuck {
	revision := pod.Labels[appsv1.StatefulSetRevisionLabel]
	if r := set.Spec.UpdateStrategy.RollingUpdate; r != nil && r.Partition != nil && ordinal < int(*r.Partition) {
		return nil
	}
	if pod.DeletionTimestamp != nil || IsOver(pod) || revision == "" || revision == set.Status.UpdateRevision || !health.NeverReady(pod) {
		return nil
	}
	s := &Stuck{Name: pod.Name, Version: pod.ResourceVersion, UID: pod.UID, Revision: revision, Hash: vocabulary.ConfigHash.Get(pod.Annotations)}
	waits := health.Waits(pod)
	if i := slices.IndexFunc(waits, health.IsBroken); i >= 0 {
		s.Reason = waits[i]
		return s
	}
	if s.Reason = failure(pod, now); s.Reason != "" {
		return s
	}
	since, _ := readySince(pod)
	if since.IsZero() {
		since = pod.CreationTimestamp.Time
	}
	s.Reason, s.At = cmp.Or(slices.Concat(waits, []string{"not ready"})...), since.Add(health.StuckAfter)
	return s
}
