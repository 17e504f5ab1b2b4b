package agent

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spillway-dev/spillway/internal/fleet/assemblage"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
	"github.com/spillway-dev/spillway/internal/fleet/referent"
	"github.com/spillway-dev/spillway/internal/ring"
)

// These are the permissions on a workload cluster. Those on the hub are in package proxy.
// What bindings refer to besides ConfigMaps is granted apart from them, see docs/fleet.md.
//
// +kubebuilder:rbac:groups=fleet.squaremo.dev,resources=assemblages,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=fleet.squaremo.dev,resources=assemblages/status,verbs=update
// +kubebuilder:rbac:groups=kustomize.toolkit.fluxcd.io,resources=kustomizations,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=helm.toolkit.fluxcd.io,resources=helmreleases,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=gitrepositories;ocirepositories;buckets;helmrepositories;helmcharts,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=assemblages.fleet.squaremo.dev;kustomizations.kustomize.toolkit.fluxcd.io;gitrepositories.source.toolkit.fluxcd.io;ocirepositories.source.toolkit.fluxcd.io;buckets.source.toolkit.fluxcd.io;helmreleases.helm.toolkit.fluxcd.io;helmrepositories.source.toolkit.fluxcd.io;helmcharts.source.toolkit.fluxcd.io,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Setup adds the controller of Assemblages to the manager of a workload cluster. While
// the kinds that it needs are not installed, it says so and waits for them; the rest of
// the manager goes on.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	return needed(local).Start(ctx, mgr, func(ctx context.Context) error { return start(ctx, mgr, o, local, nil) })
}

// SetupRemote adds the controller of RemoteAssemblages to the manager of the hub.
func SetupRemote(ctx context.Context, mgr ctrl.Manager, o Options, clusters *assemblage.Clusters) error {
	return needed(remote).Start(ctx, mgr, func(ctx context.Context) error { return start(ctx, mgr, o, remote, clusters) })
}

// start adds the controller of a kind of assemblage, and the collectors of its sources.
func start(ctx context.Context, mgr ctrl.Manager, o Options, f flavor, clusters *assemblage.Clusters) error {
	if err := index(ctx, mgr, f); err != nil {
		return err
	}
	referents, err := referent.New(mgr, o.Namespaces)
	if err != nil {
		return err
	}
	helm := &atomic.Bool{}
	r := &reconciler{
		observer: observer{flavor: f, options: o, cached: mgr.GetClient(), referents: referents, helm: helm, clusters: clusters},
		actor:    newActor(mgr.GetClient(), mgr.GetAPIReader(), f, o.Now),
		reporter: outcome.NewReporter(mgr.GetEventRecorder("spillway"), f.kind),
	}
	if clusters != nil {
		r.observer.orphans = &assemblage.Orphans{Live: mgr.GetAPIReader()}
	}
	h := helmStart{manager: mgr, flavor: f, helm: helm, collectors: map[*collector]controller.Controller{}}
	err = referents.Wake(func() (controller.Controller, error) {
		var err error
		h.controller, err = r.build(mgr, f, clusters)
		return h.controller, err
	})
	if err != nil {
		return fmt.Errorf("build the controller of %ss: %w", f.kind, err)
	}
	if err := h.collect(sourceKinds); err != nil {
		return err
	}
	return neededForHelm(f).Start(ctx, mgr, h.start)
}

func (r *reconciler) build(mgr ctrl.Manager, f flavor, clusters *assemblage.Clusters) (controller.Controller, error) {
	b := ctrl.NewControllerManagedBy(mgr).Named("fleet-"+f.kind).
		Watches(f.object(), &handler.EnqueueRequestForObject{}, builder.WithPredicates(matters())).
		Watches(&kustomizev1.Kustomization{}, toOwner(mgr, f))
	for _, kind := range sourceKinds {
		b = b.Watches(sourceObject(kind), handler.EnqueueRequestsFromMapFunc(toThoseThatFetch(mgr.GetCache(), f, kind)))
	}
	if clusters != nil {
		b = b.WatchesRawSource(clusters.Events(toThoseBySecret(mgr.GetCache(), f)))
	}
	c, err := b.WithOptions(controller.Options{
		MaxConcurrentReconciles: assemblagesParallel,
		RateLimiter:             assemblage.Backoff().RateLimiter(),
	}).Build(r)
	if err != nil {
		return nil, fmt.Errorf("build: %w", err)
	}
	return c, nil
}

func toOwner(mgr ctrl.Manager, f flavor) handler.EventHandler {
	return handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), f.object(), handler.OnlyControllerOwner())
}

// helmStart has the controllers of a kind of assemblage watch the kinds of Helm once these are
// installed.
type helmStart struct {
	manager    ctrl.Manager
	flavor     flavor
	controller controller.Controller
	collectors map[*collector]controller.Controller
	helm       *atomic.Bool
}

// collect starts the collectors of kinds.
func (h *helmStart) collect(kinds []string) error {
	for _, kind := range kinds {
		c, built, err := startCollector(h.manager, h.flavor, kind, h.helm)
		if err != nil {
			return err
		}
		h.collectors[c] = built
	}
	return nil
}

// start is called once the kinds of Helm are installed. In the end all assemblages are queued, for
// those that wait for the kinds.
func (h *helmStart) start(ctx context.Context) error {
	if err := indexHelm(ctx, h.manager.GetFieldIndexer()); err != nil {
		return fmt.Errorf("index the kinds of Helm: %w", err)
	}
	if err := h.collect(chartKinds); err != nil {
		return err
	}
	cached := h.manager.GetCache()
	var errs []error
	for c, built := range h.collectors {
		for _, kind := range []client.Object{&helmv2.HelmRelease{}, &sourcev1.HelmChart{}} {
			errs = append(errs, built.Watch(source.Kind(cached, kind, handler.EnqueueRequestsFromMapFunc(c.fetchedBy))))
		}
	}
	for _, kind := range chartKinds {
		var obj client.Object = sourceObject(kind)
		errs = append(errs, h.controller.Watch(source.Kind(cached, obj, handler.EnqueueRequestsFromMapFunc(toThoseThatFetch(cached, h.flavor, kind)))))
	}
	var release client.Object = &helmv2.HelmRelease{}
	errs = append(errs, h.controller.Watch(source.Kind(cached, release, toOwner(h.manager, h.flavor))))
	h.helm.Store(true)
	errs = append(errs, h.controller.Watch(source.Kind(cached, h.flavor.object(), &handler.EnqueueRequestForObject{}, predicate.Funcs{
		UpdateFunc: func(event.UpdateEvent) bool { return false }, DeleteFunc: func(event.DeleteEvent) bool { return false },
	})))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("watch the kinds of Helm: %w", err)
	}
	return nil
}

// matters filters out updates of the status, which only this controller writes.
func matters() predicate.Predicate {
	return predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{})
}

// reconciler runs the controller. There is one request for each assemblage.
type reconciler struct {
	observer observer
	actor    actor
	reporter *outcome.Reporter
}

// Reconcile makes passes over an assemblage.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	loop := ring.Loop[snapshot, Plan, assemblage.Results]{
		Most: assemblage.MaxPasses, Pause: assemblage.ConflictPause, Now: r.observer.options.Now,
		Observe: func(ctx context.Context, _ bool) (snapshot, error) {
			return r.observer.observe(ctx, req.NamespacedName)
		},
		Forget: func() {
			r.observer.forget(req.NamespacedName)
			r.reporter.Forget(req.NamespacedName)
		},
		Plan: func(s *snapshot) Plan { return Decide(s.Observed) },
		Read: r.observer.read,
		Act:  r.actor.act,
		Report: func(_ context.Context, s *snapshot, p *Plan, done *assemblage.Results) {
			r.reporter.Report(s.Assemblage.meta(), s.Assemblage.GroupVersionKind, &s.Assemblage.Status, &p.Status, done.Reported)
		},
		Learn: func(_ context.Context, _ *snapshot, p *Plan, done *assemblage.Results) (ring.Next, error) {
			return done.Next(r.observer.options.Now(), p.Wake)
		},
	}
	return loop.Run(ctx)
}
