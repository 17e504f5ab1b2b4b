package explain

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/describe"
)

// The severities of what is wrong with a Pod: of several Pods the worst is explained. Up
// to starting, a Pod may still become ready automatically.
const (
	Well = iota
	left
	starting
	leaving
	unready
	gated
	unscheduled
	crashing
	broken
)

// worst is the place of the Pod that does worst, the first by name of equals; -1 if
// all do well.
func worst(pods []corev1.Pod) int {
	found := -1
	for i := range pods {
		switch s := severity(&pods[i]); {
		case s == Well:
		case found < 0, s > severity(&pods[found]), s == severity(&pods[found]) && pods[i].Name < pods[found].Name:
			found = i
		}
	}
	return found
}

// severity orders Pods by how much their state explains of their workload: the higher, the
// more.
func severity(p *corev1.Pod) int {
	switch {
	case p.DeletionTimestamp != nil:
		return leaving
	case p.Status.Phase == corev1.PodSucceeded, isReady(p):
		return Well
	case p.Status.Phase == corev1.PodFailed && isReplaced(p):
		return left
	case p.Status.Phase == corev1.PodFailed:
		return broken
	case len(p.Spec.SchedulingGates) > 0:
		return gated
	case p.Spec.NodeName == "":
		return unscheduled
	}
	most := starting
	for _, c := range statusesOf(p) {
		most = max(most, severityOf(&c))
	}
	if p.Status.Phase == corev1.PodRunning {
		most = max(most, unready)
	}
	return most
}

// isReplaced is true of a Pod that its controller leaves lying about when it has failed,
// and makes another: it was evicted, or its node was shut down. That of a Job tells why
// the Job fails.
func isReplaced(p *corev1.Pod) bool {
	owner := metav1.GetControllerOf(p)
	return owner != nil && owner.Kind != describe.KindJob
}

func severityOf(c *corev1.ContainerStatus) int {
	switch waits := c.State.Waiting; {
	case waits == nil && c.State.Terminated != nil && c.State.Terminated.ExitCode != 0:
		return crashing
	case waits == nil:
		return Well
	case waits.Reason == crashLoop:
		return crashing
	case waits.Reason == "ContainerCreating" || waits.Reason == "PodInitializing" || waits.Reason == "":
		return starting
	default:
		return broken
	}
}

// statusesOf are those of all containers, the init containers first.
func statusesOf(p *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
}

func isReady(p *corev1.Pod) bool {
	c := podCondition(p, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

func podCondition(p *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &p.Status.Conditions[i]
}

// The words of the kubelet.
const (
	crashLoop   = "CrashLoopBackOff"
	configError = "CreateContainerConfigError"
	outOfMemory = "OOMKilled"
	evicted     = "Evicted"
)

// imageReasons are the kubelet's words for an image that it has not got.
var imageReasons = []string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable"}
