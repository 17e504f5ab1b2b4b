package scaling

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/zones/lock"
	"github.com/spillway-dev/spillway/internal/zones/notice"
)

// +kubebuilder:rbac:groups=spillway.dev,resources=rolloutgroups,verbs=get;list;watch
// +kubebuilder:rbac:groups=spillway.dev,resources=rolloutgroups/status,verbs=update
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list
// +kubebuilder:rbac:groups=rollout-operator.grafana.com,resources=replicatemplates,verbs=list;watch
// +kubebuilder:rbac:groups=rollout-operator.grafana.com,resources=replicatemplates/scale,verbs=get
// +kubebuilder:rbac:groups=rollout-operator.grafana.com,resources=replicatemplates/status,verbs=patch
// +kubebuilder:rbac:groups=rollout-operator.grafana.com,resources=zoneawarepoddisruptionbudgets,verbs=list
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create

// Interests are what is looked at besides the RolloutGroups, whose kind may not be
// installed yet when the cache is made: StatefulSets of groups.
func Interests() []kube.Interest {
	return []kube.Interest{
		{Object: &appsv1.StatefulSet{}, Sees: func(obj client.Object) bool { return groupOf(obj) != "" }},
	}
}

// Setup adds the controller to a manager whose cache was made with [Interests]. While
// the kind RolloutGroup is not installed it says so and waits for it; the rest of the
// manager goes on.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	needed := kube.Needed{
		Ring: "scaling", Called: "the kind RolloutGroup is", Without: "nothing is scaled",
		Action: "apply what \"spillway install --export\" prints, or leave zones out of --rings",
		Kinds:  []schema.GroupVersionKind{v1alpha1.GroupVersion.WithKind("RolloutGroup")},
	}
	return needed.Start(ctx, mgr, func(context.Context) error { return start(mgr, o) })
}

// start adds the controller.
func start(mgr ctrl.Manager, o Options) error {
	r := newReconciler(mgr, o)
	b := ctrl.NewControllerManagedBy(mgr).Named("scaling").
		Watches(&v1alpha1.RolloutGroup{}, &handler.EnqueueRequestForObject{}).
		Watches(&appsv1.StatefulSet{}, handler.EnqueueRequestsFromMapFunc(toGroup), builder.WithPredicates(setMatters())).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: groupsParallel,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryFirst, retryMost),
		})
	c, err := b.Build(r)
	if err != nil {
		return fmt.Errorf("build the controller of scaling: %w", err)
	}
	r.mirrors.controller = c
	return nil
}

func newReconciler(mgr ctrl.Manager, o Options) *reconciler {
	r := &reconciler{
		observer: observer{options: o, cached: mgr.GetCache(), live: mgr.GetAPIReader(), scales: mgr.GetClient(), mapper: mgr.GetRESTMapper()},
		reporter: reporter{events: mgr.GetEventRecorder("spillway")},
		mirrors:  mirrors{cache: mgr.GetCache(), watched: map[schema.GroupVersionKind]bool{}},
	}
	r.actor = actor{
		observer: &r.observer, client: mgr.GetClient(), options: o,
		keeper: lock.Keeper{Live: mgr.GetAPIReader(), Writer: mgr.GetClient()},
		caller: notice.New(o.PodTimeout, &tls.Config{MinVersion: tls.VersionTLS12}),
	}
	return r
}

// reconciler scales. There is one request for each group.
type reconciler struct {
	observer observer
	actor    actor
	reporter reporter
	mirrors  mirrors
	memories memories
}

// Reconcile observes, plans, acts and tells; and once more at once where Pods have said
// something.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	m := r.memories.get(req.NamespacedName)
	for range passesParallel {
		// 1. Observe: all the reads.
		s, err := r.observer.observe(ctx, req.NamespacedName, m)
		if err != nil {
			return reconcile.Result{}, err
		}
		if err := r.mirrors.watch(r.observer.mapper, &s); err != nil {
			return reconcile.Result{}, err
		}
		// 2. Plan: pure.
		p := Decide(s.Observed)
		// 3. Act: all the writes and calls.
		outcomes := r.actor.act(ctx, &s, &p, m)
		// 4. Tell: Events, metrics, log.
		r.reporter.report(ctx, &s, &p, outcomes, m)
		failed := r.learn(outcomes, m)
		if len(p.Calls) == 0 || failed {
			return r.result(ctx, &s, &p, m), nil
		}
	}
	return reconcile.Result{RequeueAfter: retryFirst}, nil
}

// learn remembers what failed. What was overtaken failed too: the cache may not know yet.
func (r *reconciler) learn(outcomes []outcome, m *memory) bool {
	failed := map[string]error{}
	for _, o := range outcomes {
		if failed[o.name] == nil {
			failed[o.name] = o.err
		}
	}
	some := false
	for name, err := range failed {
		m.learn(name, err, r.observer.options.Now())
		some = some || err != nil
	}
	return some
}

// result says when to look again: when time changes something, or a try is due.
func (r *reconciler) result(ctx context.Context, s *sight, p *Plan, m *memory) reconcile.Result {
	s.Refusals = m.refusals()
	wake := sooner(s.Now, p.Wake, s.nextTry())
	if wake.IsZero() {
		return reconcile.Result{}
	}
	log.FromContext(ctx).V(2).Info("looks again", "at", wake)
	return reconcile.Result{RequeueAfter: max(wake.Sub(r.observer.options.Now()), 1)}
}

func toGroup(_ context.Context, obj client.Object) []reconcile.Request {
	return requests(obj.GetNamespace(), groupOf(obj))
}

func requests(namespace, group string) []reconcile.Request {
	if group == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: group}}}
}

// setMatters leaves out updates that change nothing of what a decision is made from.
func setMatters() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*appsv1.StatefulSet)
		after, same := e.ObjectNew.(*appsv1.StatefulSet)
		return !ok || !same || before.Generation != after.Generation || before.UID != after.UID ||
			before.Status.ReadyReplicas != after.Status.ReadyReplicas || before.Status.ObservedGeneration != after.Status.ObservedGeneration ||
			!maps.Equal(before.Annotations, after.Annotations) || !maps.Equal(before.Labels, after.Labels)
	}}
}

// mirrors are the kinds that are mirrored. Each is watched from when it is first named.
type mirrors struct {
	controller controller.Controller
	cache      cache.Cache
	mu         sync.Mutex
	watched    map[schema.GroupVersionKind]bool
}

// watch begins to watch what a group mirrors. Of the objects only what identifies them
// is kept: that they have changed is all there is to know.
func (w *mirrors) watch(mapper apimeta.RESTMapper, s *sight) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range s.Sets {
		mirror := s.Sets[i].Settings.Mirror
		if mirror == nil {
			continue
		}
		mapping, err := mapper.RESTMapping(mirror.Kind.GroupKind())
		if err != nil || w.watched[mapping.GroupVersionKind] {
			continue // that it is not known is said where it is read
		}
		obj := &metav1.PartialObjectMetadata{}
		obj.SetGroupVersionKind(mapping.GroupVersionKind)
		toGroups := handler.EnqueueRequestsFromMapFunc(w.toGroups(mapping.GroupVersionKind.GroupKind()))
		if err := w.controller.Watch(source.Kind[client.Object](w.cache, obj, toGroups)); err != nil {
			return fmt.Errorf("watch %s: %w", mapping.GroupVersionKind.Kind, err)
		}
		w.watched[mapping.GroupVersionKind] = true
	}
	return nil
}

// toGroups maps an object to the groups with a StatefulSet that mirrors it.
func (w *mirrors) toGroups(kind schema.GroupKind) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		sets := &appsv1.StatefulSetList{}
		if err := w.cache.List(ctx, sets, client.InNamespace(obj.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
			return nil
		}
		var found []reconcile.Request
		for i := range sets.Items {
			set := &sets.Items[i]
			m := SettingsOf(set.Labels, set.Annotations).Mirror
			if m != nil && m.Name == obj.GetName() && m.Kind.GroupKind() == kind {
				found = append(found, requests(set.Namespace, groupOf(set))...)
			}
		}
		return found
	}
}
