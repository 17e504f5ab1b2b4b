package zones

import (
	"context"
	"fmt"
	"sync/atomic"

	appsv1 "k8s.io/api/apps/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
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
	"github.com/spillway-dev/spillway/internal/zones/budget"
	"github.com/spillway-dev/spillway/internal/zones/decision"
)

// +kubebuilder:rbac:groups=rollout-operator.grafana.com,resources=zoneawarepoddisruptionbudgets,verbs=list;watch

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
		budgetsObserved.WithLabelValues(result).Inc()
		return true
	}
	return predicate.TypedFuncs[*zonesv1.ZoneAwarePodDisruptionBudget]{
		CreateFunc: func(e event.TypedCreateEvent[*zonesv1.ZoneAwarePodDisruptionBudget]) bool { return count(e.Object) },
		UpdateFunc: func(e event.TypedUpdateEvent[*zonesv1.ZoneAwarePodDisruptionBudget]) bool { return count(e.ObjectNew) },
		DeleteFunc: func(event.TypedDeleteEvent[*zonesv1.ZoneAwarePodDisruptionBudget]) bool {
			budgetsObserved.WithLabelValues("deleted").Inc()
			return true
		},
	}
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
