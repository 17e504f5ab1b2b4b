package agent

import (
	"context"
	"errors"
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spillway-dev/spillway/internal/fleet/outcome"
	"github.com/spillway-dev/spillway/internal/fleet/referent"
)

// These are the permissions on a workload cluster. Those on the hub are in package proxy.
// What bindings refer to besides ConfigMaps is granted apart from them, see docs/fleet.md.
//
// +kubebuilder:rbac:groups=fleet.squaremo.dev,resources=assemblages,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=fleet.squaremo.dev,resources=assemblages/status,verbs=update
// +kubebuilder:rbac:groups=kustomize.toolkit.fluxcd.io,resources=kustomizations,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=gitrepositories;ocirepositories,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Setup adds the controller of Assemblages to the manager of a workload cluster. While
// the kinds that it needs are not installed, it says so and waits for them; the rest of
// the manager goes on.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	return needed(local).Start(ctx, mgr, func(ctx context.Context) error { return start(ctx, mgr, o, local, nil) })
}

// SetupRemote adds the controller of RemoteAssemblages to the manager of the hub.
func SetupRemote(ctx context.Context, mgr ctrl.Manager, o Options, clusters *Clusters) error {
	return needed(remote).Start(ctx, mgr, func(ctx context.Context) error { return start(ctx, mgr, o, remote, clusters) })
}

// start adds the controller of a kind of assemblage, and the collectors of its sources.
func start(ctx context.Context, mgr ctrl.Manager, o Options, f flavor, clusters *Clusters) error {
	if err := index(ctx, mgr, f); err != nil {
		return err
	}
	referents, err := referent.New(mgr, o.Namespaces)
	if err != nil {
		return err
	}
	r := &reconciler{
		observer: observer{flavor: f, options: o, cached: mgr.GetClient(), referents: referents, clusters: clusters},
		actor:    actor{flavor: f, client: mgr.GetClient(), live: mgr.GetAPIReader(), now: o.Now},
		reporter: outcome.NewReporter(mgr.GetEventRecorder("spillway"), f.kind),
	}
	if clusters != nil {
		r.observer.orphans = &Orphans{Live: mgr.GetAPIReader()}
	}
	if err := referents.Wake(func() (controller.Controller, error) { return r.build(mgr, f, clusters) }); err != nil {
		return fmt.Errorf("build the controller of %ss: %w", f.kind, err)
	}
	return startCollectors(mgr, f)
}

func (r *reconciler) build(mgr ctrl.Manager, f flavor, clusters *Clusters) (controller.Controller, error) {
	b := ctrl.NewControllerManagedBy(mgr).Named("fleet-"+f.kind).
		Watches(f.object(), &handler.EnqueueRequestForObject{}, builder.WithPredicates(matters())).
		Watches(&kustomizev1.Kustomization{}, handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), f.object(), handler.OnlyControllerOwner()))
	for _, kind := range []string{sourcev1.GitRepositoryKind, sourcev1.OCIRepositoryKind} {
		b = b.Watches(sourceObject(kind), handler.EnqueueRequestsFromMapFunc(toThoseThatFetch(mgr.GetCache(), f, kind)))
	}
	if clusters != nil {
		b = b.WatchesRawSource(clusters.Events(toThoseBySecret(mgr.GetCache(), f)))
	}
	c, err := b.WithOptions(controller.Options{
		MaxConcurrentReconciles: assemblagesParallel,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryFirst, retryPass),
	}).Build(r)
	if err != nil {
		return nil, fmt.Errorf("build: %w", err)
	}
	return c, nil
}

// matters filters out updates of the status, which only this controller writes.
func matters() predicate.Predicate {
	return predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{})
}

// Events wakes whom a cluster concerns when it has changed whether it answers, its
// Secret has changed, or the Cluster of Cluster API is gone. The Secret's name is empty
// when all may have.
func (c *Clusters) Events(concerned func(ctx context.Context, secret types.NamespacedName) []reconcile.Request) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		wake := func(secret types.NamespacedName) {
			for _, request := range concerned(ctx, secret) {
				queue.Add(request)
			}
		}
		c.Registry.Subscribe(wake)
		c.Directory.SubscribeSecrets(wake)
		c.Directory.SubscribeLosses(wake)
		return nil
	})
}

// reconciler runs the controller. There is one request for each assemblage.
type reconciler struct {
	observer observer
	actor    actor
	reporter *outcome.Reporter
}

// Reconcile observes, plans, acts and reports, and repeats that while writes were made.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	for range passesParallel {
		// 1. Observe: the assemblage and the objects of Flux.
		o, ok, err := r.observer.observe(ctx, req.NamespacedName)
		if err != nil {
			return reconcile.Result{}, err
		}
		if !ok {
			r.observer.forget(req.NamespacedName)
			r.reporter.Forget(req.NamespacedName)
			return reconcile.Result{}, nil
		}
		// 2. Plan: pure, but it may ask for more reads.
		p, err := r.observer.decide(ctx, o)
		if err != nil {
			return reconcile.Result{}, err
		}
		// 3. Act.
		d := r.actor.act(ctx, o, &p)
		// 4. Report: Events, metrics, log.
		r.reporter.Report(o.Assemblage.meta(), o.Assemblage.GroupVersionKind, &o.Assemblage.Status, &p.Status, d.reported)
		if d.err != nil || d.made == 0 {
			return r.next(ctx, &p, &d)
		}
	}
	return reconcile.Result{RequeueAfter: conflictPause}, nil
}

// next returns when to reconcile again.
func (r *reconciler) next(ctx context.Context, p *Plan, d *results) (reconcile.Result, error) {
	switch {
	case errors.Is(d.err, errConflict):
		log.FromContext(ctx).V(2).Info("conflict")
		return reconcile.Result{RequeueAfter: conflictPause}, nil
	case d.err != nil:
		return reconcile.Result{}, d.err
	case p.Wake.IsZero():
		return reconcile.Result{}, nil
	default:
		return reconcile.Result{RequeueAfter: max(p.Wake.Sub(r.observer.options.Now()), 1)}, nil
	}
}
