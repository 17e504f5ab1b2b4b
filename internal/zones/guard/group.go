package guard

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/zones/preparehook"
)

// zone is a StatefulSet with the Pods that it owns.
type zone struct {
	set  *appsv1.StatefulSet
	pods []corev1.Pod
}

// group is one look at a group. The object was read first, so the rest of it is not
// older than what the object says was decided.
type group struct {
	object *v1alpha1.RolloutGroup
	zones  []zone
	asOf   v1alpha1.Seen
}

// owned are the Pods that belong to a StatefulSet by its UID.
func owned(set *appsv1.StatefulSet, pods []corev1.Pod) []corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool {
		owner := metav1.GetControllerOfNoCopy(&p)
		return owner == nil || owner.UID != set.UID
	})
}

// unsettled counts the replicas of a zone that keep others from being scaled down:
// those at another revision, and those that are not ready. A Pod that is to go counts
// as not ready for as long as it exists. While the status does not speak of the
// spec, all may be at another revision.
func (z *zone) unsettled() (notUpdated, notReady int) {
	updated, ready := 0, 0
	first := preparehook.FirstOrdinal(z.set)
	end := first + z.replicas()
	for i := range z.pods {
		p := &z.pods[i]
		if n := preparehook.Ordinal(z.set.Name, p.Name); n < first || n >= end {
			continue
		}
		if p.Labels[appsv1.StatefulSetRevisionLabel] == z.set.Status.UpdateRevision {
			updated++
		}
		if isReady(p) {
			ready++
		}
	}
	if z.set.Generation != z.set.Status.ObservedGeneration {
		updated = 0
	}
	expected := max(z.replicas(), len(z.pods))
	return z.replicas() - updated, expected - ready
}

func (z *zone) replicas() int {
	if z.set.Spec.Replicas == nil {
		return 1
	}
	return int(*z.set.Spec.Replicas)
}

// isReady is true of a Pod that runs, is ready as a whole, and stays.
func isReady(p *corev1.Pod) bool {
	_, ready := readySince(p)
	return ready && p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil
}

func readySince(p *corev1.Pod) (time.Time, bool) {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.LastTransitionTime.Time, c.Status == corev1.ConditionTrue
		}
	}
	return time.Time{}, false
}
