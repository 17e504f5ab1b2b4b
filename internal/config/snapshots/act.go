package snapshots

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/ring"
)

// write creates a snapshot, if there is no object of that name.
func (k *Keeper) write(ctx context.Context, snapshot client.Object, key Key) error {
	err := k.writer.Create(ctx, snapshot, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency)
	switch {
	case apierrors.IsAlreadyExists(err): // another manager has written it; it is read by the next pass
		return apierrors.NewConflict(schema.GroupResource{Resource: string(key.Kind)}, key.Snapshot(), err) //nolint:wrapcheck // it is a conflict
	case err != nil:
		return fmt.Errorf("create the snapshot %s of %s %s: %w", key.Snapshot(), key.Kind, key.Name, err)
	}
	return nil
}

// remove deletes a snapshot as it was read.
func (k *Keeper) remove(ctx context.Context, snapshot client.Object) error {
	obj := client.Object(&corev1.ConfigMap{})
	if _, ok := snapshot.(*corev1.Secret); ok {
		obj = &corev1.Secret{}
	}
	obj.SetNamespace(snapshot.GetNamespace())
	obj.SetName(snapshot.GetName())
	err := k.writer.Delete(ctx, obj, ring.Preconditions(snapshot.GetUID(), snapshot.GetResourceVersion()), client.DisableReadYourWritesConsistency)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the snapshot %s: %w", snapshot.GetName(), err)
	}
	return nil
}
