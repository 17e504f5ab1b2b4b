package models

import (
	"cmp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/simulate/world"
)

// running are the Pods of workloads that are modelled by numbers, by what they belong to.
type running map[record.Key][]*corev1.Pod

// runningIn are those of a cluster. A ReplicaSet is named as its Deployment is, and by
// the hash that its Pods have.
func runningIn(present []client.Object) running {
	all := running{}
	for _, obj := range present {
		pod, ok := obj.(*corev1.Pod)
		owner := metav1.GetControllerOfNoCopy(obj)
		if !ok || owner == nil || pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		of := record.KeyOf("daemonset", pod.Namespace, owner.Name)
		if owner.Kind == "ReplicaSet" {
			of.Kind, of.Name = "deployment", strings.TrimSuffix(owner.Name, "-"+pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey])
		}
		if owner.Kind == "ReplicaSet" || owner.Kind == "DaemonSet" {
			all[of] = append(all[of], pod)
		}
	}
	return all
}

// isNumbered is true of Pods that are modelled by numbers.
func isNumbered(obj client.Object) bool {
	owner := metav1.GetControllerOfNoCopy(obj)
	_, isPod := obj.(*corev1.Pod)
	return isPod && owner != nil && owner.Kind != "StatefulSet"
}

// takeOver makes replicas of Pods, of which so many are of the template that is wanted.
func (r *runner) takeOver(of record.Key, uid types.UID, pods []*corev1.Pod, updated int32, template string) {
	hash := hashOf(pods, updated)
	set := r.of(uid)
	for _, pod := range pods {
		p := replica{template: "former", stops: Stopping(&pod.Spec, r.stop)}
		if updated > 0 && templateHash(pod) == hash {
			p.template = template
		}
		switch since, ready := readySince(pod); {
		case ready:
			p.readyAt = since
		case isFailing(pod):
		case p.template == template:
			p.waits, p.began = true, pod.CreationTimestamp.Time
		case r.readiness.For(of.Kind, of.Name) != world.Never:
			p.readyAt = pod.CreationTimestamp.Add(r.readiness.For(of.Kind, of.Name))
		}
		set.all = append(set.all, p)
	}
}

// hashOf is the hash of the Pods of which there are so many, of the newest if that is
// not one.
func hashOf(pods []*corev1.Pod, updated int32) string {
	newest := slices.SortedStableFunc(slices.Values(pods), func(a, b *corev1.Pod) int {
		return cmp.Compare(b.CreationTimestamp.UnixNano(), a.CreationTimestamp.UnixNano())
	})
	counts := map[string]int32{}
	for _, pod := range newest {
		counts[templateHash(pod)]++
	}
	for _, pod := range newest {
		if counts[templateHash(pod)] == updated {
			return templateHash(pod)
		}
	}
	if len(newest) == 0 {
		return ""
	}
	return templateHash(newest[0])
}

// templateHash tells apart of which template a Pod of a Deployment or a DaemonSet is.
func templateHash(pod *corev1.Pod) string {
	return cmp.Or(pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey], pod.Labels[appsv1.ControllerRevisionHashLabelKey])
}

func readySince(pod *corev1.Pod) (time.Time, bool) {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady && isReady(pod) {
			return c.LastTransitionTime.Time, true
		}
	}
	return time.Time{}, false
}

// failing are the reasons for which a container waits that do not pass by themselves.
var failing = []string{
	"CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName", "CreateContainerError", "RunContainerError",
}

// isFailing is true of a Pod of which a container fails again and again.
func isFailing(pod *corev1.Pod) bool {
	return slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses), func(c corev1.ContainerStatus) bool {
		return c.State.Waiting != nil && slices.Contains(failing, c.State.Waiting.Reason)
	})
}
