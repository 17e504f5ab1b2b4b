package agent

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/fleet/assemblage"
	"github.com/spillway-dev/spillway/internal/fleet/binding"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// observer makes all the reads. Assemblages and the objects of Flux come from the
// cache, which has seen the controller's own writes; what bindings refer to comes
// from the API server.
type observer struct {
	flavor    flavor
	options   Options
	cached    client.Reader
	referents assemblage.Referents
	// helm is set once the kinds of Helm are installed, and watched.
	helm *atomic.Bool
	// clusters and orphans are nil where Flux is applying where it runs.
	clusters *assemblage.Clusters
	orphans  *assemblage.Orphans
}

// snapshot is one assemblage and what was read about it.
type snapshot struct {
	*Observed

	object client.Object
}

// observe reads an assemblage and what there is of Flux, without what bindings refer
// to.
func (b *observer) observe(ctx context.Context, key types.NamespacedName) (s snapshot, err error) {
	obj := b.flavor.object()
	err = b.cached.Get(ctx, key, obj)
	if apierrors.IsNotFound(err) {
		return s, ring.ErrGone
	}
	if err != nil {
		return s, fmt.Errorf("get %s: %w", b.flavor.kind, err)
	}
	b.referents.Begin(key)
	o := &Observed{
		Now: b.options.Now(), Assemblage: b.flavor.read(obj), Known: binding.Known{},
		Kustomizations: map[string]*kustomizev1.Kustomization{}, Releases: map[string]*helmv2.HelmRelease{}, Sources: map[SourceKey]*Source{},
	}
	if err := errors.Join(b.observeApplied(ctx, o), b.observeSources(ctx, o), b.observeReach(ctx, o, obj)); err != nil {
		return s, err
	}
	if b.orphans != nil {
		o.Orphaned, err = b.orphans.Orphaned(ctx, o.Assemblage.GroupVersionKind, obj, len(o.Assemblage.Syncs))
	}
	return snapshot{Observed: o, object: obj}, err
}

// forget forgets an assemblage that is gone.
func (b *observer) forget(key types.NamespacedName) {
	b.referents.Forget(key)
	if b.orphans != nil {
		b.orphans.Forget(key)
	}
}

// observeApplied reads the Kustomizations and HelmReleases that belong to the assemblage, and
// those whose names it needs.
func (b *observer) observeApplied(ctx context.Context, o *Observed) error {
	own := []client.ListOption{client.InNamespace(o.Assemblage.Namespace), client.MatchingFields{ownerIndex: string(o.Assemblage.UID)}}
	ks, rs := &kustomizev1.KustomizationList{}, &helmv2.HelmReleaseList{}
	if err := b.cached.List(ctx, ks, own...); err != nil {
		return fmt.Errorf("list Kustomizations: %w", err)
	}
	for i := range ks.Items {
		o.Kustomizations[ks.Items[i].Name] = &ks.Items[i]
	}
	if o.HelmMissing = !b.hasHelm(); !o.HelmMissing {
		if err := b.cached.List(ctx, rs, own...); err != nil {
			return fmt.Errorf("list HelmReleases: %w", err)
		}
	}
	for i := range rs.Items {
		o.Releases[rs.Items[i].Name] = &rs.Items[i]
	}
	for i := range o.Assemblage.Syncs {
		if err := b.observeNamed(ctx, o, o.keyOf(&o.Assemblage.Syncs[i])); err != nil {
			return err
		}
	}
	return nil
}

// observeNamed reads what has a name that is needed, if it was not read yet.
func (b *observer) observeNamed(ctx context.Context, o *Observed, key appliedKey) error {
	if o.at(key) != nil || key.kind == helmv2.HelmReleaseKind && o.HelmMissing {
		return nil
	}
	obj := appliedObject(key.kind)
	err := b.cached.Get(ctx, client.ObjectKey{Namespace: o.Assemblage.Namespace, Name: key.name}, obj)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get %s %s: %w", key.kind, key.name, err)
	}
	switch obj := obj.(type) {
	case *kustomizev1.Kustomization:
		o.Kustomizations[key.name] = obj
	case *helmv2.HelmRelease:
		o.Releases[key.name] = obj
	}
	return nil
}

// hasHelm reports whether the kinds of Helm are installed.
func (b *observer) hasHelm() bool { return b.helm != nil && b.helm.Load() }

func (b *observer) observeSources(ctx context.Context, o *Observed) error {
	for i := range o.Assemblage.Syncs {
		s := &o.Assemblage.Syncs[i]
		if !s.isAssigned() || s.helm() != nil && o.HelmMissing {
			continue
		}
		for _, key := range sourceKeys(s) {
			if err := b.observeSource(ctx, o, key); err != nil {
				return err
			}
		}
	}
	return nil
}

// observeSource reads a source once, and notes it if it exists.
func (b *observer) observeSource(ctx context.Context, o *Observed, key SourceKey) error {
	if _, seen := o.Sources[key]; seen {
		return nil
	}
	source, err := b.source(ctx, o.Assemblage.Namespace, key)
	if source != nil {
		o.Sources[key] = source
	}
	return err
}

// source reads a source, nil if it does not exist.
func (b *observer) source(ctx context.Context, namespace string, key SourceKey) (*Source, error) {
	obj := sourceObject(key.Kind)
	if obj == nil {
		return nil, nil //nolint:nilnil // of a kind that Flux does not have there is none
	}
	err := b.cached.Get(ctx, client.ObjectKey{Namespace: namespace, Name: key.Name}, obj)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // none is a common answer
	}
	if err != nil {
		return nil, fmt.Errorf("get %s %s: %w", key.Kind, key.Name, err)
	}
	return sourceOf(obj), nil
}

// sourceObject is an empty object of a kind of source, nil if there is no such kind.
func sourceObject(kind string) fluxSource {
	switch kind {
	case sourcev1.GitRepositoryKind:
		return &sourcev1.GitRepository{}
	case sourcev1.OCIRepositoryKind:
		return &sourcev1.OCIRepository{}
	case sourcev1.BucketKind:
		return &sourcev1.Bucket{}
	case sourcev1.HelmRepositoryKind:
		return &sourcev1.HelmRepository{}
	case sourcev1.HelmChartKind:
		return &sourcev1.HelmChart{}
	default:
		return nil
	}
}

// fluxSource is what the sources of Flux have in common.
type fluxSource interface {
	client.Object
	sourcev1.Source
	meta.ObjectWithConditions
}

// sourceOf is what is seen of a source.
func sourceOf(obj fluxSource) *Source {
	s := &Source{
		UID: obj.GetUID(), Generation: obj.GetGeneration(), Deleting: obj.GetDeletionTimestamp() != nil,
		Shared: vocabulary.SharedSource.Get(obj.GetLabels()) == "true", Content: content(obj),
		Ready: apimeta.FindStatusCondition(obj.GetConditions(), meta.ReadyCondition), ObservedGeneration: observedGeneration(obj),
	}
	if a := obj.GetArtifact(); a != nil {
		s.Revision = a.Revision
	}
	if chart, ok := obj.(*sourcev1.HelmChart); ok {
		if s.Chart, s.Origin = true, chart.Status.ObservedSourceArtifactRevision; chart.Spec.SourceRef.Kind == sourcev1.HelmRepositoryKind {
			s.Origin = s.Revision
		}
	}
	return s
}

func observedGeneration(obj fluxSource) int64 {
	switch s := obj.(type) {
	case *sourcev1.GitRepository:
		return s.Status.ObservedGeneration
	case *sourcev1.OCIRepository:
		return s.Status.ObservedGeneration
	case *sourcev1.Bucket:
		return s.Status.ObservedGeneration
	case *sourcev1.HelmRepository:
		return s.Status.ObservedGeneration
	case *sourcev1.HelmChart:
		return s.Status.ObservedGeneration
	default:
		return 0
	}
}

// observeReach asks how the cluster can be reached. It does not wait for it. One that
// was taken away is given up.
func (b *observer) observeReach(ctx context.Context, o *Observed, obj client.Object) (err error) {
	if b.clusters == nil {
		return nil
	}
	if a := &o.Assemblage; a.Deleting {
		if !a.Abandoned {
			a.Abandoned, err = b.clusters.IsLost(ctx, obj, a.Secret)
		}
		return err
	}
	problem, err := b.clusters.Reach(ctx, o.Assemblage.secretKey())
	o.Reach = Reach{Problem: problem, Verified: map[string]bool{}}
	return err
}

// read makes the reads that a plan asks for: it asks the cluster whether it answers, and
// about failures, and reads what bindings refer to.
func (b *observer) read(ctx context.Context, s *snapshot, p *Plan) (more bool, err error) {
	if b.clusters != nil && p.Verify {
		b.clusters.Verify(s.Assemblage.secretKey(), outcome.AskEvery)
	}
	if b.ask(s.Observed, p.Asks) {
		return true, nil
	}
	return b.referents.Complete(ctx, s.Assemblage.NamespacedName, p.Needs, s.Known)
}

// ask asks the cluster about failures. It is true if there is an answer that was not
// known yet.
func (b *observer) ask(o *Observed, asks []string) (news bool) {
	for _, failure := range asks {
		if b.clusters != nil && !o.Reach.Verified[failure] && b.clusters.Answered(o.Assemblage.secretKey(), failure) {
			o.Reach.Verified[failure], news = true, true
		}
	}
	return news
}
