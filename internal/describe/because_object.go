package describe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/plans/task"
	"github.com/spillway-dev/spillway/rollout"
)

// unboundClaim is the first claim of a Pod to which no volume is bound, nil if all
// are bound, wait for the Pod themselves, or may not be looked at.
func (a *asker) unboundClaim(ctx context.Context, p *corev1.Pod) *Ref {
	for i := range p.Spec.Volumes {
		source := p.Spec.Volumes[i].PersistentVolumeClaim
		if source == nil {
			continue
		}
		ref, claim := Ref{Kind: kindClaim, Namespace: p.Namespace, Name: source.ClaimName}, &corev1.PersistentVolumeClaim{}
		err := a.get(ctx, ref, claim)
		if isNotFound(err) || err == nil && claim.Status.Phase != corev1.ClaimBound && !a.waitsForPod(ctx, claim) {
			return &ref
		}
	}
	return nil
}

// selectedNode is the annotation of a claim for which the scheduler has chosen a node:
// from then on the Pod waits for the claim.
const selectedNode = "volume.kubernetes.io/selected-node"

// waitsForPod is true of a claim for which nothing is provisioned before its Pod can be
// scheduled.
func (a *asker) waitsForPod(ctx context.Context, claim *corev1.PersistentVolumeClaim) bool {
	name := claim.Spec.StorageClassName
	if name == nil || *name == "" || claim.Annotations[selectedNode] != "" {
		return false
	}
	class := &storagev1.StorageClass{}
	err := a.get(ctx, Ref{Kind: kindClass, Name: *name}, class)
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
			return a.about(refTo(kindPod, p))
		}
	}
	return nil
}

// claim is a PersistentVolumeClaim.
func (a *asker) claim(ctx context.Context, ref Ref, _ bool) (answer, error) {
	claim := &corev1.PersistentVolumeClaim{}
	err := a.get(ctx, ref, claim)
	if isNotFound(err) {
		link := a.link(ref, ReasonMissing, "PersistentVolumeClaim %s does not exist", ref.Name)
		link.Next = a.pointless("kubectl get pvc -n " + ref.Namespace)
		return answer{links: []Link{link}}, nil
	}
	if err != nil {
		return answer{}, err
	}
	if claim.Status.Phase == corev1.ClaimBound {
		return answer{links: []Link{a.link(ref, "", "PersistentVolumeClaim %s is bound to %s", ref.Name, claim.Spec.VolumeName)}}, nil
	}
	link := a.link(ref, ReasonUnbound, "PersistentVolumeClaim %s is %s: no volume is bound to it", ref.Name, strings.ToLower(string(claim.Status.Phase)))
	link.Next = a.kubectl("describe", ref)
	found := answer{links: []Link{link}}
	if a.waitsForPod(ctx, claim) {
		found.links[0].Sentence += " before a Pod that uses it can be scheduled"
		found.on = a.podOf(ctx, claim)
		return found, nil
	}
	if name := claim.Spec.StorageClassName; name != nil && *name != "" {
		class := Ref{Kind: kindClass, Name: *name}
		if isNotFound(a.get(ctx, class, &storagev1.StorageClass{})) {
			found.links[0].Next = ""
			root := a.link(class, ReasonMissing, "StorageClass %s does not exist", *name)
			root.Next = a.pointless("kubectl get storageclasses")
			found.links = append(found.links, root)
		}
	}
	return found, nil
}

// disruptionBudget is a native one: whether anything may be evicted.
func (a *asker) disruptionBudget(ctx context.Context, ref Ref, _ bool) (answer, error) {
	b := &policyv1.PodDisruptionBudget{}
	if err := a.get(ctx, ref, b); err != nil {
		return answer{}, err
	}
	if b.Status.DisruptionsAllowed > 0 {
		return answer{links: []Link{a.link(ref, "", "PodDisruptionBudget %s lets %d Pods go at present", ref.Name, b.Status.DisruptionsAllowed)}}, nil
	}
	link := a.link(ref, ReasonNoBudget, "PodDisruptionBudget %s lets no Pod go: %d of %d are healthy, and %d have to be",
		ref.Name, b.Status.CurrentHealthy, b.Status.ExpectedPods, b.Status.DesiredHealthy)
	link.Next = a.kubectl("describe", ref)
	return answer{links: []Link{link}}, nil
}

// zoneBudget is one of ours: whether anything may be evicted at all.
func (a *asker) zoneBudget(ctx context.Context, ref Ref, _ bool) (answer, error) {
	b := &zonesv1.ZoneAwarePodDisruptionBudget{}
	if err := a.get(ctx, ref, b); err != nil {
		return answer{}, err
	}
	var facts []Fact
	for name, d := range b.Status.DisruptedPods {
		facts = append(facts, Fact{"evicted", fmt.Sprintf("%s, at %s", name, rollout.Clock(d.At.Time))})
	}
	if n := b.Spec.MaxUnavailable; n != nil && *n == 0 {
		link := a.link(ref, ReasonNoBudget, "ZoneAwarePodDisruptionBudget %s lets no Pod be evicted: spec.maxUnavailable is 0", ref.Name)
		link.Next = a.kubectl("patch", ref, "--type=merge", "-p", `'{"spec":{"maxUnavailable":1}}'`)
		return answer{links: []Link{link}, facts: facts}, nil
	}
	return answer{links: []Link{a.link(ref, "", "ZoneAwarePodDisruptionBudget %s lets Pods be evicted, in one zone at a time", ref.Name)}, facts: facts}, nil
}

// errUnknownKind: nothing says what kind it is.
var errUnknownKind = errors.New("the cluster does not know the kind")

// object is anything else: how kstatus judges it.
func (a *asker) object(ctx context.Context, ref Ref, first bool) (answer, error) {
	u, err := a.readAny(ctx, ref)
	if isNotFound(err) && first {
		return answer{}, fmt.Errorf("there is no %s %s%s", ref.Kind, ref.Name, inNamespace(ref))
	}
	if isNotFound(err) {
		link := a.link(ref, ReasonMissing, "%s %s is not there", ref.Kind, ref.Name)
		link.Next = a.pointless("kubectl get " + resourceIn(ref) + namespaceFlag(ref))
		return answer{links: []Link{link}}, nil
	}
	if err != nil {
		return answer{}, err
	}
	return answer{links: []Link{a.judged(ref, u)}}, nil
}

func inNamespace(ref Ref) string {
	if ref.Namespace == "" {
		return ""
	}
	return " in namespace " + ref.Namespace
}

func namespaceFlag(ref Ref) string {
	if ref.Namespace == "" {
		return ""
	}
	return " -n " + ref.Namespace
}

// judged is how an object does.
func (a *asker) judged(ref Ref, u *unstructured.Unstructured) Link {
	if names := u.GetFinalizers(); u.GetDeletionTimestamp() != nil && len(names) > 0 {
		return a.finalizer(ref, names[0])
	}
	lacks, fatal := task.Judge(u)
	if lacks == "" {
		link := a.link(ref, "", "%s %s is as it should be", ref.Kind, ref.Name)
		link.Phase = rollout.PhaseComplete
		return link
	}
	link := a.link(ref, ReasonNotReady, "%s %s is not ready: %s", ref.Kind, ref.Name, strings.TrimPrefix(lacks, "waiting for "+ref.Kind+" "+ref.Name+": "))
	link.Phase, link.Next, link.Owner = rollout.PhaseWaiting, a.kubectl("describe", ref), ownerOf(u)
	if fatal {
		link.Phase, link.Reason = rollout.PhaseFailed, ReasonFailed
	}
	return link
}

// readAny reads an object of whatever kind.
func (a *asker) readAny(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	gvk, err := a.gvk(ref)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u, a.get(ctx, ref, u)
}

// gvk is the kind of a reference: what it says, or else the one of that name.
func (a *asker) gvk(ref Ref) (schema.GroupVersionKind, error) {
	if ref.APIVersion != "" {
		return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), nil
	}
	for gvk := range a.Client.Scheme().AllKnownTypes() {
		if gvk.Kind != ref.Kind || gvk.Version == "__internal" {
			continue
		}
		if mapping, err := a.Client.RESTMapper().RESTMapping(gvk.GroupKind()); err == nil {
			return mapping.GroupVersionKind, nil
		} else if !apimeta.IsNoMatchError(err) {
			return gvk, fmt.Errorf("look for the kind %s: %w", ref.Kind, err)
		}
	}
	return schema.GroupVersionKind{}, fmt.Errorf("%s: %w", ref.Kind, errUnknownKind)
}
