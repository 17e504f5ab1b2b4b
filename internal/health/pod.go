package health

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// StuckAfter is how long a Pod may be not ready before it counts as stuck, unless a user says
// otherwise. Until then it may become ready.
const StuckAfter = 300 * time.Second

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
