package explain

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// unboundClaim is the first claim of a Pod to which no volume is bound, nil if all
// are bound, wait for the Pod themselves, or may not be looked at.
func (a *asker) unboundClaim(ctx context.Context, p *corev1.Pod) *describe.Ref {
	for i := range p.Spec.Volumes {
		source := p.Spec.Volumes[i].PersistentVolumeClaim
		if source == nil {
			continue
		}
		ref, claim := describe.Ref{Kind: describe.KindClaim, Namespace: p.Namespace, Name: source.ClaimName}, &corev1.PersistentVolumeClaim{}
		err := a.get(ctx, ref, claim)
		if IsNotFound(err) || err == nil && claim.Status.Phase != corev1.ClaimBound && !a.waitsForPod(ctx, claim) {
			return &ref
		}
	}
	return nil
}

// selectedNode is the annotation of a claim for which the scheduler has chosen a node:
// from then on the Pod waits for the claim.
const selectedNode = "volume.kubernetes.io/selected-node"

// claim is a PersistentVolumeClaim.
func (a *asker) claim(ctx context.Context, ref describe.Ref, _ bool) (answer, error) {
	claim := &corev1.PersistentVolumeClaim{}
	err := a.get(ctx, ref, claim)
	if IsNotFound(err) {
		link := a.link(ref, ReasonMissing, "PersistentVolumeClaim %s not found", ref.Name)
		link.Next = a.command("kubectl get pvc" + namespaceFlag(ref))
		return answer{Links: []Link{link}}, nil
	}
	if err != nil {
		return answer{}, err
	}
	if claim.Status.Phase == corev1.ClaimBound {
		return answer{Links: []Link{a.link(ref, "", "PersistentVolumeClaim %s is bound to %s", ref.Name, claim.Spec.VolumeName)}}, nil
	}
	link := a.link(ref, ReasonUnbound, "PersistentVolumeClaim %s is %s: no volume is bound to it", ref.Name, strings.ToLower(string(claim.Status.Phase)))
	link.Next = a.kubectl("describe", ref)
	found := answer{Links: []Link{link}}
	if a.waitsForPod(ctx, claim) {
		found.Links[0].Sentence += " before a Pod that uses it can be scheduled"
		found.Then = a.podOf(ctx, claim)
		return found, nil
	}
	if name := claim.Spec.StorageClassName; name != nil && *name != "" {
		class := describe.Ref{Kind: describe.KindClass, Name: *name}
		if IsNotFound(a.get(ctx, class, &storagev1.StorageClass{})) {
			found.Links[0].Next = ""
			root := a.link(class, ReasonMissing, "StorageClass %s not found", *name)
			root.Next = a.command("kubectl get storageclasses")
			found.Links = append(found.Links, root)
		}
	}
	return found, nil
}

// waitsForPod is true of a claim for which nothing is provisioned before its Pod can be
// scheduled.
func (a *asker) waitsForPod(ctx context.Context, claim *corev1.PersistentVolumeClaim) bool {
	name := claim.Spec.StorageClassName
	if name == nil || *name == "" || claim.Annotations[selectedNode] != "" {
		return false
	}
	class := &storagev1.StorageClass{}
	err := a.get(ctx, describe.Ref{Kind: describe.KindClass, Name: *name}, class)
	return err == nil && class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

// podOf is the Pod that a claim waits for, nil if there is none.
func (a *asker) podOf(ctx context.Context, claim *corev1.PersistentVolumeClaim) *question {
	var pods corev1.PodList
	if err := a.Client.List(ctx, &pods, client.InNamespace(claim.Namespace)); err != nil {
		return nil
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		if p.Spec.NodeName == "" && slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim.Name
		}) {
			return a.about(describe.RefTo(describe.KindPod, p))
		}
	}
	return nil
}
