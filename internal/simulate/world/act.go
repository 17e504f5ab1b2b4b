package world

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WriteStatus writes the status of an object as a controller of Kubernetes does: of
// the version that it has seen. If somebody was faster, it is looked at again anyway.
func (w *World) WriteStatus(ctx context.Context, obj client.Object) error {
	return Gone(w.Store.Status().Update(ctx, obj))
}

// Remove deletes the object that was seen.
func (w *World) Remove(ctx context.Context, obj client.Object) error {
	uid := obj.GetUID()
	return Gone(w.Store.Delete(ctx, obj, client.Preconditions{UID: &uid}))
}

// Gone is nil for what is not there any more, or not as it was.
func Gone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
