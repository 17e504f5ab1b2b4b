package zones

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/metrics"
	"github.com/spillway-dev/spillway/internal/zones/budget"
	"github.com/spillway-dev/spillway/internal/zones/decision"
)

// +kubebuilder:rbac:groups=rollout-operator.grafana.com,resources=zoneawarepoddisruptionbudgets,verbs=list;watch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=zoneawarepoddisruptionbudgets.rollout-operator.grafana.com,verbs=list;watch

// budgets reads the disruption budgets, from a cache where it is their manager that
// reads: a rollout pays no call for them.
type budgets struct {
	reader client.Reader
	// watched is false while the kind is not installed, and so there are none.
	watched atomic.Bool
}

// bound says of each set what its budget asks for. A budget that cannot be understood
// is a mistake that the user hears of.
func (b *budgets) bound(ctx context.Context, s *snapshot) error {
	all, err := b.in(ctx, s.key.Namespace)
	if err != nil || len(all) == 0 {
		return err
	}
	for i := range s.Sets {
		set := &s.Sets[i]
		if set.Bound, err = budget.BoundOf(all, &s.sets[i]); err != nil {
			set.Settings.Problems = append(set.Settings.Problems, decision.Problem{
				Object: "StatefulSet " + set.Name, Field: "ZoneAwarePodDisruptionBudget of its Pods",
				Value: err.Error(), Action: "must be fixed before they are rolled",
			})
		}
	}
	return nil
}

func (b *budgets) in(ctx context.Context, namespace string) ([]zonesv1.ZoneAwarePodDisruptionBudget, error) {
	if !b.watched.Load() {
		return nil, nil
	}
	list := &zonesv1.ZoneAwarePodDisruptionBudgetList{}
	err := b.reader.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
	if apimeta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list ZoneAwarePodDisruptionBudgets: %w", err)
	}
	return list.Items, nil
}

// watch wakes the groups of a namespace when a budget in it changes; as soon as the
// kind is installed, which is not for the ring to wait for.
func (b *budgets) watch(ctx context.Context, mgr ctrl.Manager, c controller.Controller) error {
	needed := kube.Needed{
		Ring: "zones", Called: "the kind ZoneAwarePodDisruptionBudget is", Without: "rollouts keep no such budget",
		Action: "apply what \"spillway install --export\" prints",
		Kinds:  []schema.GroupVersionKind{zonesv1.GroupVersion.WithKind("ZoneAwarePodDisruptionBudget")},
	}
	return needed.Start(ctx, mgr, func(context.Context) error {
		toGroups := handler.TypedEnqueueRequestsFromMapFunc(toGroupsIn(mgr.GetCache()))
		err := c.Watch(source.Kind(mgr.GetCache(), &zonesv1.ZoneAwarePodDisruptionBudget{}, toGroups,
			predicate.TypedGenerationChangedPredicate[*zonesv1.ZoneAwarePodDisruptionBudget]{}, countBudgets()))
		if err != nil {
			return fmt.Errorf("watch ZoneAwarePodDisruptionBudgets: %w", err)
		}
		b.watched.Store(true)
		budgetsObserved.from.Store(b)
		return nil
	})
}

// countBudgets counts the budgets that are observed, by rollout-operator's metric. What
// is filtered out before is not counted: it changes nothing of the spec.
func countBudgets() predicate.TypedFuncs[*zonesv1.ZoneAwarePodDisruptionBudget] {
	count := func(object *zonesv1.ZoneAwarePodDisruptionBudget) bool {
		result := "updated"
		if _, err := budget.Of(object); err != nil {
			result = "invalid"
		}
		metrics.BudgetsObserved.WithLabelValues(result).Inc()
		return true
	}
	return predicate.TypedFuncs[*zonesv1.ZoneAwarePodDisruptionBudget]{
		CreateFunc: func(e event.TypedCreateEvent[*zonesv1.ZoneAwarePodDisruptionBudget]) bool { return count(e.Object) },
		UpdateFunc: func(e event.TypedUpdateEvent[*zonesv1.ZoneAwarePodDisruptionBudget]) bool { return count(e.ObjectNew) },
		DeleteFunc: func(event.TypedDeleteEvent[*zonesv1.ZoneAwarePodDisruptionBudget]) bool {
			metrics.BudgetsObserved.WithLabelValues("deleted").Inc()
			return true
		},
	}
}

// scrapeTimeout is how long a scrape waits for a cache that was not read yet.
const scrapeTimeout = 2 * time.Second

// budgetsObserved is read when metrics are.
var budgetsObserved budgetCounts

func init() { //nolint:gochecknoinits // how the registry of controller-runtime is meant to be used
	metrics.Register(&budgetsObserved)
	for _, result := range []string{"updated", "deleted", "invalid"} {
		metrics.BudgetsObserved.WithLabelValues(result) // so that a rate knows where it begins
	}
}

// budgetCounts counts budgets as they are observed. One that is invalid is observed again
// with each scrape: rollout-operator's alert asks for a rate over five minutes, and must fire
// for as long as the budget is invalid, not only when it was written.
type budgetCounts struct {
	// from has the budgets, nil while they are not watched.
	from atomic.Pointer[budgets]
}

// Describe implements [prometheus.Collector].
func (*budgetCounts) Describe(descs chan<- *prometheus.Desc) { metrics.BudgetsObserved.Describe(descs) }

// Collect implements [prometheus.Collector].
func (b *budgetCounts) Collect(found chan<- prometheus.Metric) {
	if from := b.from.Load(); from != nil {
		ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout) //nolint:forbidigo // a scrape has none
		defer cancel()
		all, err := from.in(ctx, metav1.NamespaceAll)
		for i := range all {
			if _, invalid := budget.Of(&all[i]); err == nil && invalid != nil {
				metrics.BudgetsObserved.WithLabelValues("invalid").Inc()
			}
		}
	}
	metrics.BudgetsObserved.Collect(found)
}

// toGroupsIn maps a budget to all groups of its namespace: which of them it is for
// may just have changed.
func toGroupsIn(cached client.Reader) handler.TypedMapFunc[*zonesv1.ZoneAwarePodDisruptionBudget, reconcile.Request] {
	return func(ctx context.Context, b *zonesv1.ZoneAwarePodDisruptionBudget) []reconcile.Request {
		list := &appsv1.StatefulSetList{}
		if err := cached.List(ctx, list, client.InNamespace(b.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil
		}
		found := sets.New[reconcile.Request]()
		for i := range list.Items {
			found.Insert(requests(b.Namespace, groupOf(&list.Items[i]))...)
		}
		return found.UnsortedList()
	}
}
