package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/shell"
	"github.com/spillway-dev/spillway/rollout"
)

// unstarted checks the containers of a Pod on a node.
func (a *asker) unstarted(ctx context.Context, p *corev1.Pod) (answer, error) {
	for i := range p.Status.InitContainerStatuses {
		if c := &p.Status.InitContainerStatuses[i]; severityOf(c) > starting {
			return a.container(ctx, p, c, true)
		}
	}
	worst := -1
	for i := range p.Status.ContainerStatuses {
		s := severityOf(&p.Status.ContainerStatuses[i])
		if s > starting && (worst < 0 || s > severityOf(&p.Status.ContainerStatuses[worst])) {
			worst = i
		}
	}
	if worst >= 0 {
		return a.container(ctx, p, &p.Status.ContainerStatuses[worst], false)
	}
	if p.Status.Phase == corev1.PodRunning {
		return a.unreadyPod(p), nil
	}
	return a.startingPod(ctx, p)
}

// startingPod is one that the kubelet has not started yet: what it mounts may be
// missing, for which the kubelet waits in silence.
func (a *asker) startingPod(ctx context.Context, p *corev1.Pod) (answer, error) {
	found := a.alone(p, rollout.ReasonProgressing, a.kubectl("describe", describe.RefTo(describe.KindPod, p)), "Pod %s is starting on node %s", p.Name, p.Spec.NodeName)
	found.Links[0].Phase = rollout.PhaseProgressing
	missing, err := a.firstLack(ctx, needsOf(p.Namespace, &p.Spec))
	if err != nil || missing == nil || missing.err != nil {
		return found, err
	}
	found.Links[0] = a.link(describe.RefTo(describe.KindPod, p), ReasonConfig, "Pod %s cannot start: %s", p.Name, *missing)
	found.Links = append(found.Links, a.lacking(*missing))
	return found, nil
}

// unreadyPod runs and does not serve: a readiness gate, or a probe.
func (a *asker) unreadyPod(p *corev1.Pod) answer {
	ref := describe.RefTo(describe.KindPod, p)
	for _, gate := range p.Spec.ReadinessGates {
		if c := podCondition(p, gate.ConditionType); c == nil || c.Status != corev1.ConditionTrue {
			return a.alone(p, ReasonNotReady, a.kubectl("describe", ref), "Pod %s is not ready: readiness gate %s is not true", p.Name, gate.ConditionType)
		}
	}
	for i := range p.Status.ContainerStatuses {
		c := &p.Status.ContainerStatuses[i]
		switch {
		case c.Ready:
		case a.crashes(c):
			return a.crashed(p, c, c.LastTerminationState.Terminated)
		default:
			return a.alone(p, ReasonProbe, a.kubectl("logs", ref, "-c", c.Name),
				"Pod %s is not ready: container %s is not ready%s", p.Name, c.Name, probeOf(p, c.Name))
		}
	}
	return a.alone(p, ReasonNotReady, a.kubectl("describe", ref), "Pod %s is not ready", p.Name)
}

// forgiven is how long a container has to run for the kubelet to forget that it has
// crashed before: the next time it is started without a delay.
const forgiven = 10 * time.Minute

// crashes is true of a container that has ended before, and has not run long since.
func (a *asker) crashes(c *corev1.ContainerStatus) bool {
	if c.LastTerminationState.Terminated == nil {
		return false
	}
	runs := c.State.Running
	return runs == nil || runs.StartedAt.IsZero() || a.Options.Now().Before(runs.StartedAt.Add(forgiven))
}

// probeOf says what its readiness probe asks.
func probeOf(p *corev1.Pod, container string) string {
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		if c.Name != container || c.ReadinessProbe == nil {
			continue
		}
		switch probe := c.ReadinessProbe; {
		case probe.HTTPGet != nil:
			return fmt.Sprintf(": readiness probe GET %s on port %s fails", probe.HTTPGet.Path, probe.HTTPGet.Port.String())
		case probe.TCPSocket != nil:
			return ": readiness probe of port " + probe.TCPSocket.Port.String() + " fails"
		case probe.Exec != nil:
			return ": readiness probe " + strings.Join(probe.Exec.Command, " ") + " fails"
		case probe.GRPC != nil:
			return fmt.Sprintf(": readiness probe gRPC on port %d fails", probe.GRPC.Port)
		}
	}
	return ""
}

// container says why one does not run.
func (a *asker) container(ctx context.Context, p *corev1.Pod, c *corev1.ContainerStatus, isInit bool) (answer, error) {
	waits := c.State.Waiting
	switch {
	case waits == nil || waits.Reason == crashLoop:
		ended := c.State.Terminated
		if ended == nil {
			ended = c.LastTerminationState.Terminated
		}
		found := a.crashed(p, c, ended)
		if isInit {
			found.Links[0].Reason = ReasonInit
			found.Links[0].Sentence = strings.Replace(found.Links[0].Sentence, " container ", " init container ", 1)
		}
		return found, nil
	case waits.Reason == configError:
		return a.misconfigured(ctx, p, c)
	case slices.Contains(imageReasons, waits.Reason):
		return a.unpulled(ctx, p, c)
	default:
		return a.alone(p, ReasonNotReady, a.kubectl("describe", describe.RefTo(describe.KindPod, p)),
			"Pod %s cannot start container %s: %s: %s", p.Name, c.Name, waits.Reason, waits.Message), nil
	}
}

// crashed is a container that has ended, and is started again and again.
func (a *asker) crashed(p *corev1.Pod, c *corev1.ContainerStatus, ended *corev1.ContainerStateTerminated) answer {
	ref := describe.RefTo(describe.KindPod, p)
	logs := a.kubectl("logs", ref, "-c", c.Name)
	if c.State.Terminated == nil {
		logs = a.kubectl("logs", ref, "-c", c.Name, "--previous")
	}
	switch {
	case ended == nil:
		return a.alone(p, ReasonCrash, logs, "Pod %s: container %s crashes repeatedly%s", p.Name, c.Name, soFar(c))
	case ended.Reason == outOfMemory:
		return a.alone(p, ReasonMemory, a.kubectl("describe", ref), "Pod %s: container %s was killed: it used more memory than %s%s",
			p.Name, c.Name, memoryOf(p, c.Name), soFar(c))
	default:
		return a.alone(p, ReasonCrash, logs, "Pod %s: container %s exited with code %d%s", p.Name, c.Name, ended.ExitCode, soFar(c))
	}
}

// soFar is how often a container was started again, as the end of a clause.
func soFar(c *corev1.ContainerStatus) string {
	if c.RestartCount == 0 {
		return ""
	}
	return fmt.Sprintf(", restarted %d times", c.RestartCount)
}

// memoryOf is how much memory a container may use.
func memoryOf(p *corev1.Pod, container string) string {
	for i := range p.Spec.Containers {
		if c := &p.Spec.Containers[i]; c.Name == container && !c.Resources.Limits.Memory().IsZero() {
			return "its limit of " + c.Resources.Limits.Memory().String()
		}
	}
	return "is available"
}

// misconfigured: the kubelet cannot make the container of what it refers to.
func (a *asker) misconfigured(ctx context.Context, p *corev1.Pod, c *corev1.ContainerStatus) (answer, error) {
	missing, err := a.firstLack(ctx, needsOf(p.Namespace, &p.Spec))
	if err != nil {
		return answer{}, err
	}
	if missing == nil {
		return a.alone(p, ReasonConfig, a.kubectl("describe", describe.RefTo(describe.KindPod, p)), "Pod %s cannot start container %s: %s", p.Name, c.Name, c.State.Waiting.Message), nil
	}
	why := missing.String()
	if missing.err != nil {
		why = c.State.Waiting.Message // the kubelet may look
	}
	found := a.alone(p, ReasonConfig, "", "Pod %s cannot start container %s: %s", p.Name, c.Name, why)
	found.Links = append(found.Links, a.lacking(*missing))
	return found, nil
}

// unpulled is an image that does not exist, or whose pull Secret does not.
func (a *asker) unpulled(ctx context.Context, p *corev1.Pod, c *corev1.ContainerStatus) (answer, error) {
	found := a.alone(p, ReasonImage, a.kubectl("describe", describe.RefTo(describe.KindPod, p)),
		"Pod %s cannot pull the image %s of container %s", p.Name, imageOf(p, c), c.Name)
	if m := c.State.Waiting.Message; m != "" {
		found.Links[0].Sentence += ": " + m
	}
	for _, pull := range p.Spec.ImagePullSecrets {
		l := lack{Ref: describe.Ref{Kind: describe.KindSecret, Namespace: p.Namespace, Name: pull.Name}, wanted: corev1.DockerConfigJsonKey}
		_, exists, err := a.keys(ctx, l.Ref)
		if apierrors.IsForbidden(err) {
			continue
		}
		if err != nil {
			return found, err
		}
		if !exists {
			found.Links[0].Next = ""
			link := a.lacking(l)
			link.Next = a.command("kubectl create secret docker-registry " + shell.Join(l.Name, "-n", l.Namespace) + " --docker-server=SERVER --docker-username=USER --docker-password=PASSWORD")
			found.Links = append(found.Links, link)
			return found, nil
		}
	}
	return found, nil
}

func imageOf(p *corev1.Pod, c *corev1.ContainerStatus) string {
	for _, spec := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		if spec.Name == c.Name {
			return spec.Image
		}
	}
	return c.Image
}
