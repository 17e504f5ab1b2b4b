package hub

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	spillway "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
)

// budgets reads the ClusterBudgets of the namespace, and which modules may share them. What they say was noted before the
// assemblages are read.
func (o *observer) budgets(ctx context.Context, s *snapshot) error {
	list := &spillway.ClusterBudgetList{}
	if err := o.cached.List(ctx, list, client.InNamespace(s.key.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the ClusterBudgets: %w", err)
	}
	if len(list.Items) == 0 {
		return nil
	}
	s.Module.Kind, s.Module.Namespace, s.Module.Name = o.kind.name, s.key.Namespace, s.key.Name // also of one that is gone
	s.clusterBudgets = map[string]*spillway.ClusterBudget{}
	for i := range list.Items {
		b := &list.Items[i]
		s.clusterBudgets[b.Name] = b
		s.Budgets = append(s.Budgets, model.Budget{
			Name: b.Name, UID: b.UID, ResourceVersion: b.ResourceVersion, Generation: b.Generation, Spec: b.Spec, Modules: b.Status.Modules,
		})
	}
	slices.SortFunc(s.Budgets, func(a, b model.Budget) int { return strings.Compare(a.Name, b.Name) })
	return o.sharers(ctx, s)
}

func (o *observer) sharers(ctx context.Context, s *snapshot) error {
	for _, k := range kinds() {
		list := k.modules()
		if err := o.cached.List(ctx, list, client.InNamespace(s.key.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("list the modules that share a budget: %w", err)
		}
		for _, m := range itemsOf(list) {
			if isRolledOut(m) {
				s.Sharers = append(s.Sharers, model.Sharer{Kind: k.name, Name: m.GetName(), Labels: m.GetLabels()})
			}
		}
	}
	return nil
}

// isRolledOut is true of a module of which the hub says which cluster is updated when.
func isRolledOut(module client.Object) bool {
	spec, _ := model.Parts(module)
	return spec.Strategy != v1alpha1.External
}

// hasNoted is true if some budget says that the module is updating clusters, though it may be gone.
func (s *snapshot) hasNoted() bool {
	return slices.ContainsFunc(s.Budgets, func(b model.Budget) bool { return b.Noted(s.Module.Kind, s.Module.Name) != nil })
}

// toSharers maps a budget to the modules that have noted something in it, and to all if it says something else.
func (k *kind) toSharers(cached client.Reader) handler.EventHandler {
	wake := func(ctx context.Context, q queue, budgets ...client.Object) {
		for _, obj := range budgets {
			b, ok := obj.(*spillway.ClusterBudget)
			if !ok {
				continue
			}
			for i := range b.Status.Modules {
				if m := &b.Status.Modules[i]; m.Kind == k.name {
					q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: b.Namespace, Name: m.Name}}, batchDelay)
				}
			}
		}
		if first, last := budgets[0], budgets[len(budgets)-1]; len(budgets) == 1 || first.GetGeneration() != last.GetGeneration() || first.GetUID() != last.GetUID() {
			k.wakeAll(ctx, cached, q, first.GetNamespace())
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { wake(ctx, q, e.Object) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { wake(ctx, q, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { wake(ctx, q, e.ObjectOld, e.ObjectNew) },
	}
}

// toOthers maps a module that ceases to share a budget to the modules that may wait for what it has to note there.
func (k *kind) toOthers(cached client.Reader) handler.EventHandler {
	wake := func(ctx context.Context, q queue, namespace string) {
		list := &spillway.ClusterBudgetList{}
		if err := cached.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err == nil && len(list.Items) > 0 {
			k.wakeAll(ctx, cached, q, namespace)
		}
	}
	return handler.Funcs{
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { wake(ctx, q, e.Object.GetNamespace()) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if isRolledOut(e.ObjectOld) != isRolledOut(e.ObjectNew) || !equality.Semantic.DeepEqual(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) {
				wake(ctx, q, e.ObjectNew.GetNamespace())
			}
		},
	}
}
