package fault

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Life is that of a manager whose API servers are in memory: it ends before or after its n-th
// write, 0 for never, on whichever of them that is. It is for one goroutine.
type Life struct {
	End  int
	When When
	// Writes are those so far. Stopped is true once it has ended.
	Writes  int
	Stopped bool
}

// Of returns how the manager reaches an API server.
func (l *Life) Of(c client.Client) client.WithWatch { return &mortal{c, l} }

func (l *Life) write(write func() error) error {
	if l.Stopped {
		return ErrStopped
	}
	l.Writes++
	l.Stopped = l.Writes == l.End
	if l.Stopped && l.When == Before {
		return ErrStopped
	}
	if err := write(); !l.Stopped {
		return err
	}
	return ErrStopped
}

type mortal struct {
	client.Client

	life *Life
}

// Watch implements [client.WithWatch]: in memory nothing is watched.
func (*mortal) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	return nil, errors.New("in memory nothing is watched")
}

// Get implements [client.Reader].
func (m *mortal) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if m.life.Stopped {
		return ErrStopped
	}
	return m.Client.Get(ctx, key, obj, opts...) //nolint:wrapcheck // it stands in for the client
}

// List implements [client.Reader].
func (m *mortal) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if m.life.Stopped {
		return ErrStopped
	}
	return m.Client.List(ctx, list, opts...) //nolint:wrapcheck // it stands in for the client
}

// Create implements [client.Writer].
func (m *mortal) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return m.life.write(func() error { return m.Client.Create(ctx, obj, opts...) })
}

// Update implements [client.Writer].
func (m *mortal) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return m.life.write(func() error { return m.Client.Update(ctx, obj, opts...) })
}

// Patch implements [client.Writer]. What is applied as a patch is applied.
func (m *mortal) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return m.life.write(func() error {
		if patch.Type() != types.ApplyPatchType {
			return m.Client.Patch(ctx, obj, patch, opts...)
		}
		raw, err := patch.Data(obj)
		u := &unstructured.Unstructured{}
		if err := errors.Join(err, u.UnmarshalJSON(raw)); err != nil {
			return err
		}
		o := (&client.PatchOptions{}).ApplyOptions(opts)
		return m.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(o.FieldManager), client.ForceOwnership)
	})
}

// Apply implements [client.Writer].
func (m *mortal) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return m.life.write(func() error { return m.Client.Apply(ctx, obj, opts...) })
}

// Delete implements [client.Writer].
func (m *mortal) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return m.life.write(func() error { return m.Client.Delete(ctx, obj, opts...) })
}

// Status implements [client.StatusClient].
func (m *mortal) Status() client.SubResourceWriter { return m.SubResource("status") }

// SubResource implements [client.SubResourceClientConstructor].
func (m *mortal) SubResource(name string) client.SubResourceClient {
	return mortalPart{m.Client.SubResource(name), m.life}
}

type mortalPart struct {
	client.SubResourceClient

	life *Life
}

// Update implements [client.SubResourceWriter].
func (p mortalPart) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	return p.life.write(func() error { return p.SubResourceClient.Update(ctx, obj, opts...) })
}

// Patch implements [client.SubResourceWriter].
func (p mortalPart) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return p.life.write(func() error { return p.SubResourceClient.Patch(ctx, obj, patch, opts...) })
}
