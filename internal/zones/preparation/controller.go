package preparation

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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

	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// +kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=list;watch
// +kubebuilder:rbac:groups=rollout-operator.grafana.com,resources=zoneawarepoddisruptionbudgets,verbs=list;watch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=zoneawarepoddisruptionbudgets.rollout-operator.grafana.com,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;patch

// Interests are the StatefulSets whose Pods must be prepared.
func Interests() []kube.Interest {
	return []kube.Interest{{Object: &appsv1.StatefulSet{}, Sees: isPrepared}}
}

// Setup adds the controller to a manager whose cache was made with [Interests].
func Setup(ctx context.Context, mgr ctrl.Manager) error {
	// The client of the manager would watch all namespaces to see its own writes.
	writer, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	r := &reconciler{sets: mgr.GetCache(), live: mgr.GetAPIReader(), actor: actor{writer}}
	c, err := ctrl.NewControllerManagedBy(mgr).Named("namespaces").
		Watches(&appsv1.StatefulSet{}, handler.EnqueueRequestsFromMapFunc(toNamespace), builder.WithPredicates(r.matters())).
		WithOptions(controller.Options{RateLimiter: ring.Refused().RateLimiter()}).
		Build(r)
	if err != nil {
		return fmt.Errorf("build the controller of the labels of namespaces: %w", err)
	}
	return r.watchBudgets(ctx, mgr, c)
}

// watchBudgets wakes a namespace when a budget comes or goes, as soon as their kind is installed.
func (r *reconciler) watchBudgets(ctx context.Context, mgr ctrl.Manager, c controller.Controller) error {
	needed := kube.Needed{
		Ring: "zones", Called: "the kind ZoneAwarePodDisruptionBudget is", Without: "no namespace is labeled for it", IsOptional: true,
		Action: "apply what \"spillway install --export\" prints",
		Kinds:  []schema.GroupVersionKind{zonesv1.GroupVersion.WithKind("ZoneAwarePodDisruptionBudget")},
	}
	return needed.Start(ctx, mgr, func(context.Context) error {
		toNamespaces := handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, b *zonesv1.ZoneAwarePodDisruptionBudget) []reconcile.Request {
			return toNamespace(ctx, b)
		})
		comesOrGoes := predicate.TypedFuncs[*zonesv1.ZoneAwarePodDisruptionBudget]{UpdateFunc: func(event.TypedUpdateEvent[*zonesv1.ZoneAwarePodDisruptionBudget]) bool { return false }}
		if err := c.Watch(source.Kind(mgr.GetCache(), &zonesv1.ZoneAwarePodDisruptionBudget{}, toNamespaces, comesOrGoes)); err != nil {
			return fmt.Errorf("watch ZoneAwarePodDisruptionBudgets: %w", err)
		}
		r.knowsBudgets.Store(true)
		return nil
	})
}

// reconciler labels namespaces. There is one request for each.
type reconciler struct {
	sets, live client.Reader
	actor      actor
	// bare has the names of namespaces that were seen without the label of Scales and without a
	// StatefulSet that needs it. Losing it costs a read.
	bare sync.Map
	// knowsBudgets is false while the kind of the budgets is not installed: then the label for
	// them stays as it is.
	knowsBudgets atomic.Bool
}

// Reconcile makes the labels of a namespace what its StatefulSets and budgets need.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	defer ring.UnderWay.Begin("namespaces")()
	needed, err := r.needed(ctx, req.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err = r.live.Get(ctx, req.NamespacedName, ns)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("get the namespace: %w", err)
	}
	if ns.UID == "" {
		return reconcile.Result{}, nil // it is gone
	}
	labels := map[string]any{}
	for key, is := range needed {
		switch has := ns.Labels[key] == "true"; {
		case is && !has:
			labels[key] = "true"
		case !is && has:
			labels[key] = nil
		}
	}
	if len(labels) == 0 {
		if !needed[vocabulary.PreparesScales.Native] {
			r.bare.Store(req.Name, true)
		}
		return reconcile.Result{}, nil
	}
	err = r.actor.label(ctx, ns, labels)
	if ring.IsConflict(err) {
		return reconcile.Result{RequeueAfter: ring.Conflicts().First}, nil
	}
	return reconcile.Result{}, err
}

// needed are the labels of a namespace: one if the Pods of some StatefulSet must be prepared, and
// one if there is a budget.
func (r *reconciler) needed(ctx context.Context, namespace string) (map[string]bool, error) {
	sets := &appsv1.StatefulSetList{}
	if err := r.sets.List(ctx, sets, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list StatefulSets: %w", err)
	}
	needed := map[string]bool{vocabulary.PreparesScales.Native: slices.ContainsFunc(sets.Items, func(s appsv1.StatefulSet) bool { return isPrepared(&s) })}
	if !r.knowsBudgets.Load() {
		return needed, nil
	}
	budgets := &zonesv1.ZoneAwarePodDisruptionBudgetList{}
	if err := r.sets.List(ctx, budgets, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ZoneAwarePodDisruptionBudgets: %w", err)
	}
	needed[vocabulary.GuardsEvictions.Native] = len(budgets.Items) > 0
	return needed, nil
}

func toNamespace(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: obj.GetNamespace()}}}
}

// matters leaves out what cannot change what a namespace needs.
func (r *reconciler) matters() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			_, bare := r.bare.Load(e.Object.GetNamespace())
			return !bare || isPrepared(e.Object)
		},
		UpdateFunc: func(e event.UpdateEvent) bool { return isPrepared(e.ObjectOld) != isPrepared(e.ObjectNew) },
		DeleteFunc: func(e event.DeleteEvent) bool { return isPrepared(e.Object) },
	}
}

func isPrepared(obj client.Object) bool {
	return vocabulary.PrepareDownscale.Get(obj.GetLabels()) == "true"
}
