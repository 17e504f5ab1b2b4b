package models

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/spillway-dev/spillway/internal/simulate/world"
)

// Collector is the garbage collector: it deletes what belongs to nothing that still
// exists, and before what is deleted in the foreground whatever belongs to that.
type Collector struct {
	*world.World

	// waiting are the owners that go once what belongs to them is gone, or is left to
	// itself.
	waiting map[types.UID]bool
}

// NewCollector returns the garbage collector.
func NewCollector(w *world.World) *Collector {
	return &Collector{World: w, waiting: map[types.UID]bool{}}
}

// Wakes says what to look at by UIDs: what belongs to those may have to go.
func (c *Collector) Wakes(before, after client.Object) []types.NamespacedName {
	switch {
	case after != nil && isWaiting(after):
		c.waiting[after.GetUID()] = true
		return []types.NamespacedName{keyOf(after.GetUID())}
	case after == nil && before != nil:
		return c.left(before)
	default:
		return nil
	}
}

// left are what an object leaves behind, which is nothing of a Pod, and the owners that
// have waited for it.
func (c *Collector) left(gone client.Object) []types.NamespacedName {
	var keys []types.NamespacedName
	if _, isPod := gone.(*corev1.Pod); !isPod {
		keys = append(keys, keyOf(gone.GetUID()))
	}
	for _, ref := range gone.GetOwnerReferences() {
		if c.waiting[ref.UID] {
			keys = append(keys, keyOf(ref.UID))
		}
	}
	return keys
}

func keyOf(uid types.UID) types.NamespacedName { return types.NamespacedName{Name: string(uid)} }

// Act implements [world.Actor].
func (c *Collector) Act(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	uid := types.UID(key.Name)
	var owner client.Object
	var dependents []client.Object
	for _, obj := range c.Store.All() {
		if obj.GetUID() == uid {
			owner = obj
		}
		if refersTo(obj, uid) {
			dependents = append(dependents, obj)
		}
	}
	switch {
	case owner == nil:
		delete(c.waiting, uid)
		return 0, c.collect(ctx, dependents, metav1.DeletePropagationBackground)
	case isForeground(owner):
		if err := c.collect(ctx, dependents, metav1.DeletePropagationForeground); err != nil || slices.ContainsFunc(dependents, c.blocks(uid)) {
			return 0, err
		}
		return 0, c.release(ctx, owner, metav1.FinalizerDeleteDependents)
	case isWaiting(owner):
		for _, obj := range dependents {
			if err := c.disown(ctx, obj, func(ref metav1.OwnerReference) bool { return ref.UID == uid }); err != nil {
				return 0, err
			}
		}
		return 0, c.release(ctx, owner, metav1.FinalizerOrphanDependents)
	default:
		return 0, nil
	}
}

// isWaiting is true of what is deleted and waits for the collector.
func isWaiting(obj client.Object) bool {
	return obj.GetDeletionTimestamp() != nil && (isForeground(obj) || controllerutil.ContainsFinalizer(obj, metav1.FinalizerOrphanDependents))
}

func isForeground(obj client.Object) bool {
	return obj.GetDeletionTimestamp() != nil && controllerutil.ContainsFinalizer(obj, metav1.FinalizerDeleteDependents)
}

func refersTo(obj client.Object, uid types.UID) bool {
	return slices.ContainsFunc(obj.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == uid })
}

// collect deletes what has no other owner that stays. What has one is disowned.
func (c *Collector) collect(ctx context.Context, dependents []client.Object, how metav1.DeletionPropagation) error {
	for _, obj := range dependents {
		var err error
		switch {
		case slices.ContainsFunc(obj.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return !c.goes(ref) }):
			err = c.disown(ctx, obj, c.goes)
		case obj.GetDeletionTimestamp() == nil:
			uid := obj.GetUID()
			err = world.Gone(c.Store.Delete(ctx, obj, client.Preconditions{UID: &uid}, client.PropagationPolicy(how)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// goes is true of an owner that is gone, or waits for what belongs to it. One that was
// never seen here is somewhere else.
func (c *Collector) goes(ref metav1.OwnerReference) bool {
	return c.Gone[ref.UID] || c.waiting[ref.UID] && ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
}

// blocks is true of what still exists and keeps its owner.
func (c *Collector) blocks(owner types.UID) func(client.Object) bool {
	return func(seen client.Object) bool {
		obj := c.Store.Object(seen, client.ObjectKeyFromObject(seen))
		return obj != nil && obj.GetUID() == seen.GetUID() && slices.ContainsFunc(obj.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
			return ref.UID == owner && ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
		})
	}
}

// disown takes references to owners away.
func (c *Collector) disown(ctx context.Context, obj client.Object, from func(metav1.OwnerReference) bool) error {
	changed, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		return nil
	}
	changed.SetOwnerReferences(slices.DeleteFunc(changed.GetOwnerReferences(), from))
	return world.Gone(c.Store.Update(ctx, changed))
}

// release lets an owner go for which there is nothing more to do.
func (c *Collector) release(ctx context.Context, owner client.Object, finalizer string) error {
	changed, ok := owner.DeepCopyObject().(client.Object)
	if !ok {
		return nil
	}
	controllerutil.RemoveFinalizer(changed, finalizer)
	return world.Gone(c.Store.Update(ctx, changed))
}
