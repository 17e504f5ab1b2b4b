package watch

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli/show"
	"github.com/spillway-dev/spillway/internal/describe"
)

// foresee sets when units end that are under way, if that was asked for.
func (w *watching) foresee(ctx context.Context, units []describe.Unit) error {
	moves := func(u describe.Unit) bool { return !u.IsComplete() }
	if !w.eta || !slices.ContainsFunc(units, moves) {
		return nil
	}
	if err := show.Ends(ctx, w.Query, present{w.mirror, w.live}, w.look.Config, w.namespace, units); err != nil {
		return lookError{fmt.Errorf("--eta: %w", err)}
	}
	return nil
}

// present is what a forecast begins with: what is watched, and from the API server itself the
// config, of which a watch keeps digests. What it gives is the caller's own.
type present struct {
	client.Client

	values client.Reader
}

// Get implements [client.Reader].
func (p present) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	switch obj.(type) {
	case *corev1.ConfigMap, *corev1.Secret:
		return p.values.Get(ctx, key, obj, opts...) //nolint:wrapcheck // stands in for the client
	default:
		return p.Client.Get(ctx, key, obj, opts...) //nolint:wrapcheck // stands in for the client
	}
}

// List implements [client.Reader].
func (p present) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	switch list.(type) {
	case *corev1.ConfigMapList, *corev1.SecretList:
		return p.values.List(ctx, list, opts...) //nolint:wrapcheck // stands in for the client
	}
	if err := p.Client.List(ctx, list, opts...); err != nil {
		return err //nolint:wrapcheck // stands in for the client
	}
	var own []runtime.Object
	err := apimeta.EachListItem(list, func(obj runtime.Object) error {
		own = append(own, obj.DeepCopyObject())
		return nil
	})
	if err != nil {
		return fmt.Errorf("copy a list: %w", err)
	}
	return apimeta.SetList(list, own) //nolint:wrapcheck // as above
}
