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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/metrics"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/zones/lock"
	"github.com/spillway-dev/spillway/internal/zones/preparehook"
)

// +kubebuilder:rbac:groups=spillway.dev,resources=rolloutgroups,verbs=get;list;watch
// +kubebuilder:rbac:groups=spillway.dev,resources=rolloutgroups/status,verbs=update
// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list
// +kubebuilder:rbac:groups=rollout-operator.grafana.com,resources=replicatemplates,verbs=list;watch
// +kubebuilder:rbac:groups=rollout-operator.grafana.com,resources=replicatemplates/scale,verbs=get
// +kubebuilder:rbac:groups=rollout-operator.grafana.com,resources=replicatemplates/status,verbs=patch
// +kubebuilder:rbac:groups=rollout-operator.grafana.com,resources=zoneawarepoddisruptionbudgets,verbs=list
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

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
			RateLimiter:             ring.Refused().RateLimiter(),
		})
	c, err := b.Build(r)
	if err != nil {
		return fmt.Errorf("build the controller of scaling: %w", err)
	}
	r.mirrors.begin = func(obj client.Object, to handler.EventHandler) error {
		return c.Watch(source.Kind(mgr.GetCache(), obj, to))
	}
	return nil
}

func newReconciler(mgr ctrl.Manager, o Options) *reconciler {
	r := &reconciler{
		observer: observer{options: o, cached: mgr.GetCache(), live: mgr.GetAPIReader(), scales: mgr.GetClient(), mapper: mgr.GetRESTMapper()},
		reporter: reporter{ring.Reporter{Events: mgr.GetEventRecorder("spillway"), Action: "Scale", Writes: metrics.ZonesScales}},
		mirrors:  mirrors{sets: mgr.GetCache(), watched: map[schema.GroupVersionKind]bool{}},
	}
	r.actor = actor{
		observer: &r.observer, client: mgr.GetClient(), options: o,
		keeper: lock.Keeper{Live: mgr.GetAPIReader(), Writer: mgr.GetClient()},
		caller: preparehook.New(o.PodTimeout, &tls.Config{MinVersion: tls.VersionTLS12}),
	}
	return r
}

// reconciler scales. There is one request for each group.
type reconciler struct {
	observer observer
	actor    actor
	reporter reporter
	mirrors  mirrors
	memories ring.Memories[memory]
}

// Reconcile makes passes over a group; once more where Pods have answered.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	m := r.memories.Of(req.NamespacedName, newMemory)
	loop := ring.Loop[snapshot, Plan, results]{
		Most: maxPasses, Pause: ring.Refused().First, Now: r.observer.options.Now,
		Observe: func(ctx context.Context, _ bool) (snapshot, error) { return r.observe(ctx, req.NamespacedName, m) },
		Plan:    func(s *snapshot) Plan { return Decide(s.Observed) },
		Act:     func(ctx context.Context, s *snapshot, p *Plan) results { return r.actor.act(ctx, s, p, m) },
		Report:  func(ctx context.Context, s *snapshot, p *Plan, done *results) { r.reporter.report(ctx, s, p, done, m) },
		Learn: func(_ context.Context, s *snapshot, p *Plan, done *results) (ring.Next, error) {
			if !s.HasGroup && len(s.Sets) == 0 {
				r.memories.Forget(s.key)
			}
			return m.learn(r.observer.options.Now(), p, done), nil
		},
	}
	return loop.Run(ctx)
}

// observe reads a group, and begins to watch what it mirrors.
func (r *reconciler) observe(ctx context.Context, key types.NamespacedName, m *memory) (snapshot, error) {
	s, err := r.observer.observe(ctx, key, m)
	if err != nil {
		return s, err
	}
	return s, r.mirrors.watch(r.observer.mapper, &s)
}

func toGroup(_ context.Context, obj client.Object) []reconcile.Request {
	return requests(obj.GetNamespace(), groupOf(obj))
}

// setMatters leaves out updates that change nothing of what a decision is made from.
func setMatters() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*appsv1.StatefulSet)
		after, same := e.ObjectNew.(*appsv1.StatefulSet)
		return !ok || !same || before.Generation != after.Generation || before.UID != after.UID ||
			before.Status.ReadyReplicas != after.Status.ReadyReplicas || before.Status.Replicas != after.Status.Replicas || before.Status.ObservedGeneration != after.Status.ObservedGeneration ||
			!maps.Equal(before.Annotations, after.Annotations) || !maps.Equal(before.Labels, after.Labels)
	}}
}

// mirrors are the kinds that are mirrored. Each is watched from when it is first named.
type mirrors struct {
	// sets are the StatefulSets that there are.
	sets client.Reader
	// begin begins to watch a kind; nil where every change is received anyway.
	begin   func(client.Object, handler.EventHandler) error
	mu      sync.Mutex
	watched map[schema.GroupVersionKind]bool
}

// watch begins to watch what a group mirrors. Of the objects only what identifies them
// is kept: that they have changed is all there is to know.
func (w *mirrors) watch(mapper apimeta.RESTMapper, s *snapshot) error {
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
		if w.begin != nil {
			if err := w.begin(obj, toGroups); err != nil {
				return fmt.Errorf("watch %s: %w", mapping.GroupVersionKind.Kind, err)
			}
		}
		w.watched[mapping.GroupVersionKind] = true
	}
	return nil
}

// isWatched is true of a kind that some StatefulSet mirrors.
func (w *mirrors) isWatched(kind schema.GroupKind) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for gvk := range w.watched {
		if gvk.GroupKind() == kind {
			return true
		}
	}
	return false
}

// toGroups maps an object to the groups with a StatefulSet that mirrors it.
func (w *mirrors) toGroups(kind schema.GroupKind) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		sets := &appsv1.StatefulSetList{}
		if err := w.sets.List(ctx, sets, client.InNamespace(obj.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
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

func requests(namespace, group string) []reconcile.Request {
	if group == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: group}}}
}
