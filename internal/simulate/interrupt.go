package simulate

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Interruption is what becomes of the writes of the rings at one moment.
type Interruption struct {
	// At is the write that it begins with, counted from 1; zero is none.
	At int
	// Stop is true if the manager stops there: no later write is made. Otherwise that one alone is refused.
	Stop bool
	// Unanswered is true if the write was made, though the manager receives an error.
	Unanswered bool

	// in is true until the moment is over.
	in   bool
	made int
}

var (
	errInterrupted = errors.New("the manager has stopped")
	errRefused     = error(apierrors.NewInternalError(errors.New("the write was interrupted")))
)

// of says of a write whether it is made, and what the manager hears.
func (i *Interruption) of() (made bool, heard error) {
	i.made++
	switch {
	case !i.in || i.At == 0 || i.made < i.At || i.made > i.At && !i.Stop:
		return true, nil
	case i.Stop:
		return i.Unanswered && i.made == i.At, errInterrupted
	default:
		return i.Unanswered, errRefused
	}
}

// write makes a write, unless it is interrupted.
func (i *Interruption) write(write func() error) error {
	made, heard := i.of()
	if made {
		if err := write(); err != nil {
			return err
		}
	}
	return heard
}

// between is a client of which each request is made by read or write, which may refuse it.
type between struct {
	client.Client

	read, write func(request func() error) error
}

// always makes a request.
func always(request func() error) error { return request() }

// Get implements [client.Reader].
func (c *between) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return c.read(func() error { return c.Client.Get(ctx, key, obj, opts...) })
}

// List implements [client.Reader].
func (c *between) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.read(func() error { return c.Client.List(ctx, list, opts...) })
}

// Create implements [client.Writer].
func (c *between) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if (&client.CreateOptions{}).ApplyOptions(opts).DryRun != nil {
		return c.read(func() error { return c.Client.Create(ctx, obj, opts...) })
	}
	return c.write(func() error { return c.Client.Create(ctx, obj, opts...) })
}

// Update implements [client.Writer].
func (c *between) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return c.write(func() error { return c.Client.Update(ctx, obj, opts...) })
}

// Patch implements [client.Writer].
func (c *between) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return c.write(func() error { return c.Client.Patch(ctx, obj, patch, opts...) })
}

// Apply implements [client.Writer].
func (c *between) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return c.write(func() error { return c.Client.Apply(ctx, obj, opts...) })
}

// Delete implements [client.Writer].
func (c *between) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return c.write(func() error { return c.Client.Delete(ctx, obj, opts...) })
}

// Status implements [client.StatusClient].
func (c *between) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource implements [client.SubResourceClientConstructor].
func (c *between) SubResource(name string) client.SubResourceClient {
	return betweenSub{c.Client.SubResource(name), c.write}
}

type betweenSub struct {
	client.SubResourceClient

	write func(request func() error) error
}

// Create implements [client.SubResourceWriter].
func (c betweenSub) Create(ctx context.Context, obj, sub client.Object, opts ...client.SubResourceCreateOption) error {
	return c.write(func() error { return c.SubResourceClient.Create(ctx, obj, sub, opts...) })
}

// Update implements [client.SubResourceWriter].
func (c betweenSub) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	return c.write(func() error { return c.SubResourceClient.Update(ctx, obj, opts...) })
}

// Patch implements [client.SubResourceWriter].
func (c betweenSub) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return c.write(func() error { return c.SubResourceClient.Patch(ctx, obj, patch, opts...) })
}
