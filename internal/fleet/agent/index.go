package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/kube"
)

// The indices of the cache.
const (
	// ownerIndex finds Kustomizations and HelmReleases by the UID of the assemblage that they belong to.
	ownerIndex = "spillway.owner"
	// fetchIndex finds Kustomizations, HelmReleases, HelmCharts and assemblages by the sources that
	// they fetch from, as KIND/NAME.
	fetchIndex = "spillway.fetches"
	// secretIndex finds assemblages by the Secret with the kubeconfig of their cluster.
	secretIndex = "spillway.secret"
)

// needed are the kinds without which nothing is done about assemblages of a kind.
func needed(f flavor) kube.Needed {
	n := kube.Needed{
		Ring: "fleet", Called: "kinds are", Without: "nothing is done about " + f.kind + "s",
		Action: "install Flux, and apply what \"spillway install --export\" prints",
		Kinds: []schema.GroupVersionKind{
			v1alpha1.GroupVersion.WithKind(f.kind), kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind),
		},
	}
	return withSources(n, sourceKinds)
}

// withSources is what is needed with kinds of sources.
func withSources(n kube.Needed, kinds []string) kube.Needed {
	for _, kind := range kinds {
		n.Kinds = append(n.Kinds, sourcev1.GroupVersion.WithKind(kind))
	}
	return n
}

// neededForHelm are the kinds without which nothing is installed with Helm. A cluster need not
// have them.
func neededForHelm(f flavor) kube.Needed {
	n := kube.Needed{
		Ring: "fleet", Called: "kinds of Helm are", Without: "no " + f.kind + " installs a chart", Action: "install Flux with helm-controller", IsOptional: true,
		Kinds: []schema.GroupVersionKind{helmv2.GroupVersion.WithKind(helmv2.HelmReleaseKind)},
	}
	return withSources(n, chartKinds)
}

// index adds the indices. Those of Kustomizations may exist already, for the other
// kind of assemblage.
func index(ctx context.Context, mgr ctrl.Manager, f flavor) error {
	indexer := mgr.GetFieldIndexer()
	err := errors.Join(
		indexer.IndexField(ctx, f.object(), fetchIndex, func(obj client.Object) []string { return fetches(f.read(obj)) }),
		indexer.IndexField(ctx, f.object(), secretIndex, func(obj client.Object) []string { return []string{f.read(obj).Secret} }),
		indexApplied(ctx, indexer, &kustomizev1.Kustomization{}),
	)
	if err != nil {
		return fmt.Errorf("index %ss: %w", f.kind, err)
	}
	return nil
}

// indexHelm adds the indices of the kinds of Helm.
func indexHelm(ctx context.Context, indexer client.FieldIndexer) error {
	return errors.Join(
		indexApplied(ctx, indexer, &helmv2.HelmRelease{}),
		unlessTwice(indexer.IndexField(ctx, &sourcev1.HelmChart{}, fetchIndex, func(obj client.Object) []string {
			return []string{sourceOfChart(obj).String()}
		})),
	)
}

func indexApplied(ctx context.Context, indexer client.FieldIndexer, kind client.Object) error {
	err := indexer.IndexField(ctx, kind, ownerIndex, func(obj client.Object) []string {
		if owner := metav1.GetControllerOf(obj); owner != nil {
			return []string{string(owner.UID)}
		}
		return nil
	})
	return errors.Join(unlessTwice(err), unlessTwice(indexer.IndexField(ctx, kind, fetchIndex, func(obj client.Object) []string {
		if k := appliedOf(obj); k != nil {
			return []string{k.fetches().String()}
		}
		return nil
	})))
}

// unlessTwice is an error, unless the other kind of assemblage has added the index.
func unlessTwice(err error) error {
	if err != nil && strings.Contains(err.Error(), "conflict") {
		return nil
	}
	return err
}

// sourceOfChart is what a HelmChart is made of.
func sourceOfChart(obj client.Object) SourceKey {
	if chart, ok := obj.(*sourcev1.HelmChart); ok {
		return SourceKey{chart.Spec.SourceRef.Kind, chart.Spec.SourceRef.Name}
	}
	return SourceKey{}
}

// fetches are the sources that an assemblage needs.
func fetches(a Assemblage) []string {
	var keys []string
	for i := range a.Syncs {
		if a.Syncs[i].isAssigned() {
			for _, key := range sourceKeys(&a.Syncs[i]) {
				keys = append(keys, key.String())
			}
		}
	}
	return keys
}

// toThoseThatFetch finds the assemblages that need a source.
func toThoseThatFetch(cached client.Reader, f flavor, kind string) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		return found(ctx, cached, f, client.InNamespace(obj.GetNamespace()), client.MatchingFields{fetchIndex: SourceKey{kind, obj.GetName()}.String()})
	}
}

// toThoseBySecret finds the assemblages of the cluster whose kubeconfig is in a Secret.
func toThoseBySecret(cached client.Reader, f flavor) func(context.Context, types.NamespacedName) []reconcile.Request {
	return func(ctx context.Context, secret types.NamespacedName) []reconcile.Request {
		return found(ctx, cached, f, client.InNamespace(secret.Namespace), client.MatchingFields{secretIndex: secret.Name})
	}
}

func found(ctx context.Context, cached client.Reader, f flavor, options ...client.ListOption) []reconcile.Request {
	list := f.list()
	if err := cached.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil // the cache has stopped
	}
	var requests []reconcile.Request
	each(list, func(o client.Object) {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
	})
	return requests
}

func each(list client.ObjectList, do func(client.Object)) {
	_ = apimeta.EachListItem(list, func(obj runtime.Object) error { // it is a list
		if o, ok := obj.(client.Object); ok {
			do(o)
		}
		return nil
	})
}

// String is how indices know a source.
func (k SourceKey) String() string { return k.Kind + "/" + k.Name }
