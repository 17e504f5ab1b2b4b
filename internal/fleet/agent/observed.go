package agent

import (
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/assemblage"
	"github.com/spillway-dev/spillway/internal/fleet/binding"
	"github.com/spillway-dev/spillway/internal/fleet/fluxspec"
)

// Observed is one assemblage, read at one moment. It is immutable.
type Observed struct {
	Now        time.Time
	Assemblage Assemblage
	// Known are the objects that bindings refer to, as far as they were looked at.
	Known binding.Known
	// Kustomizations are those that belong to the assemblage, and those that have a
	// name that one of its syncs needs.
	Kustomizations map[string]*kustomizev1.Kustomization
	// Releases are the HelmReleases of which the same is true.
	Releases map[string]*helmv2.HelmRelease
	// HelmMissing is true while the kinds of Helm are not installed.
	HelmMissing bool
	// Sources are those of Flux that its syncs need.
	Sources map[SourceKey]*Source
	// Reach is how to reach the cluster, on the hub.
	Reach Reach
	// Refusals are the writes of this pass that were not accepted.
	Refusals assemblage.Refusals
	// Orphaned is true for an assemblage of the hub without syncs that only Spillway has
	// written.
	Orphaned bool
}

// Assemblage is what an Assemblage and a RemoteAssemblage have in common.
type Assemblage struct {
	schema.GroupVersionKind
	types.NamespacedName

	UID                    types.UID
	ResourceVersion        string
	Generation             int64
	Deleting, HasFinalizer bool
	// Abandoned is true if it may go without taking anything away: a user has said
	// so, or its cluster was deleted.
	Abandoned bool
	// Cluster is the name of the cluster, empty where it is not known.
	Cluster string
	// Secret is that of the kubeconfig, empty if Flux is applying where it runs.
	Secret string
	Syncs  []Sync
	Status v1alpha1.AssemblageStatus
}

// meta is what identifies the assemblage.
func (a *Assemblage) meta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: a.Namespace, Name: a.Name, UID: a.UID}
}

// isRemote is true if Flux is applying to another cluster.
func (a *Assemblage) isRemote() bool { return a.Secret != "" }

// Sync is what the syncs of all assemblages have in common.
type Sync struct {
	v1alpha1.Assignment
	v1alpha1.SyncOptions

	Bindings  []v1alpha1.Binding
	Source    *v1alpha1.Source
	SourceRef *v1alpha1.SourceReference
	Package   *v1alpha1.Package
}

// isAssigned is false of a sync that merely pins a cluster.
func (s *Sync) isAssigned() bool { return s.Source != nil || s.SourceRef != nil }

// helm is how it is installed with Helm, nil if it is not.
func (s *Sync) helm() *v1alpha1.Helm { return fluxspec.HelmOf(s.Source, s.Package) }

// SourceKey names a source of Flux in the namespace of the assemblage.
type SourceKey struct{ Kind, Name string }

// Source is a source of Flux, as far as anything is decided about it.
type Source struct {
	UID        types.UID
	Generation int64
	Deleting   bool
	// Shared is true of one that this package has made.
	Shared bool
	// Content is what is compared with what is wanted.
	Content *unstructured.Unstructured
	// Ready is its condition, nil if there is none.
	Ready *metav1.Condition
	// ObservedGeneration is what its status speaks of.
	ObservedGeneration int64
	// Revision is that of its artifact, empty if there is none.
	Revision string
	// Chart is true of a HelmChart, Origin what its artifact was made of: a version of a
	// chart, or what a Git repository was at.
	Chart  bool
	Origin string
}

// resolved is the exact version that was fetched.
func (s *Source) resolved() string {
	if s.Chart {
		return s.Origin
	}
	return s.Revision
}

// Reach is how to reach a cluster from the hub.
type Reach struct {
	// Problem is why it cannot be, nil if it can be, or if that is unknown.
	Problem error
	// Verified are the failures after which the cluster has answered.
	Verified map[string]bool
}
