package hub

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	spillway "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/kube"
)

// +kubebuilder:rbac:groups=fleet.squaremo.dev,resources=modules;bootstrapmodules,verbs=list;watch;patch
// +kubebuilder:rbac:groups=fleet.squaremo.dev,resources=modules/status;bootstrapmodules/status,verbs=update
// +kubebuilder:rbac:groups=fleet.squaremo.dev,resources=proxyassemblages;remoteassemblages,verbs=list;watch;create;patch
// +kubebuilder:rbac:groups=spillway.dev,resources=modulerevisions,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=spillway.dev,resources=modulerevisions/status,verbs=update
// +kubebuilder:rbac:groups=spillway.dev,resources=rolloutgates,verbs=list;watch;create
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create

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
		observer: observer{options: o, kind: k, cached: mgr.GetCache(), live: mgr.GetAPIReader(), clusters: clusters},
		actor:    actor{kind: k, client: mgr.GetClient(), live: mgr.GetAPIReader(), now: o.Now},
		reporter: reporter{kind: k, events: mgr.GetEventRecorder("spillway"), now: o.Now},
	}
	err := ctrl.NewControllerManagedBy(mgr).Named("fleet-"+k.name).
		Watches(model.New(k.name), &handler.EnqueueRequestForObject{}).
		Watches(model.NewAssemblage(k.name), toModules()).
		Watches(&spillway.ModuleRevision{}, k.toModule()).
		Watches(&spillway.RolloutGate{}, k.toModule()).
		WatchesRawSource(k.clusterChanges(clusters, mgr.GetCache())).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: maxModules,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryFirst, retryPass),
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
	memories memories
}

// Reconcile observes, plans, acts and tells; and once more at once if what it wrote
// permits to go on.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (result reconcile.Result, err error) {
	m, live := r.memories.of(req.NamespacedName), false
	m.live = nil
	for range maxPasses {
		// 1. Observe: all the reads.
		s, err := r.observer.observe(ctx, m, live)
		if err != nil {
			return reconcile.Result{}, err
		}
		// 2. Plan: pure.
		p := planPass(&s, m, r.observer.options)
		if live = live || p.NeedsLive; p.NeedsLive {
			continue
		}
		// 3. Act: permit, or all the other writes.
		d := r.actor.act(ctx, &s, &p)
		// 4. Tell: Events, metrics, log.
		r.reporter.report(ctx, &s, &p, d, m)
		result, err = r.learn(ctx, &s, &p, d, m)
		if err != nil || !d.goOn(&p) {
			return result, err
		}
	}
	return result, nil
}

// learn remembers what became of a pass, and says when to look again.
func (r *reconciler) learn(ctx context.Context, s *snapshot, p *pass, d *results, m *memory) (reconcile.Result, error) {
	now := r.observer.options.Now()
	wake := m.learn(now, p, d)
	if s.object == nil {
		r.memories.forget(s.key)
		r.reporter.forget(s)
		return reconcile.Result{}, nil
	}
	if d.err != nil && !isConflict(d.err) && !isEnding(d.err) {
		return reconcile.Result{}, d.err
	}
	if wake.IsZero() {
		return reconcile.Result{}, nil
	}
	log.FromContext(ctx).V(2).Info("looks again", "at", wake)
	return reconcile.Result{RequeueAfter: max(wake.Sub(now), 1)}, nil
}
