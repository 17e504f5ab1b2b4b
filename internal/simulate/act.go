package simulate

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writeStatus writes the status of an object as a controller of Kubernetes does: of
// the version that it has seen. If somebody was faster, it is looked at again anyway.
func (w *world) writeStatus(ctx context.Context, obj client.Object) error {
	return gone(w.store.Status().Update(ctx, obj))
}

// remove deletes the object that was seen.
func (w *world) remove(ctx context.Context, obj client.Object) error {
	uid := obj.GetUID()
	return gone(w.store.Delete(ctx, obj, client.Preconditions{UID: &uid}))
}

// gone is nil for what is not there any more, or not as it was.
func gone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
