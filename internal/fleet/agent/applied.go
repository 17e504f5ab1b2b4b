package agent

import (
	"maps"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// applied is what has Flux apply a sync: a Kustomization, or a HelmRelease. All that is decided
// about either goes by this, so that there is one way for both.
type applied interface {
	client.Object

	kind() string
	// content is all of it, as it is compared.
	content() *unstructured.Unstructured
	// isSuspended reports whether Flux leaves it alone.
	isSuspended() bool
	// fetches is the source that it fetches from, sourceField where that is said in its spec.
	fetches() SourceKey
	sourceField() string
	// dependsOn are those of its namespace that it waits for, as far as Flux knows of it.
	dependsOn() []appliedKey
	// policy is what becomes of what it has applied when it is deleted, in the words of Flux.
	policy() string
	conditions() []metav1.Condition
	// handledAt is the request to reconcile that was handled last.
	handledAt() string
	// runs reports whether what a source has fetched is what runs, as it is wanted now.
	runs(source *Source) bool
	// drift is what another client has changed of what was applied, empty if Flux corrects it, or says nothing of it.
	drift() string
	// has reports whether the success that it has stands, and was at a revision.
	has(revision string) bool
}

// appliedKey names one of them in the namespace of the assemblage.
type appliedKey struct{ kind, name string }

// other is the key of the other kind that has the name.
func (k appliedKey) other() appliedKey {
	if k.kind == helmv2.HelmReleaseKind {
		return appliedKey{kustomizev1.KustomizationKind, k.name}
	}
	return appliedKey{helmv2.HelmReleaseKind, k.name}
}

func keyOf(k applied) appliedKey { return appliedKey{k.kind(), k.GetName()} }

// kustomization is a Kustomization.
type kustomization struct{ *kustomizev1.Kustomization }

func (kustomization) kind() string        { return kustomizev1.KustomizationKind }
func (kustomization) sourceField() string { return "sourceRef" }

func (k kustomization) content() *unstructured.Unstructured { return content(k.Kustomization) }

func (k kustomization) isSuspended() bool              { return k.Spec.Suspend }
func (k kustomization) policy() string                 { return k.Spec.DeletionPolicy }
func (k kustomization) conditions() []metav1.Condition { return k.Status.Conditions }
func (k kustomization) handledAt() string              { return k.Status.LastHandledReconcileAt }

func (k kustomization) fetches() SourceKey {
	return SourceKey{k.Spec.SourceRef.Kind, k.Spec.SourceRef.Name}
}

func (k kustomization) dependsOn() []appliedKey {
	var keys []appliedKey
	for _, on := range k.Spec.DependsOn {
		if on.Namespace == "" || on.Namespace == k.Namespace {
			keys = append(keys, appliedKey{k.kind(), on.Name})
		}
	}
	return keys
}

func (k kustomization) runs(source *Source) bool {
	return k.Status.LastAppliedRevision == source.Revision && (k.Status.ObservedGeneration == k.Generation || isTrue(k))
}

func (k kustomization) has(revision string) bool {
	ready := readyOf(k)
	return ready != nil && ready.Status != metav1.ConditionFalse && k.Status.ObservedGeneration == k.Generation &&
		Digest(k.Status.LastAppliedRevision) == Digest(revision)
}

// drift is empty: Flux applies all of it again.
func (kustomization) drift() string { return "" }

// release is a HelmRelease.
type release struct{ *helmv2.HelmRelease }

func (release) kind() string        { return helmv2.HelmReleaseKind }
func (release) sourceField() string { return "chartRef" }

func (r release) content() *unstructured.Unstructured { return content(r.HelmRelease) }

func (r release) isSuspended() bool              { return r.Spec.Suspend }
func (r release) conditions() []metav1.Condition { return r.Status.Conditions }
func (r release) handledAt() string              { return r.Status.LastHandledReconcileAt }

// leaving is the policy of a HelmRelease that was suspended to be deleted.
const leaving = "Leaving"

// policy is noted on a HelmRelease, which has no field for it. One that is to leave what it has
// installed is suspended before it is deleted: Flux uninstalls nothing then.
func (r release) policy() string { return vocabulary.ReleaseDeletionPolicy.Get(r.Annotations) }

func (r release) fetches() SourceKey {
	if ref := r.Spec.ChartRef; ref != nil {
		return SourceKey{ref.Kind, ref.Name}
	}
	return SourceKey{}
}

func (r release) dependsOn() []appliedKey {
	var keys []appliedKey
	for _, on := range r.Spec.DependsOn {
		if on.Namespace == "" || on.Namespace == r.Namespace {
			keys = append(keys, appliedKey{r.kind(), on.Name})
		}
	}
	return keys
}

func (r release) runs(source *Source) bool {
	if source.Chart {
		return r.isDeployed() && r.Status.LastAttemptedRevision == source.Revision
	}
	return r.isDeployed() && r.Status.LastAttemptedRevisionDigest == Digest(source.Revision)
}

func (r release) drift() string {
	said := apimeta.FindStatusCondition(r.Status.Conditions, helmv2.DriftedCondition)
	if said == nil || said.Status != metav1.ConditionTrue || r.GetDriftDetection().GetMode() != helmv2.DriftDetectionWarn {
		return ""
	}
	return said.Message
}

func (r release) has(revision string) bool {
	digest, is := Digest(revision), &r.Status
	_, sum, isSum := strings.Cut(digest, ":")
	return r.isDeployed() && (is.LastAttemptedRevision == digest || is.LastAttemptedRevisionDigest == digest ||
		isSum && strings.Contains(is.LastAttemptedRevision, "+"+sum[:min(len(sum), chartSum)]))
}

// chartSum is how much of a commit or digest Flux puts into the version of a chart.
const chartSum = 12

// isDeployed reports whether the newest Helm release is the chart with the values that were attempted last, for
// the HelmRelease as it is now. One that failed is not, nor is one that Flux has rolled back: that is
// of what was attempted before.
func (r release) isDeployed() bool {
	is, newest := &r.Status, r.Status.History.Latest()
	return newest != nil && newest.Status == deployed && newest.ChartVersion == is.LastAttemptedRevision && newest.ConfigDigest == is.LastAttemptedConfigDigest &&
		is.LastAttemptedGeneration == r.Generation && is.ObservedGeneration == r.Generation && is.Failures == 0 &&
		!apimeta.IsStatusConditionTrue(is.Conditions, meta.StalledCondition) && apimeta.FindStatusCondition(is.Conditions, helmv2.RemediatedCondition) == nil
}

// deployed is how Helm calls a release that runs.
const deployed = "deployed"

// notedDependencies are those of the other kind that it was applied after. Flux does not know
// of these.
func notedDependencies(k applied) []appliedKey {
	var keys []appliedKey
	for noted := range strings.SplitSeq(vocabulary.AppliedAfter.Get(k.GetAnnotations()), ",") {
		if kind, name, ok := strings.Cut(noted, "/"); ok {
			keys = append(keys, appliedKey{kind, name})
		}
	}
	return keys
}

// readyOf is the condition Ready, nil if there is none.
func readyOf(k applied) *metav1.Condition {
	return apimeta.FindStatusCondition(k.conditions(), meta.ReadyCondition)
}

func isTrue(k applied) bool {
	return apimeta.IsStatusConditionTrue(k.conditions(), meta.ReadyCondition)
}

// appliedOf is an object of the cache as one of both kinds, nil if it is none.
func appliedOf(obj runtime.Object) applied {
	switch o := obj.(type) {
	case *kustomizev1.Kustomization:
		return kustomization{o}
	case *helmv2.HelmRelease:
		return release{o}
	default:
		return nil
	}
}

// appliedObject is an empty object of a kind that has Flux apply something.
func appliedObject(kind string) client.Object {
	if kind == helmv2.HelmReleaseKind {
		return &helmv2.HelmRelease{}
	}
	return &kustomizev1.Kustomization{}
}

// all are those that were seen.
func (o *Observed) all() []applied {
	var all []applied
	for _, name := range slices.Sorted(maps.Keys(o.Kustomizations)) {
		all = append(all, kustomization{o.Kustomizations[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(o.Releases)) {
		all = append(all, release{o.Releases[name]})
	}
	return all
}

// at is the one of a key, nil if there is none.
func (o *Observed) at(key appliedKey) applied {
	if r := o.Releases[key.name]; key.kind == helmv2.HelmReleaseKind && r != nil {
		return release{r}
	}
	if k := o.Kustomizations[key.name]; key.kind == kustomizev1.KustomizationKind && k != nil {
		return kustomization{k}
	}
	return nil
}

// isOurs is true of one that belongs to the assemblage.
func (o *Observed) isOurs(k applied) bool {
	return k != nil && slices.ContainsFunc(k.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == o.Assemblage.UID })
}

var (
	// sourceKinds are the kinds of sources that exist wherever Flux does.
	sourceKinds = []string{sourcev1.GitRepositoryKind, sourcev1.OCIRepositoryKind, sourcev1.BucketKind}
	// chartKinds are those of charts, besides.
	chartKinds = []string{sourcev1.HelmRepositoryKind, sourcev1.HelmChartKind}
)
