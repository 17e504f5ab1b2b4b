package zones

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/kube"
)

// +kubebuilder:rbac:groups=spillway.dev,resources=rolloutgroups,verbs=list;watch;create;delete
// +kubebuilder:rbac:groups=spillway.dev,resources=rolloutgroups/status,verbs=update
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=list;watch;patch
// +kubebuilder:rbac:groups=apps,resources=statefulsets/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create

// passesParallel bounds how many passes follow one another without a look at the
// queue: one that creates the group, one that holds what is done, one that finds
// that the cache is not good enough, one that permits, one that acts.
const passesParallel = 5

// Interests are what the ring looks at: StatefulSets of groups, and Pods as far as
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
	c, err := ctrl.NewControllerManagedBy(mgr).Named("zones").
		Watches(&v1alpha1.RolloutGroup{}, &handler.EnqueueRequestForObject{}).
		Watches(&appsv1.StatefulSet{}, toGroup(), builder.WithPredicates(setMatters())).
		Watches(&corev1.Pod{}, toGroupOfOwner(mgr.GetCache()), builder.WithPredicates(podMatters())).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: groupsParallel,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryFirst, retryPass),
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
		reporter: reporter{events: mgr.GetEventRecorder("spillway"), now: o.Now},
	}, nil
}

// reconciler runs the ring. There is one request for each group.
type reconciler struct {
	observer observer
	actor    actor
	reporter reporter
	memories memories
}

// Reconcile observes, plans, acts and tells; and once more at once if what it
// wrote permits to go on.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (result reconcile.Result, err error) {
	began, m, live, stalled := r.observer.options.Now(), r.memories.of(req.NamespacedName), false, false
	m.live = nil
	defer func() { r.reporter.clock(req.Name, began, stalled || err != nil) }()
	for range passesParallel {
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
		stalled = len(p.Problems) > 0
		result, err = r.learn(ctx, &s, &p, d, m)
		if err != nil || !d.goOn(&p) {
			return result, err
		}
	}
	return result, nil
}

// learn remembers what became of a pass, and says when to look again.
func (r *reconciler) learn(ctx context.Context, s *sight, p *pass, d *deeds, m *memory) (reconcile.Result, error) {
	now := r.observer.options.Now()
	wake := m.learn(now, s, p, d)
	if s.object == nil && len(s.sets) == 0 {
		r.memories.forget(s.key)
		r.reporter.forget(s.key.Name)
	}
	if d.groupErr != nil && !isOvertaken(d.groupErr) && !isEnding(d.groupErr) {
		return reconcile.Result{}, d.groupErr
	}
	if wake.IsZero() {
		return reconcile.Result{}, nil
	}
	log.FromContext(ctx).V(2).Info("looks again", "at", wake)
	return reconcile.Result{RequeueAfter: max(wake.Sub(now), 1)}, nil
}
