package agent

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spillway-dev/spillway/internal/fleet/assemblage"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// collector deletes the sources of a kind that this package has made once nothing
// fetches from them: no Kustomization or HelmRelease, whichever client created it, no HelmChart, and
// no assemblage that is about to create one.
type collector struct {
	flavor flavor
	kind   string
	cached client.Reader
	writer client.Writer
	// helm is set once the kinds of Helm are installed, and watched.
	helm *atomic.Bool
}

// startCollector starts the collector of a kind. Others may be watched for it later on.
func startCollector(mgr ctrl.Manager, f flavor, kind string, helm *atomic.Bool) (*collector, controller.Controller, error) {
	c := &collector{flavor: f, kind: kind, cached: mgr.GetClient(), writer: mgr.GetClient(), helm: helm}
	built, err := ctrl.NewControllerManagedBy(mgr).Named(strings.ToLower("fleet-"+f.kind+"-"+kind)).
		Watches(sourceObject(kind), &handler.EnqueueRequestForObject{}, builder.WithPredicates(predicate.NewPredicateFuncs(isShared))).
		Watches(&kustomizev1.Kustomization{}, handler.EnqueueRequestsFromMapFunc(c.fetchedBy)).
		Watches(f.object(), handler.EnqueueRequestsFromMapFunc(c.fetchedByAssemblage), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Build(c)
	if err != nil {
		return nil, nil, fmt.Errorf("build the collector of %s: %w", kind, err)
	}
	return c, built, nil
}

// fetchedBy is what a Kustomization, a HelmRelease or a HelmChart fetches from.
func (c *collector) fetchedBy(_ context.Context, obj client.Object) []reconcile.Request {
	from := sourceOfChart(obj)
	if k := appliedOf(obj); k != nil {
		from = k.fetches()
	}
	if from.Kind != c.kind {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: from.Name}}}
}

func (c *collector) fetchedByAssemblage(_ context.Context, obj client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, key := range fetches(c.flavor.read(obj)) {
		if name, ok := strings.CutPrefix(key, c.kind+"/"); ok {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: name}})
		}
	}
	return requests
}

// Reconcile deletes a source that is not used.
func (c *collector) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	defer ring.UnderWay.Begin("fleet-collector")()
	source := sourceObject(c.kind)
	if err := c.cached.Get(ctx, req.NamespacedName, source); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err) //nolint:wrapcheck // nothing to add
	}
	if !isShared(source) || source.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, nil
	}
	needed, err := c.isNeeded(ctx, source)
	if err != nil || needed {
		return reconcile.Result{}, err
	}
	err = collect(ctx, c.writer, source)
	if ring.IsConflict(err) {
		return reconcile.Result{RequeueAfter: assemblage.ConflictPause}, nil
	}
	return reconcile.Result{}, err
}

func (c *collector) isNeeded(ctx context.Context, source client.Object) (bool, error) {
	key := SourceKey{c.kind, source.GetName()}.String()
	lists := []client.ObjectList{&kustomizev1.KustomizationList{}, c.flavor.list()}
	if c.helm != nil && c.helm.Load() {
		lists = append(lists, &helmv2.HelmReleaseList{}, &sourcev1.HelmChartList{})
	}
	for _, list := range lists {
		err := c.cached.List(ctx, list, client.InNamespace(source.GetNamespace()), client.MatchingFields{fetchIndex: key}, client.Limit(1), client.UnsafeDisableDeepCopy)
		if err != nil {
			return false, fmt.Errorf("list what fetches from %s: %w", key, err)
		}
		if apimeta.LenList(list) > 0 {
			return true, nil
		}
	}
	return false, nil
}

func isShared(obj client.Object) bool { return vocabulary.SharedSource.Get(obj.GetLabels()) == "true" }
