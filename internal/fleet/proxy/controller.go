package proxy

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/agent"
	"github.com/spillway-dev/spillway/internal/fleet/assemblage"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
	"github.com/spillway-dev/spillway/internal/fleet/referent"
	"github.com/spillway-dev/spillway/internal/ring"
)

// These are the permissions on the hub of the controllers of assemblages, besides those
// of the controllers of modules. What they need on workload clusters is that of the
// kubeconfigs: assemblages get, list, watch, create, patch and delete, and namespaces
// create.
//
// +kubebuilder:rbac:groups=fleet.squaremo.dev,resources=proxyassemblages;remoteassemblages,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=fleet.squaremo.dev,resources=proxyassemblages/status;remoteassemblages/status,verbs=update
// +kubebuilder:rbac:groups=kustomize.toolkit.fluxcd.io,resources=kustomizations,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=helm.toolkit.fluxcd.io,resources=helmreleases,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=gitrepositories;ocirepositories;buckets;helmrepositories;helmcharts,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=remoteassemblages.fleet.squaremo.dev;kustomizations.kustomize.toolkit.fluxcd.io;gitrepositories.source.toolkit.fluxcd.io;ocirepositories.source.toolkit.fluxcd.io;buckets.source.toolkit.fluxcd.io;helmreleases.helm.toolkit.fluxcd.io;helmrepositories.source.toolkit.fluxcd.io;helmcharts.source.toolkit.fluxcd.io,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

const (
	// proxiesParallel is how many ProxyAssemblages are worked on at a time: most of that is
	// waiting for clusters that answer.
	proxiesParallel = 32
	// secretIndex finds ProxyAssemblages by the Secret with the kubeconfig of the cluster.
	secretIndex = "spillway.secret"
)

var proxyKind = v1alpha1.GroupVersion.WithKind("ProxyAssemblage")

// Options are the choices of the controllers of the hub.
type Options struct {
	// Namespaces are those to look at, all if empty.
	Namespaces []string
	// Now is the clock.
	Now func() time.Time
	// Hub is the name of this hub.
	Hub string
	// Directory is which clusters there are.
	Directory *cluster.Directory
	// Facts is where it is kept what clusters serve, nil if no check is to depend on it.
	Facts *cluster.FactBook
	// Wrap changes how clusters are talked to, nil if it is not to be changed.
	Wrap func(*rest.Config) *rest.Config
	// Network restricts where kubeconfigs lead, unless it is nil.
	Network *cluster.Network
	// BackOff and BackOffMax are how long to wait before a cluster that does not answer
	// is asked again, first and at most. The default is that of package cluster.
	BackOff, BackOffMax time.Duration
}

// SetupHub adds the controllers of assemblages that run on the hub: those of
// ProxyAssemblages and of RemoteAssemblages.
func SetupHub(ctx context.Context, mgr ctrl.Manager, o Options) error {
	asks, err := cluster.NewClient(mgr.GetScheme(), []cluster.Kind{
		{GroupVersionKind: v1alpha1.GroupVersion.WithKind("Assemblage")},
		{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Namespace"), ClusterScoped: true},
	})
	if err != nil {
		return fmt.Errorf("connect to clusters: %w", err)
	}
	registry := cluster.NewRegistry(cluster.Options{
		Live: mgr.GetAPIReader(), Asks: asks, Now: o.Now, Wrap: o.Wrap, Network: o.Network, BackOff: o.BackOff, BackOffMax: o.BackOffMax,
	})
	if err := mgr.Add(registry); err != nil {
		return fmt.Errorf("run the registry of clusters: %w", err)
	}
	clusters := &assemblage.Clusters{Directory: o.Directory, Registry: registry}
	clusters.ForgetGone(ctx)
	if o.Facts != nil {
		if err := mgr.Add(o.Facts.Run(clusters.Connect)); err != nil {
			return fmt.Errorf("run what asks clusters what they serve: %w", err)
		}
		o.Directory.SubscribeSecrets(o.Facts.Forget) // another kubeconfig may be of another cluster
		registry.Subscribe(o.Facts.AskAgain)
	}
	if err := agent.SetupRemote(ctx, mgr, agent.Options{Namespaces: o.Namespaces, Now: o.Now}, clusters); err != nil {
		return fmt.Errorf("set up RemoteAssemblages: %w", err)
	}
	return setup(ctx, mgr, o, clusters)
}

// setup adds the controller of ProxyAssemblages.
func setup(ctx context.Context, mgr ctrl.Manager, o Options, clusters *assemblage.Clusters) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.ProxyAssemblage{}, secretIndex, func(obj client.Object) []string {
		if p, ok := obj.(*v1alpha1.ProxyAssemblage); ok {
			return []string{p.Spec.KubeconfigRef.Name}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("index ProxyAssemblages: %w", err)
	}
	referents, err := referent.New(mgr, o.Namespaces)
	if err != nil {
		return err
	}
	w := newWatches(clusters.Registry, o.Now)
	r := &reconciler{
		observer: observer{now: o.Now, hub: o.Hub, cached: mgr.GetClient(), referents: referents, clusters: clusters, watches: w, orphans: &assemblage.Orphans{Live: mgr.GetAPIReader()}},
		actor:    newActor(mgr.GetClient(), mgr.GetAPIReader()),
		reporter: outcome.NewReporter(mgr.GetEventRecorder("spillway"), "ProxyAssemblage"),
	}
	return referents.Wake(func() (controller.Controller, error) {
		c, err := ctrl.NewControllerManagedBy(mgr).Named("fleet-proxyassemblage").
			Watches(&v1alpha1.ProxyAssemblage{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(matters())).
			WatchesRawSource(w.source()).
			WatchesRawSource(clusters.Events(toProxies(mgr.GetCache()))).
			WithOptions(controller.Options{
				MaxConcurrentReconciles: proxiesParallel,
				RateLimiter:             assemblage.Backoff().RateLimiter(),
			}).Build(r)
		if err != nil {
			return nil, fmt.Errorf("build the controller of ProxyAssemblages: %w", err)
		}
		return c, nil
	})
}

// matters filters out updates of the status, which only this controller writes.
func matters() predicate.Predicate {
	return predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})
}

// toProxies finds the ProxyAssemblages of the cluster whose kubeconfig is in a Secret.
func toProxies(cached client.Reader) func(context.Context, types.NamespacedName) []reconcile.Request {
	return func(ctx context.Context, secret types.NamespacedName) []reconcile.Request {
		list := &v1alpha1.ProxyAssemblageList{}
		err := cached.List(ctx, list, client.InNamespace(secret.Namespace), client.MatchingFields{secretIndex: secret.Name}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil // the cache has stopped
		}
		requests := make([]reconcile.Request, 0, apimeta.LenList(list))
		for i := range list.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
		return requests
	}
}

// reconciler runs the controller. There is one request for each ProxyAssemblage.
type reconciler struct {
	observer observer
	actor    actor
	reporter *outcome.Reporter
}

// Reconcile makes passes over a ProxyAssemblage.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	loop := ring.Loop[snapshot, Plan, assemblage.Results]{
		Most: assemblage.MaxPasses, Pause: assemblage.ConflictPause, Now: r.observer.now,
		Observe: func(ctx context.Context, _ bool) (snapshot, error) {
			return r.observer.observe(ctx, req.NamespacedName)
		},
		Forget: func() {
			r.observer.forget(req.NamespacedName)
			r.reporter.Forget(req.NamespacedName)
		},
		Plan: func(s *snapshot) Plan { return Decide(s.Observed) },
		Read: r.observer.read,
		Act:  r.act,
		Report: func(_ context.Context, s *snapshot, p *Plan, done *assemblage.Results) {
			r.reporter.Report(s.Proxy, proxyKind, &s.Proxy.Status, &p.Status, done.Reported)
		},
		Learn: func(_ context.Context, s *snapshot, p *Plan, done *assemblage.Results) (ring.Next, error) {
			if cluster.IsConnection(done.Err) {
				r.observer.clusters.Failed(secretKey(s.Proxy), done.Err)
				return ring.Next{Wake: r.observer.now().Add(brokenAgain)}, nil
			}
			return done.Next(r.observer.now(), p.Wake)
		},
	}
	return loop.Run(ctx)
}

// act makes the writes of a plan, and has a cluster probed that does not answer one.
func (r *reconciler) act(ctx context.Context, s *snapshot, p *Plan) assemblage.Results {
	if s.conn != nil && len(p.Writes) > 0 {
		defer r.observer.clusters.Expect(ctx, secretKey(s.Proxy))()
	}
	return r.actor.act(ctx, s, p)
}
