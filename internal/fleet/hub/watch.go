package hub

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	spillway "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Watches only wake modules up. Which event it was is forgotten immediately; what they
// leave out is what cannot change the outcome of a pass.

// moduleIndex finds the ModuleRevisions and the RolloutGates of a module.
const moduleIndex = "spillway.dev/module"

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func indexModule(obj client.Object) []string {
	if kind, name := moduleOf(obj); name != "" {
		return []string{kind + "/" + name}
	}
	return nil
}

// toModule maps a revision or a gate to its module.
func (k *kind) toModule() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		if kind, name := moduleOf(obj); kind == k.name && name != "" {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}}}
		}
		return nil
	})
}

// moduleOf is the kind and the name of the module of a revision or a gate.
func moduleOf(obj client.Object) (kind, name string) {
	switch o := obj.(type) {
	case *spillway.ModuleRevision:
		return o.Spec.ModuleRef.Kind, o.Spec.ModuleRef.Name
	case *spillway.RolloutGate:
		if o.Spec.TargetRef.APIVersion == v1alpha1.GroupVersion.String() {
			return o.Spec.TargetRef.Kind, o.Spec.TargetRef.Name
		}
	}
	return "", ""
}

// toModules maps an assemblage to the modules of which it says something else than
// before. They are woken a moment later, as more reports follow. One that says nothing of any
// module is what a move waits for, as is one of which moves were withdrawn; whose, it does not
// say.
func (k *kind) toModules(cached client.Reader) handler.EventHandler {
	wake := func(ctx context.Context, q queue, namespace string, names []string) {
		for _, name := range names {
			q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}, batchDelay)
		}
		if len(names) == 0 {
			k.wakeAll(ctx, cached, q, namespace)
		}
	}
	all := func(ctx context.Context, q queue, obj client.Object) {
		a := assembledOf(obj)
		wake(ctx, q, obj.GetNamespace(), a.mentioned())
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { all(ctx, q, e.Object) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { all(ctx, q, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, after := assembledOf(e.ObjectOld), assembledOf(e.ObjectNew)
			if names := changedIn(&before, &after); len(names) > 0 {
				wake(ctx, q, e.ObjectNew.GetNamespace(), names)
			}
			withdrawn := vocabulary.Withdrawn.Get(e.ObjectOld.GetAnnotations()) != vocabulary.Withdrawn.Get(e.ObjectNew.GetAnnotations())
			if withdrawn || !equality.Semantic.DeepEqual(before.status.Found, after.status.Found) {
				k.wakeAll(ctx, cached, q, e.ObjectNew.GetNamespace())
			}
		},
	}
}

// wakeAll wakes the modules of a namespace.
func (k *kind) wakeAll(ctx context.Context, cached client.Reader, q queue, namespace string) {
	list := k.modules()
	if err := cached.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return // the manager stops, or has not begun: then everything is looked at anyhow
	}
	for _, m := range itemsOf(list) {
		q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(m)}, batchDelay)
	}
}

// changedIn are the modules of which two versions of an assemblage say different
// things; all of them at a resync.
func changedIn(before, after *assembled) []string {
	names := append(before.mentioned(), after.mentioned()...)
	slices.Sort(names)
	names = slices.Compact(names)
	if before.GetResourceVersion() == after.GetResourceVersion() || before.GetUID() != after.GetUID() ||
		before.status.ObservedGeneration != after.status.ObservedGeneration {
		return names
	}
	return slices.DeleteFunc(names, func(name string) bool {
		_, was, _ := before.sync(name)
		_, is, _ := after.sync(name)
		return equality.Semantic.DeepEqual(was, is) && equality.Semantic.DeepEqual(before.report(name), after.report(name))
	})
}

// mentioned are the modules of which an assemblage says something.
func (a *assembled) mentioned() []string {
	names := a.names()
	for i := range a.status.Syncs {
		names = append(names, a.status.Syncs[i].Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// clusterChanges wakes the modules of a namespace when a cluster of it has changed, or was asked what it serves.
func (k *kind) clusterChanges(clusters Directory, facts *cluster.FactBook, cached client.Reader) source.Source {
	return source.Func(func(ctx context.Context, q queue) error {
		wake := func(changed types.NamespacedName) { k.wakeAll(ctx, cached, q, changed.Namespace) }
		clusters.Subscribe(wake)
		if facts != nil {
			facts.Subscribe(wake)
		}
		return nil
	})
}
