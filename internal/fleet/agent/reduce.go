package agent

import (
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/kube"
)

// Reduced are the kinds of which the cache keeps only what is looked at. They need not
// be installed.
func Reduced() []kube.Interest {
	return []kube.Interest{{Object: &kustomizev1.Kustomization{}, Reduce: reduceKustomization}}
}

// reduceKustomization leaves of a Kustomization what is decided upon. The rest is most of
// it: an entry for each object that was applied, and how the last attempts went. Of one
// that no assemblage has made, only what it fetches from matters, and that it exists.
func reduceKustomization(obj client.Object) {
	k, ok := obj.(*kustomizev1.Kustomization)
	if !ok {
		return
	}
	k.ManagedFields = nil
	k.Status.Inventory, k.Status.History = nil, nil
	k.Status.Conditions = slices.DeleteFunc(k.Status.Conditions, func(c metav1.Condition) bool { return c.Type != meta.ReadyCondition })
	if !slices.ContainsFunc(k.OwnerReferences, isAssemblage) {
		k.Annotations, k.Labels = nil, nil
		k.Spec, k.Status = kustomizev1.KustomizationSpec{SourceRef: k.Spec.SourceRef}, kustomizev1.KustomizationStatus{}
	}
}

func isAssemblage(owner metav1.OwnerReference) bool {
	return owner.APIVersion == v1alpha1.GroupVersion.String() && (owner.Kind == local.kind || owner.Kind == remote.kind)
}
