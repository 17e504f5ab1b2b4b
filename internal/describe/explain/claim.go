package explain

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/describe"
)

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
