package zones

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// inGroup is true of StatefulSets of a group.
func inGroup(obj client.Object) bool { return groupOf(obj) != "" }

func groupOf(obj client.Object) string {
	return vocabulary.GroupOf(obj.GetLabels(), obj.GetAnnotations())
}

// ofStatefulSet is true of Pods that a StatefulSet controls.
func ofStatefulSet(obj client.Object) bool { return ownerOf(obj) != nil }

// ownerOf is the StatefulSet that controls a Pod, nil if none does.
func ownerOf(obj client.Object) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(obj)
	if owner == nil || owner.Kind != "StatefulSet" || !strings.HasPrefix(owner.APIVersion, appsv1.GroupName+"/") {
		return nil
	}
	return owner
}

// reducePod takes away of a Pod what no decision needs.
func reducePod(obj client.Object) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	pod.Labels = only(pod.Labels, appsv1.StatefulSetRevisionLabel)
	pod.Annotations = only(pod.Annotations, vocabulary.Withdrawn.Native)
	pod.Finalizers, pod.GenerateName = nil, ""
	pod.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName}
	pod.Status = corev1.PodStatus{
		Phase: pod.Status.Phase, Reason: pod.Status.Reason, StartTime: pod.Status.StartTime,
		Conditions:            reduceConditions(pod.Status.Conditions),
		InitContainerStatuses: waitingOnly(pod.Status.InitContainerStatuses),
		ContainerStatuses:     waitingOnly(pod.Status.ContainerStatuses),
	}
}

// only is what labels or annotations say of one key.
func only(all map[string]string, key string) map[string]string {
	value, ok := all[key]
	if !ok {
		return nil
	}
	return map[string]string{key: value}
}

func reduceConditions(conditions []corev1.PodCondition) []corev1.PodCondition {
	var kept []corev1.PodCondition
	for i := range conditions {
		c := &conditions[i]
		if c.Type == corev1.PodReady || c.Type == corev1.PodScheduled {
			kept = append(kept, corev1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason, LastTransitionTime: c.LastTransitionTime})
		}
	}
	return kept
}

func waitingOnly(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	var kept []corev1.ContainerStatus
	for i := range statuses {
		if w := statuses[i].State.Waiting; w != nil && w.Reason != "" {
			waiting := &corev1.ContainerStateWaiting{Reason: w.Reason}
			kept = append(kept, corev1.ContainerStatus{State: corev1.ContainerState{Waiting: waiting}})
		}
	}
	return kept
}
