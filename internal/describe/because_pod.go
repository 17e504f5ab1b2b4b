package describe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// How badly a Pod does: of several the worst is told of. Up to starting it may still
// come through by itself.
const (
	well = iota
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
		case s == well:
		case found < 0, s > severity(&pods[found]), s == severity(&pods[found]) && pods[i].Name < pods[found].Name:
			found = i
		}
	}
	return found
}

func severity(p *corev1.Pod) int {
	switch {
	case p.DeletionTimestamp != nil:
		return leaving
	case p.Status.Phase == corev1.PodSucceeded, isReady(p):
		return well
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
	return owner != nil && owner.Kind != kindJob
}

func severityOf(c *corev1.ContainerStatus) int {
	switch waits := c.State.Waiting; {
	case waits == nil && c.State.Terminated != nil && c.State.Terminated.ExitCode != 0:
		return crashing
	case waits == nil:
		return well
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

// pod says why a Pod does not serve.
func (a *asker) pod(ctx context.Context, ref Ref, first bool) (answer, error) {
	p := &corev1.Pod{}
	err := a.get(ctx, ref, p)
	if isNotFound(err) && !first {
		link := a.link(ref, ReasonMissing, "Pod %s is not there", ref.Name)
		link.Next = a.pointless("kubectl get events -n " + ref.Namespace)
		return answer{links: []Link{link}}, nil
	}
	if isNotFound(err) {
		return answer{}, fmt.Errorf("there is no Pod %s in namespace %s", ref.Name, ref.Namespace)
	}
	if err != nil {
		return answer{}, err
	}
	found, err := a.diagnose(ctx, p)
	if err != nil {
		return found, err
	}
	own := &found.links[0]
	own.Owner = ownerOf(p)
	if own.Since == nil && severity(p) != well {
		own.Since = unreadySince(p)
	}
	found.facts = podFacts(p)
	return found, nil
}

func podFacts(p *corev1.Pod) []Fact {
	facts := []Fact{{"phase", string(p.Status.Phase)}}
	if p.Spec.NodeName != "" {
		facts = append(facts, Fact{"node", p.Spec.NodeName})
	}
	for _, c := range statusesOf(p) {
		facts = append(facts, Fact{"container", c.Name + ", " + containerState(&c)})
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
		return momentOrNil(c.LastTransitionTime.Time)
	}
	return momentOrNil(p.CreationTimestamp.Time)
}

// diagnose goes through what can be wrong with a Pod, in the order of its life
// backwards: what ends it, what keeps it from a node, from starting, from serving.
func (a *asker) diagnose(ctx context.Context, p *corev1.Pod) (answer, error) {
	switch {
	case p.DeletionTimestamp != nil:
		return a.terminating(ctx, p), nil
	case p.Status.Reason == evicted:
		return a.alone(p, ReasonEvicted, a.kubectl("describe", Ref{Kind: kindNode, Name: p.Spec.NodeName}),
			"Pod %s was evicted from node %s: %s", p.Name, p.Spec.NodeName, p.Status.Message), nil
	case p.Status.Phase == corev1.PodFailed && p.Status.Reason != "":
		return a.alone(p, ReasonFailed, a.kubectl("describe", refTo(kindPod, p)), "Pod %s has failed on node %s: %s",
			p.Name, p.Spec.NodeName, orReason(p.Status.Message, p.Status.Reason)), nil
	case p.Status.Phase == corev1.PodSucceeded:
		return a.alone(p, "", "", "Pod %s has done what it was to do", p.Name), nil
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

// alone is a Pod that is the root itself.
func (a *asker) alone(p *corev1.Pod, reason rollout.Reason, next, format string, args ...any) answer {
	link := a.link(refTo(kindPod, p), reason, format, args...)
	link.Next, link.Phase = next, rollout.PhaseWaiting
	if reason == "" {
		link.Phase = rollout.PhaseComplete
	}
	return answer{links: []Link{link}}
}

// terminating is a Pod that is being deleted: its node is lost, somebody has to remove
// a finalizer, or it takes its time.
func (a *asker) terminating(ctx context.Context, p *corev1.Pod) answer {
	if lost := a.lostNode(ctx, p); lost != nil {
		found := a.nodeLost(p, lost)
		found.links[0].Reason = ReasonTerminating
		found.links[0].Sentence = a.place() + fmt.Sprintf("Pod %s is terminating, and its node %s does not answer", p.Name, p.Spec.NodeName)
		return found
	}
	if len(p.Finalizers) > 0 {
		found := a.alone(p, ReasonTerminating, "", "Pod %s is terminating, and finalizer %s keeps it", p.Name, p.Finalizers[0])
		found.links = append(found.links, a.finalizer(refTo(kindPod, p), p.Finalizers[0]))
		return found
	}
	found := a.alone(p, ReasonTerminating, a.kubectl("describe", refTo(kindPod, p)), "Pod %s is terminating", p.Name)
	found.links[0].Until = momentOrNil(p.DeletionTimestamp.Time) // when its grace period is over
	return found
}

// lostNode is the node of a Pod if that does not answer, nil if it does or may not be
// looked at.
func (a *asker) lostNode(ctx context.Context, p *corev1.Pod) *Link {
	if p.Spec.NodeName == "" {
		return nil
	}
	ref, node := Ref{Kind: kindNode, Name: p.Spec.NodeName}, &corev1.Node{}
	if err := a.get(ctx, ref, node); isNotFound(err) {
		link := a.link(ref, ReasonNodeLost, "Node %s is not there any more", ref.Name)
		link.Next = a.kubectl("delete", refTo(kindPod, p), "--force", "--grace-period=0")
		return &link
	}
	for _, c := range node.Status.Conditions { // there are none if it may not be looked at
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			link := a.link(ref, ReasonNodeLost, "Node %s is not ready: %s", ref.Name, orReason(c.Message, c.Reason))
			link.Since, link.Next = momentOrNil(c.LastTransitionTime.Time), a.kubectl("describe", ref)
			return &link
		}
	}
	return nil
}

func orReason(message, reason string) string {
	if message == "" {
		return reason
	}
	return message
}

func (a *asker) nodeLost(p *corev1.Pod, node *Link) answer {
	found := a.alone(p, ReasonNodeLost, "", "Pod %s is not ready, and its node %s does not answer", p.Name, p.Spec.NodeName)
	found.links = append(found.links, *node)
	return found
}

// gatedPod is one that may not be scheduled yet: ours waits for its config.
func (a *asker) gatedPod(ctx context.Context, p *corev1.Pod) (answer, error) {
	for _, gate := range p.Spec.SchedulingGates {
		if gate.Name == vocabulary.SchedulingGate {
			found := a.alone(p, ReasonGated, "", "Pod %s is not scheduled before its config exists", p.Name)
			missing, err := a.firstLack(ctx, needsOf(p.Namespace, &p.Spec))
			if missing != nil {
				found.links = append(found.links, a.lacking(missing.lack))
			} else {
				found.on = a.manager(p.Namespace)
			}
			return found, err
		}
	}
	return a.alone(p, ReasonGated, a.kubectl("get", refTo(kindPod, p), "-o", "jsonpath='{.spec.schedulingGates}'"),
		"Pod %s is not scheduled before whoever has set scheduling gate %s removes it", p.Name, p.Spec.SchedulingGates[0].Name), nil
}

// unscheduled is a Pod without a node.
func (a *asker) unscheduled(ctx context.Context, p *corev1.Pod) (answer, error) {
	if claim := a.unboundClaim(ctx, p); claim != nil {
		found := a.alone(p, ReasonUnschedulable, "", "Pod %s is not scheduled before PersistentVolumeClaim %s is bound", p.Name, claim.Name)
		found.on = a.about(*claim)
		return found, nil
	}
	c := podCondition(p, corev1.PodScheduled)
	switch {
	case c != nil && c.Status == corev1.ConditionFalse:
		next := a.kubectl("describe", refTo(kindPod, p))
		if label := a.unmatched(ctx, p); label != "" {
			return a.alone(p, ReasonUnschedulable, a.pointless("kubectl get nodes -l "+label),
				"Pod %s cannot be scheduled: no node has the labels of its node selector, %s", p.Name, label), nil
		}
		return a.alone(p, ReasonUnschedulable, next, "Pod %s cannot be scheduled: %s", p.Name, c.Message), nil
	case p.Spec.SchedulerName == vocabulary.SuspendedScheduler:
		return a.waitsForWave(ctx, p)
	case p.Spec.SchedulerName != vocabulary.DefaultScheduler:
		return a.alone(p, ReasonUnschedulable, a.pointless("kubectl get pods -A | grep "+p.Spec.SchedulerName),
			"Pod %s waits for scheduler %s, which has not looked at it: is it running?", p.Name, p.Spec.SchedulerName), nil
	default:
		return a.alone(p, ReasonUnschedulable, a.pointless("kubectl get pods -n kube-system -l component=kube-scheduler"),
			"Pod %s was not looked at by the scheduler: is it running?", p.Name), nil
	}
}

// waitsForWave is a Pod that the predecessor, or we in its way, keep from starting.
func (a *asker) waitsForWave(ctx context.Context, p *corev1.Pod) (answer, error) {
	found := a.alone(p, ReasonGated, "", "Pod %s is not scheduled before its config exists", p.Name)
	missing, err := a.firstLack(ctx, needsOf(p.Namespace, &p.Spec))
	if missing != nil {
		found.links = append(found.links, a.lacking(missing.lack))
	}
	return found, err
}

// unmatched is the node selector of a Pod if no node has such labels.
func (a *asker) unmatched(ctx context.Context, p *corev1.Pod) string {
	if len(p.Spec.NodeSelector) == 0 {
		return ""
	}
	var nodes corev1.NodeList
	if err := a.Client.List(ctx, &nodes); err != nil {
		return ""
	}
	selector := metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: p.Spec.NodeSelector})
	for i := range nodes.Items {
		if matches(nodes.Items[i].Labels, p.Spec.NodeSelector) {
			return ""
		}
	}
	return strings.ReplaceAll(selector, " ", "")
}

func matches(has, wanted map[string]string) bool {
	for key, value := range wanted {
		if has[key] != value {
			return false
		}
	}
	return true
}

// unstarted looks at the containers of a Pod on a node.
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
	found := a.alone(p, rollout.ReasonProgressing, a.kubectl("describe", refTo(kindPod, p)), "Pod %s is being started on node %s", p.Name, p.Spec.NodeName)
	found.links[0].Phase = rollout.PhaseProgressing
	missing, err := a.firstLack(ctx, needsOf(p.Namespace, &p.Spec))
	if err != nil || missing == nil || missing.err != nil {
		return found, err
	}
	found.links[0] = a.link(refTo(kindPod, p), ReasonConfig, "Pod %s cannot start: %s", p.Name, missing.lack)
	found.links = append(found.links, a.lacking(missing.lack))
	return found, nil
}

// unreadyPod runs and does not serve: a readiness gate, or a probe.
func (a *asker) unreadyPod(p *corev1.Pod) answer {
	ref := refTo(kindPod, p)
	for _, gate := range p.Spec.ReadinessGates {
		if c := podCondition(p, gate.ConditionType); c == nil || c.Status != corev1.ConditionTrue {
			return a.alone(p, ReasonNotReady, a.kubectl("describe", ref), "Pod %s runs, and its readiness gate %s has not passed", p.Name, gate.ConditionType)
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
				"Pod %s runs, and container %s is not ready%s, so that no Service sends it anything", p.Name, c.Name, probeOf(p, c.Name))
		}
	}
	return a.alone(p, ReasonNotReady, a.kubectl("describe", ref), "Pod %s runs, and is not ready", p.Name)
}

// forgiven is how long a container has to run for the kubelet to forget that it has
// crashed before: the next time it is started at once.
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
			return fmt.Sprintf(": its readiness probe, GET %s on port %s, does not succeed", probe.HTTPGet.Path, probe.HTTPGet.Port.String())
		case probe.TCPSocket != nil:
			return ": its readiness probe, port " + probe.TCPSocket.Port.String() + ", does not succeed"
		case probe.Exec != nil:
			return ": its readiness probe, " + strings.Join(probe.Exec.Command, " ") + ", does not succeed"
		case probe.GRPC != nil:
			return fmt.Sprintf(": its readiness probe, gRPC on port %d, does not succeed", probe.GRPC.Port)
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
			found.links[0].Reason = ReasonInit
			found.links[0].Sentence = strings.Replace(found.links[0].Sentence, " container ", " init container ", 1)
		}
		return found, nil
	case waits.Reason == configError:
		return a.misconfigured(ctx, p, c)
	case slices.Contains(imageReasons, waits.Reason):
		return a.unpulled(ctx, p, c)
	default:
		return a.alone(p, ReasonNotReady, a.kubectl("describe", refTo(kindPod, p)),
			"Pod %s cannot start container %s: %s: %s", p.Name, c.Name, waits.Reason, waits.Message), nil
	}
}

// crashed is a container that has ended, and is started again and again.
func (a *asker) crashed(p *corev1.Pod, c *corev1.ContainerStatus, ended *corev1.ContainerStateTerminated) answer {
	ref := refTo(kindPod, p)
	logs := a.kubectl("logs", ref, "-c", c.Name)
	if c.State.Terminated == nil {
		logs = a.kubectl("logs", ref, "-c", c.Name, "--previous")
	}
	switch {
	case ended == nil:
		return a.alone(p, ReasonCrash, logs, "Pod %s: container %s ends again and again%s", p.Name, c.Name, soFar(c))
	case ended.Reason == outOfMemory:
		return a.alone(p, ReasonMemory, a.kubectl("describe", ref), "Pod %s: container %s has used more memory than %s, and was killed%s",
			p.Name, c.Name, memoryOf(p, c.Name), soFar(c))
	default:
		return a.alone(p, ReasonCrash, logs, "Pod %s: container %s ends with exit code %d%s", p.Name, c.Name, ended.ExitCode, soFar(c))
	}
}

// soFar is how often a container was started again, as the end of a clause.
func soFar(c *corev1.ContainerStatus) string {
	if c.RestartCount == 0 {
		return ""
	}
	return fmt.Sprintf(", %d times so far", c.RestartCount)
}

// memoryOf is how much memory a container may use.
func memoryOf(p *corev1.Pod, container string) string {
	for i := range p.Spec.Containers {
		if c := &p.Spec.Containers[i]; c.Name == container && !c.Resources.Limits.Memory().IsZero() {
			return "its limit of " + c.Resources.Limits.Memory().String()
		}
	}
	return "there is"
}

// misconfigured: the kubelet cannot make the container of what it refers to.
func (a *asker) misconfigured(ctx context.Context, p *corev1.Pod, c *corev1.ContainerStatus) (answer, error) {
	missing, err := a.firstLack(ctx, needsOf(p.Namespace, &p.Spec))
	if err != nil {
		return answer{}, err
	}
	if missing == nil {
		return a.alone(p, ReasonConfig, a.kubectl("describe", refTo(kindPod, p)), "Pod %s cannot start container %s: %s", p.Name, c.Name, c.State.Waiting.Message), nil
	}
	why := missing.String()
	if missing.err != nil {
		why = c.State.Waiting.Message // the kubelet may look
	}
	found := a.alone(p, ReasonConfig, "", "Pod %s cannot start container %s: %s", p.Name, c.Name, why)
	found.links = append(found.links, a.lacking(missing.lack))
	return found, nil
}

// unpulled: the image is not there, or the Secret that it takes to get at it.
func (a *asker) unpulled(ctx context.Context, p *corev1.Pod, c *corev1.ContainerStatus) (answer, error) {
	found := a.alone(p, ReasonImage, a.kubectl("describe", refTo(kindPod, p)),
		"Pod %s cannot pull the image %s of container %s", p.Name, imageOf(p, c), c.Name)
	if m := c.State.Waiting.Message; m != "" {
		found.links[0].Sentence += ": " + m
	}
	for _, pull := range p.Spec.ImagePullSecrets {
		l := lack{Ref: Ref{Kind: kindSecret, Namespace: p.Namespace, Name: pull.Name}, wanted: corev1.DockerConfigJsonKey}
		_, exists, err := a.keys(ctx, l.Ref)
		if apierrors.IsForbidden(err) {
			continue
		}
		if err != nil {
			return found, err
		}
		if !exists {
			found.links[0].Next = ""
			link := a.lacking(l)
			link.Next = a.pointless("kubectl create secret docker-registry " + l.Name + " -n " + l.Namespace + " --docker-server=SERVER --docker-username=USER --docker-password=PASSWORD")
			found.links = append(found.links, link)
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
