package explain

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/shell"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// lostNode is the node of a Pod if that does not answer, nil if it does or may not be
// looked at.
func (a *asker) lostNode(ctx context.Context, p *corev1.Pod) *Link {
	if p.Spec.NodeName == "" {
		return nil
	}
	ref, node := describe.Ref{Kind: describe.KindNode, Name: p.Spec.NodeName}, &corev1.Node{}
	if err := a.get(ctx, ref, node); IsNotFound(err) {
		link := a.link(ref, ReasonNodeLost, "Node %s not found", ref.Name)
		link.Next = a.kubectl("delete", describe.RefTo(describe.KindPod, p), "--force", "--grace-period=0")
		return &link
	}
	for _, c := range node.Status.Conditions { // there are none if it may not be looked at
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			link := a.link(ref, ReasonNodeLost, "Node %s is not ready: %s", ref.Name, orReason(c.Message, c.Reason))
			link.Since, link.Next = describe.TimeOrNil(c.LastTransitionTime.Time), a.kubectl("describe", ref)
			return &link
		}
	}
	return nil
}

func (a *asker) nodeLost(p *corev1.Pod, node *Link) answer {
	found := a.alone(p, ReasonNodeLost, "", "Pod %s is not ready: node %s does not respond", p.Name, p.Spec.NodeName)
	found.Links = append(found.Links, *node)
	return found
}

// gatedPod is one that may not be scheduled yet: ours waits for its config.
func (a *asker) gatedPod(ctx context.Context, p *corev1.Pod) (answer, error) {
	for _, gate := range p.Spec.SchedulingGates {
		if gate.Name == vocabulary.SchedulingGate {
			found := a.alone(p, ReasonGated, "", "Pod %s is waiting: its config does not exist yet", p.Name)
			missing, err := a.firstLack(ctx, needsOf(p.Namespace, &p.Spec))
			if missing != nil {
				found.Links = append(found.Links, a.lacking(*missing))
			} else {
				found.Then = a.aboutManager(p.Namespace)
			}
			return found, err
		}
	}
	return a.alone(p, ReasonGated, a.kubectl("get", describe.RefTo(describe.KindPod, p), "-o", "jsonpath={.spec.schedulingGates}"),
		"Pod %s is waiting: scheduling gate %s is not removed yet", p.Name, p.Spec.SchedulingGates[0].Name), nil
}

// unscheduled is a Pod without a node.
func (a *asker) unscheduled(ctx context.Context, p *corev1.Pod) (answer, error) {
	if claim := a.unboundClaim(ctx, p); claim != nil {
		found := a.alone(p, ReasonUnschedulable, "", "Pod %s is waiting: PersistentVolumeClaim %s is not bound", p.Name, claim.Name)
		found.Then = a.about(*claim)
		return found, nil
	}
	c := podCondition(p, corev1.PodScheduled)
	switch {
	case c != nil && c.Status == corev1.ConditionFalse:
		next := a.kubectl("describe", describe.RefTo(describe.KindPod, p))
		if label := a.unmatched(ctx, p); label != "" {
			return a.alone(p, ReasonUnschedulable, a.command("kubectl get nodes -l "+shell.Quote(label)),
				"Pod %s cannot be scheduled: no node has the labels of its node selector, %s", p.Name, label), nil
		}
		return a.alone(p, ReasonUnschedulable, next, "Pod %s cannot be scheduled: %s", p.Name, c.Message), nil
	case p.Spec.SchedulerName == vocabulary.SuspendedScheduler:
		return a.waitsForWave(ctx, p)
	case p.Spec.SchedulerName != vocabulary.DefaultScheduler:
		return a.alone(p, ReasonUnschedulable, a.command("kubectl get pods -A | grep -e "+shell.Quote(p.Spec.SchedulerName)),
			"Pod %s is waiting: scheduler %s has not processed it; is it running?", p.Name, p.Spec.SchedulerName), nil
	default:
		return a.alone(p, ReasonUnschedulable, a.command("kubectl get pods -n kube-system -l component=kube-scheduler"),
			"Pod %s is waiting: the scheduler has not processed it; is it running?", p.Name), nil
	}
}

// waitsForWave is a Pod that wave keeps from starting, or Spillway in the same way.
func (a *asker) waitsForWave(ctx context.Context, p *corev1.Pod) (answer, error) {
	found := a.alone(p, ReasonGated, "", "Pod %s is waiting: its config does not exist yet", p.Name)
	missing, err := a.firstLack(ctx, needsOf(p.Namespace, &p.Spec))
	if missing != nil {
		found.Links = append(found.Links, a.lacking(*missing))
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
