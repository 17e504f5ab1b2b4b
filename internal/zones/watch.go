package zones

import (
	"context"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/internal/zones/decision"
)

// Watches only wake groups up. Which event it was is forgotten immediately; what they
// leave out is what cannot change the outcome of a pass.

// The indices of the cache.
const (
	// groupIndex finds the StatefulSets of a group.
	groupIndex = "spillway.dev/rollout-group"
	// ownerIndex finds the Pods of a StatefulSet by its UID.
	ownerIndex = "spillway.dev/owner-uid"
)

func indexGroup(obj client.Object) []string {
	if group := groupOf(obj); group != "" {
		return []string{group}
	}
	return nil
}

// toGroup maps a StatefulSet to its group; one that changes groups wakes both.
func toGroup() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		return requests(obj.GetNamespace(), groupOf(obj))
	})
}

// toGroupOfOwner maps a Pod to the group of its StatefulSet. One that does
// not exist has none to wake; should it come, it wakes its group itself.
func toGroupOfOwner(sets client.Reader) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		owner := ownerOf(obj)
		if owner == nil {
			return nil
		}
		set := &appsv1.StatefulSet{}
		key := client.ObjectKey{Namespace: obj.GetNamespace(), Name: owner.Name}
		if err := sets.Get(ctx, key, set, client.UnsafeDisableDeepCopy); err != nil {
			return nil
		}
		return requests(obj.GetNamespace(), groupOf(set))
	})
}

func requests(namespace, group string) []reconcile.Request {
	if group == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: group}}}
}

// setMatters leaves out StatefulSets without a group, and updates of mere counts.
func setMatters() predicate.Predicate {
	p := predicate.NewPredicateFuncs(inGroup)
	p.UpdateFunc = func(e event.UpdateEvent) bool {
		if !inGroup(e.ObjectOld) && !inGroup(e.ObjectNew) {
			return false
		}
		before, ok := e.ObjectOld.(*appsv1.StatefulSet)
		after, same := e.ObjectNew.(*appsv1.StatefulSet)
		return !ok || !same || kube.IsResync(e) || setDiffers(before, after)
	}
	return p
}

func setDiffers(a, b *appsv1.StatefulSet) bool {
	return a.UID != b.UID || a.Generation != b.Generation || (a.DeletionTimestamp == nil) != (b.DeletionTimestamp == nil) ||
		!maps.Equal(a.Annotations, b.Annotations) || !maps.Equal(a.Labels, b.Labels) ||
		a.Status.ObservedGeneration != b.Status.ObservedGeneration ||
		a.Status.CurrentRevision != b.Status.CurrentRevision || a.Status.UpdateRevision != b.Status.UpdateRevision
}

// podMatters leaves out Pods of others, and updates that change nothing of what
// a decision is made from.
func podMatters() predicate.Predicate {
	p := predicate.NewPredicateFuncs(ofStatefulSet)
	p.UpdateFunc = func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.Pod)
		after, same := e.ObjectNew.(*corev1.Pod)
		if !ok || !same || !ofStatefulSet(before) && !ofStatefulSet(after) {
			return false
		}
		return kube.IsResync(e) || podDiffers(before, after)
	}
	return p
}

func podDiffers(a, b *corev1.Pod) bool {
	before, after := decision.PodOf(a, 0), decision.PodOf(b, 0)
	before.ResourceVersion, after.ResourceVersion = "", ""
	return before != after || !slices.Equal(indexOwner(a), indexOwner(b)) ||
		vocabulary.Withdrawn.Get(a.Annotations) != vocabulary.Withdrawn.Get(b.Annotations)
}

func indexOwner(obj client.Object) []string {
	if owner := ownerOf(obj); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}
