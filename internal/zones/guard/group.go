package guard

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/zones/replica"
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
// those at another revision, and those that are down. While the status does not speak of
// the spec, all may be at another revision.
func (z *zone) unsettled() (notUpdated, notReady int) {
	for _, r := range replica.OfSet(z.set, z.pods) {
		updated := r.State != replica.Unknown && r.Pod >= 0 && z.pods[r.Pod].Labels[appsv1.StatefulSetRevisionLabel] == z.set.Status.UpdateRevision
		if !updated && !r.Beyond {
			notUpdated++
		}
		if r.State != replica.Up && r.State != replica.Unknown {
			notReady++
		}
	}
	return notUpdated, notReady
}
