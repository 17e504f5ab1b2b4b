package agent

import (
	"slices"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
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
	return []kube.Interest{{Object: &kustomizev1.Kustomization{}, Reduce: reduceKustomization}, {Object: &helmv2.HelmRelease{}, Reduce: reduceRelease}}
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

// reduceRelease does the same with a HelmRelease, of which also how the newest Helm release is matters.
func reduceRelease(obj client.Object) {
	r, ok := obj.(*helmv2.HelmRelease)
	if !ok {
		return
	}
	r.ManagedFields = nil
	r.Status.Inventory = nil
	if newest := r.Status.History.Latest(); newest != nil {
		r.Status.History = helmv2.Snapshots{{Version: newest.Version, Status: newest.Status, ChartVersion: newest.ChartVersion, ConfigDigest: newest.ConfigDigest}}
	}
	r.Status.Conditions = slices.DeleteFunc(r.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type != meta.ReadyCondition && c.Type != meta.StalledCondition && c.Type != helmv2.RemediatedCondition && c.Type != helmv2.DriftedCondition
	})
	if !slices.ContainsFunc(r.OwnerReferences, isAssemblage) {
		r.Annotations, r.Labels = nil, nil
		r.Spec, r.Status = helmv2.HelmReleaseSpec{ChartRef: r.Spec.ChartRef}, helmv2.HelmReleaseStatus{}
	}
}

func isAssemblage(owner metav1.OwnerReference) bool {
	return owner.APIVersion == v1alpha1.GroupVersion.String() && (owner.Kind == local.kind || owner.Kind == remote.kind)
}
