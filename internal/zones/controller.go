package zones

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/gates/ask"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/metrics"
	"github.com/spillway-dev/spillway/internal/ring"
)

// +kubebuilder:rbac:groups=spillway.dev,resources=rolloutgroups,verbs=list;watch;create;delete
// +kubebuilder:rbac:groups=spillway.dev,resources=rolloutgroups/status,verbs=update
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=rolloutgroups.spillway.dev,verbs=list;watch
// +kubebuilder:rbac:groups=spillway.dev,resources=rolloutgates,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=list;watch;patch
// +kubebuilder:rbac:groups=apps,resources=statefulsets/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch;delete
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// maxPasses bounds how many passes follow one another without a look at the
// queue: one that creates the group, one that holds what is done, one that finds
// that the cache is not good enough, one that permits, one that acts.
const maxPasses = 5

// Interests are what the ring watches: StatefulSets of groups, and Pods as far as
// decisions need them. RolloutGroups are not among them: a cache cannot be made
// with an interest in a kind that may not be installed yet.
func Interests() []kube.Interest {
	return []kube.Interest{
		{Object: &appsv1.StatefulSet{}, Sees: inGroup},
		{Object: &corev1.Pod{}, Sees: ofStatefulSet, Reduce: reducePod},
	}
}

// Setup adds the ring to a manager whose cache was made with [Interests]. While
// the kind RolloutGroup is not installed, the ring says so and waits for it; the
// rest of the manager goes on.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	needed := kube.Needed{
		Ring: "zones", Called: "the kind RolloutGroup is", Without: "nothing is rolled",
		Action: "apply what \"spillway install --export\" prints, or leave zones out of --rings",
		Kinds:  []schema.GroupVersionKind{v1alpha1.GroupVersion.WithKind("RolloutGroup")},
	}
	return needed.Start(ctx, mgr, func(ctx context.Context) error { return start(ctx, mgr, o) })
}

// start adds the controller.
func start(ctx context.Context, mgr ctrl.Manager, o Options) error {
	r, err := newReconciler(mgr, o)
	if err != nil {
		return err
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &appsv1.StatefulSet{}, groupIndex, indexGroup); err != nil {
		return fmt.Errorf("index StatefulSets by group: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, ownerIndex, indexOwner); err != nil {
		return fmt.Errorf("index Pods by owner: %w", err)
	}
	hasGates, err := ask.Installed(mgr.GetRESTMapper())
	if err != nil {
		return err
	}
	r.observer.noGates = !hasGates
	b := ctrl.NewControllerManagedBy(mgr).Named("zones")
	if hasGates {
		b = b.Watches(&v1alpha1.RolloutGate{}, ask.ToTarget(v1alpha1.GroupVersion.String(), "RolloutGroup"))
	}
	c, err := b.
		Watches(&v1alpha1.RolloutGroup{}, &handler.EnqueueRequestForObject{}).
		Watches(&appsv1.StatefulSet{}, toGroup(), builder.WithPredicates(setMatters())).
		Watches(&corev1.Pod{}, toGroupOfOwner(mgr.GetCache()), builder.WithPredicates(podMatters())).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: groupsParallel,
			RateLimiter:             ring.Passes().RateLimiter(),
		}).Build(r)
	if err != nil {
		return fmt.Errorf("build the controller: %w", err)
	}
	return r.observer.budgets.watch(ctx, mgr, c)
}

func newReconciler(mgr ctrl.Manager, o Options) (*reconciler, error) {
	api, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("ask for the version of the API server: %w", err)
	}
	a := actor{client: mgr.GetClient(), now: o.Now}
	return &reconciler{
		observer: observer{
			options: o, cached: cachedViewer{mgr.GetCache()}, live: liveViewer{mgr.GetAPIReader()},
			server:  &server{version: api.ServerVersion, try: a.keepsMaxUnavailable},
			budgets: &budgets{reader: mgr.GetCache()},
		},
		actor:    a,
		reporter: newReporter(mgr.GetEventRecorder("spillway")),
	}, nil
}

// reconciler runs the ring. There is one request for each group.
type reconciler struct {
	observer observer
	actor    actor
	reporter reporter
	memories ring.Memories[memory]
}

// Reconcile makes passes over a group.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (result reconcile.Result, err error) {
	ended, stalled, gone := metrics.Passes.Begin(req.Namespace, req.Name, r.observer.options.Now), false, false
	m := r.memories.Of(req.NamespacedName, func() *memory { return newMemory(req.NamespacedName) })
	m.live = nil
	defer func() {
		if ended(stalled || err != nil); gone {
			metrics.Passes.Forget(req.Namespace, req.Name)
		}
	}()
	loop := ring.Loop[snapshot, pass, results]{
		Most: maxPasses, Now: r.observer.options.Now,
		Observe:   func(ctx context.Context, live bool) (snapshot, error) { return r.observer.observe(ctx, m, live) },
		Plan:      func(s *snapshot) pass { return planPass(s, m, r.observer.options) },
		NeedsLive: func(p *pass) bool { return p.NeedsLive },
		Act:       r.actor.act,
		Report:    func(ctx context.Context, s *snapshot, p *pass, done *results) { r.reporter.report(ctx, s, p, done, m) },
		Learn: func(_ context.Context, s *snapshot, p *pass, done *results) (ring.Next, error) {
			stalled, gone = len(p.Problems) > 0, s.object == nil && len(s.sets) == 0
			return r.learn(s, p, done, m)
		},
	}
	return loop.Run(ctx)
}

// learn remembers what became of a pass, and says how to go on.
func (r *reconciler) learn(s *snapshot, p *pass, done *results, m *memory) (ring.Next, error) {
	wake := m.learn(r.observer.options.Now(), s, p, done)
	if s.object == nil && len(s.sets) == 0 {
		r.memories.Forget(s.key)
	}
	return ring.Next{Again: p.goesOn(done), Wake: wake}, done.Failure()
}
