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

// interrupter is the client of rings whose writes may be interrupted.
type interrupter struct {
	client.Client
	*Interruption
}

// Create implements [client.Writer].
func (c *interrupter) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return c.write(func() error { return c.Client.Create(ctx, obj, opts...) })
}

// Update implements [client.Writer].
func (c *interrupter) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return c.write(func() error { return c.Client.Update(ctx, obj, opts...) })
}

// Patch implements [client.Writer].
func (c *interrupter) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return c.write(func() error { return c.Client.Patch(ctx, obj, patch, opts...) })
}

// Apply implements [client.Writer].
func (c *interrupter) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return c.write(func() error { return c.Client.Apply(ctx, obj, opts...) })
}

// Delete implements [client.Writer].
func (c *interrupter) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return c.write(func() error { return c.Client.Delete(ctx, obj, opts...) })
}

// Status implements [client.StatusClient].
func (c *interrupter) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource implements [client.SubResourceClientConstructor].
func (c *interrupter) SubResource(name string) client.SubResourceClient {
	return interruptedSub{c.Client.SubResource(name), c.Interruption}
}

type interruptedSub struct {
	client.SubResourceClient
	*Interruption
}

// Create implements [client.SubResourceWriter].
func (c interruptedSub) Create(ctx context.Context, obj, sub client.Object, opts ...client.SubResourceCreateOption) error {
	return c.write(func() error { return c.SubResourceClient.Create(ctx, obj, sub, opts...) })
}

// Update implements [client.SubResourceWriter].
func (c interruptedSub) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	return c.write(func() error { return c.SubResourceClient.Update(ctx, obj, opts...) })
}

// Patch implements [client.SubResourceWriter].
func (c interruptedSub) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return c.write(func() error { return c.SubResourceClient.Patch(ctx, obj, patch, opts...) })
}
