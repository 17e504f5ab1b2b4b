package explain

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/rollout"
)

// pod says why a Pod does not serve.
func (a *asker) pod(ctx context.Context, ref describe.Ref, first bool) (answer, error) {
	p := &corev1.Pod{}
	err := a.get(ctx, ref, p)
	if IsNotFound(err) && !first {
		link := a.link(ref, ReasonMissing, "Pod %s not found", ref.Name)
		link.Next = a.command("kubectl get events" + namespaceFlag(ref))
		return answer{Links: []Link{link}}, nil
	}
	if IsNotFound(err) {
		return answer{}, fmt.Errorf("%s %s %w in namespace %s", ref.Kind, ref.Name, ErrNotFound, ref.Namespace)
	}
	if err != nil {
		return answer{}, err
	}
	found, err := a.diagnose(ctx, p)
	if err != nil {
		return found, err
	}
	own := &found.Links[0]
	own.Owner = ownerOf(p)
	if own.Since == nil && severity(p) != Well {
		own.Since = unreadySince(p)
	}
	found.Facts = podFacts(p)
	return found, nil
}

func podFacts(p *corev1.Pod) []describe.Fact {
	facts := append(describe.UnpinnedFacts(describe.KindPod, p), describe.FactOf("phase", string(p.Status.Phase)))
	if p.Spec.NodeName != "" {
		facts = append(facts, describe.FactOf("node", p.Spec.NodeName))
	}
	for _, c := range statusesOf(p) {
		facts = append(facts, describe.FactOf("container", c.Name+", "+containerState(&c)))
	}
	return facts
}

func containerState(c *corev1.ContainerStatus) string {
	text := "running"
	switch {
	case c.State.Waiting != nil:
		text = "waiting (" + c.State.Waiting.Reason + ")"
	case c.State.Terminated != nil:
		text = fmt.Sprintf("ended with %d (%s)", c.State.Terminated.ExitCode, c.State.Terminated.Reason)
	}
	if !c.Ready {
		text += ", not ready"
	}
	if c.RestartCount > 0 {
		text += fmt.Sprintf(", restarted %d times", c.RestartCount)
	}
	return text
}

// unreadySince is since when a Pod has not been ready.
func unreadySince(p *corev1.Pod) *time.Time {
	if c := podCondition(p, corev1.PodReady); c != nil {
		return describe.TimeOrNil(c.LastTransitionTime.Time)
	}
	return describe.TimeOrNil(p.CreationTimestamp.Time)
}

// diagnose goes through what can be wrong with a Pod, in the order of its life
// backwards: what ends it, what keeps it from a node, from starting, from serving.
func (a *asker) diagnose(ctx context.Context, p *corev1.Pod) (answer, error) {
	switch {
	case p.DeletionTimestamp != nil:
		return a.terminating(ctx, p), nil
	case p.Status.Reason == evicted:
		return a.alone(p, ReasonEvicted, a.kubectl("describe", describe.Ref{Kind: describe.KindNode, Name: p.Spec.NodeName}),
			"Pod %s was evicted from node %s: %s", p.Name, p.Spec.NodeName, p.Status.Message), nil
	case p.Status.Phase == corev1.PodFailed && p.Status.Reason != "":
		return a.alone(p, ReasonFailed, a.kubectl("describe", describe.RefTo(describe.KindPod, p)), "Pod %s failed on node %s: %s",
			p.Name, p.Spec.NodeName, orReason(p.Status.Message, p.Status.Reason)), nil
	case p.Status.Phase == corev1.PodSucceeded:
		return a.alone(p, "", "", "Pod %s is complete", p.Name), nil
	case isReady(p):
		return a.alone(p, "", "", "Pod %s is ready", p.Name), nil
	case len(p.Spec.SchedulingGates) > 0:
		return a.gatedPod(ctx, p)
	case p.Spec.NodeName == "":
		return a.unscheduled(ctx, p)
	}
	if lost := a.lostNode(ctx, p); lost != nil {
		return a.nodeLost(p, lost), nil
	}
	return a.unstarted(ctx, p)
}

// terminating is a Pod that is being deleted: its node is lost, a finalizer is
// left, or its grace period is not over.
func (a *asker) terminating(ctx context.Context, p *corev1.Pod) answer {
	if lost := a.lostNode(ctx, p); lost != nil {
		found := a.nodeLost(p, lost)
		found.Links[0].Reason = ReasonTerminating
		found.Links[0].Sentence = a.place() + fmt.Sprintf("Pod %s is terminating: node %s does not respond", p.Name, p.Spec.NodeName)
		return found
	}
	if len(p.Finalizers) > 0 {
		found := a.alone(p, ReasonTerminating, "", "Pod %s is terminating: finalizer %s is not removed yet", p.Name, p.Finalizers[0])
		found.Links = append(found.Links, a.finalizer(describe.RefTo(describe.KindPod, p), p.Finalizers[0]))
		return found
	}
	found := a.alone(p, ReasonTerminating, a.kubectl("describe", describe.RefTo(describe.KindPod, p)), "Pod %s is terminating", p.Name)
	found.Links[0].Until = describe.TimeOrNil(p.DeletionTimestamp.Time) // when its grace period is over
	return found
}

// alone is a Pod that is the root itself.
func (a *asker) alone(p *corev1.Pod, reason rollout.Reason, next, format string, args ...any) answer {
	link := a.link(describe.RefTo(describe.KindPod, p), reason, format, args...)
	link.Next, link.Phase = next, rollout.PhaseWaiting
	if reason == "" {
		link.Phase = rollout.PhaseComplete
	}
	return answer{Links: []Link{link}}
}

func orReason(message, reason string) string {
	if message == "" {
		return reason
	}
	return message
}

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
