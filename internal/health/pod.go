package health

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// StuckAfter is how long a Pod may be not ready before it counts as stuck, unless a user says
// otherwise. Until then it may become ready.
const StuckAfter = 300 * time.Second

// NeverReady is true of a Pod whose condition Ready is as it was when it started. The kubelet
// sets both times together, in whole seconds. What is not known counts as having been ready.
func NeverReady(p *corev1.Pod) bool {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.Status != corev1.ConditionTrue && p.Status.StartTime != nil && !c.LastTransitionTime.IsZero() &&
				!c.LastTransitionTime.After(p.Status.StartTime.Add(time.Second))
		}
	}
	return p.Spec.NodeName == "" // else a kubelet may have begun, and not said so yet
}

// Waits are the words for what the containers of a Pod wait for.
func Waits(p *corev1.Pod) (reasons []string) {
	for _, statuses := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range statuses {
			if w := statuses[i].State.Waiting; w != nil && w.Reason != "" {
				reasons = append(reasons, w.Reason)
			}
		}
	}
	return reasons
}

// IsBroken is true of what the kubelet says of a container that waits in vain: it
// crashes, or its image or its config is wrong.
func IsBroken(reason string) bool {
	switch reason {
	case "CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError",
		"CreateContainerConfigError", "CreateContainerError", "RunContainerError":
		return true
	default:
		return false
	}
}
