package change

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli/command"
)

// Apply reads an object, lets change edit it, and writes it if it is still as it was
// read. On a conflict it starts again from a new read: the manager writes there as well.
func Apply(ctx context.Context, c client.Client, obj client.Object, change func() error) error {
	return Retry(Name(c, obj), func() error {
		if err := Get(ctx, c, obj); err != nil {
			return err
		}
		before, ok := obj.DeepCopyObject().(client.Object)
		if !ok {
			return errors.New("a copy of an object is not an object")
		}
		if err := change(); err != nil {
			return err
		}
		return Write(ctx, c, obj, before)
	})
}

// Retry runs a change again while it loses a conflict.
func Retry(what string, change func() error) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, change)
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%s: conflict with another client; nothing was changed, try again", what)
	}
	return err //nolint:wrapcheck // the change has said what it is
}

// Write writes an object if it is still as it was before.
func Write(ctx context.Context, c client.Client, obj, before client.Object) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.Patch(ctx, obj, patch, client.FieldOwner(FieldOwner)); err != nil {
		return fmt.Errorf("change %s: %w", Name(c, obj), err)
	}
	return nil
}

// Get reads an object, by the name and the namespace that it has.
func Get(ctx context.Context, c client.Client, obj client.Object) error {
	what, key := Name(c, obj), client.ObjectKeyFromObject(obj)
	gvk, unknown := c.GroupVersionKindFor(obj)
	err := c.Get(ctx, key, obj)
	switch {
	case apimeta.IsNoMatchError(err):
		return command.NotInstalled(what, gvk.Kind)
	case apierrors.IsNotFound(err):
		if unknown != nil {
			return fmt.Errorf("%s not found in namespace %s", what, key.Namespace)
		}
		return command.NotFound(ctx, c, gvk, key.Namespace, key.Name)
	case err != nil:
		return fmt.Errorf("get %s: %w", what, err)
	default:
		return nil
	}
}

// Name is how kubectl names an object.
func Name(c client.Client, obj client.Object) string {
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return obj.GetName()
	}
	return strings.ToLower(gvk.Kind) + "/" + obj.GetName()
}
