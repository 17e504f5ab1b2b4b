package hub

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	spillway "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/ring"
)

// +kubebuilder:rbac:groups=fleet.squaremo.dev,resources=modules;bootstrapmodules,verbs=list;watch;patch
// +kubebuilder:rbac:groups=fleet.squaremo.dev,resources=modules/status;bootstrapmodules/status,verbs=update
// +kubebuilder:rbac:groups=fleet.squaremo.dev,resources=proxyassemblages;remoteassemblages,verbs=list;watch;create;patch
// +kubebuilder:rbac:groups=spillway.dev,resources=modulerevisions,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=spillway.dev,resources=modulerevisions/status,verbs=update
// +kubebuilder:rbac:groups=spillway.dev,resources=rolloutgates,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=spillway.dev,resources=clusterbudgets,verbs=list;watch
// +kubebuilder:rbac:groups=spillway.dev,resources=clusterbudgets/status,verbs=update
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=bootstrapmodules.fleet.squaremo.dev;modules.fleet.squaremo.dev;proxyassemblages.fleet.squaremo.dev;remoteassemblages.fleet.squaremo.dev;modulerevisions.spillway.dev;rolloutgates.spillway.dev;clusterbudgets.spillway.dev,verbs=list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// maxPasses bounds how many passes follow one another without a look at the
// queue: one that adds the finalizer, one that finds that the cache is not good
// enough, one that permits, one that acts.
const maxPasses = 5

// Attributed are the kinds of which it is to be known who has written them.
func Attributed() []client.Object {
	return []client.Object{&v1alpha1.Module{}, &v1alpha1.BootstrapModule{}}
}

// Setup adds the ring to a manager. While its kinds are not installed, the ring says
// so and waits for them; the rest of the manager goes on.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	needed := kube.Needed{
		Ring: "fleet", Called: "the kinds of fleet.squaremo.dev and spillway.dev are", Without: "nothing is rolled out",
		Action: "apply what \"spillway install --export\" prints, or leave fleet out of --rings",
		Kinds: []schema.GroupVersionKind{
			v1alpha1.GroupVersion.WithKind(model.KindModule), v1alpha1.GroupVersion.WithKind(model.KindBootstrap),
			v1alpha1.GroupVersion.WithKind("ProxyAssemblage"), v1alpha1.GroupVersion.WithKind("RemoteAssemblage"),
			spillway.GroupVersion.WithKind("ModuleRevision"), spillway.GroupVersion.WithKind("RolloutGate"),
			spillway.GroupVersion.WithKind("ClusterBudget"),
		},
	}
	return needed.Start(ctx, mgr, func(ctx context.Context) error { return start(ctx, mgr, o) })
}

// start adds the controllers: one for each kind of module.
func start(ctx context.Context, mgr ctrl.Manager, o Options) error {
	clusters, err := cluster.NewDirectory(ctx, mgr, o.Namespaces)
	if err != nil {
		return fmt.Errorf("find the clusters: %w", err)
	}
	for _, obj := range []client.Object{&spillway.ModuleRevision{}, &spillway.RolloutGate{}} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, obj, moduleIndex, indexModule); err != nil {
			return fmt.Errorf("index by module: %w", err)
		}
	}
	for _, k := range kinds() {
		if err := k.control(mgr, clusters, o); err != nil {
			return err
		}
	}
	if o.Assemblages == nil {
		return nil
	}
	return o.Assemblages(ctx, mgr, clusters)
}

// control adds the controller of one kind of module.
func (k *kind) control(mgr ctrl.Manager, clusters Directory, o Options) error {
	r := &reconciler{
		observer: observer{options: o, kind: k, cached: mgr.GetCache(), live: mgr.GetAPIReader(), clusters: clusters, kinds: mgr.GetRESTMapper()},
		actor:    actor{kind: k, client: mgr.GetClient(), live: mgr.GetAPIReader(), now: o.Now},
		reporter: newReporter(k, mgr.GetEventRecorder("spillway")),
	}
	err := ctrl.NewControllerManagedBy(mgr).Named("fleet-"+k.name).
		Watches(model.New(k.name), &handler.EnqueueRequestForObject{}).
		Watches(model.NewAssemblage(k.name), k.toModules(mgr.GetCache())).
		Watches(&spillway.ModuleRevision{}, k.toModule()).
		Watches(&spillway.RolloutGate{}, k.toModule()).
		Watches(&spillway.ClusterBudget{}, k.toSharers(mgr.GetCache())).
		Watches(&v1alpha1.Module{}, k.toOthers(mgr.GetCache())).
		Watches(&v1alpha1.BootstrapModule{}, k.toOthers(mgr.GetCache())).
		WatchesRawSource(k.clusterChanges(clusters, o.Facts, mgr.GetCache())).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: maxModules,
			RateLimiter:             ring.Passes().RateLimiter(),
		}).Complete(r)
	if err != nil {
		return fmt.Errorf("build the controller of %s: %w", k.name, err)
	}
	return nil
}

// reconciler runs the ring for one kind of module.
type reconciler struct {
	observer observer
	actor    actor
	reporter reporter
	memories ring.Memories[memory]
}

// Reconcile makes passes over a module.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	m := r.memories.Of(req.NamespacedName, func() *memory { return newMemory(req.NamespacedName) })
	m.live = nil
	loop := ring.Loop[snapshot, pass, results]{
		Most: maxPasses, Now: r.observer.options.Now,
		Observe:   func(ctx context.Context, live bool) (snapshot, error) { return r.observer.observe(ctx, m, live) },
		Plan:      func(s *snapshot) pass { return planPass(s, m, r.observer.options) },
		NeedsLive: func(p *pass) bool { return p.NeedsLive },
		Act:       r.actor.act,
		Report:    func(ctx context.Context, s *snapshot, p *pass, done *results) { r.reporter.report(ctx, s, p, done, m) },
		Learn: func(_ context.Context, s *snapshot, p *pass, done *results) (ring.Next, error) {
			return r.learn(s, p, done, m)
		},
	}
	return loop.Run(ctx)
}

// learn remembers what became of a pass, and says how to go on.
func (r *reconciler) learn(s *snapshot, p *pass, done *results, m *memory) (ring.Next, error) {
	r.observer.ask(s, p.Asks)
	wake := m.learn(r.observer.options.Now(), p, done)
	if s.object == nil {
		if !s.hasNoted() {
			r.memories.Forget(s.key)
		}
		return ring.Next{Wake: wake}, done.Failure()
	}
	return ring.Next{Again: p.goesOn(done), Wake: wake}, done.Failure()
}
