package simulate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/simulate/record"
)

// Interruption is what becomes of the writes of the rings at one moment.
type Interruption struct {
	// At is the write that it begins with; empty is none.
	At string
	// Stop is true if the manager stops there: of the other writes only those of Before are made. Otherwise that one alone
	// is refused.
	Stop   bool
	Before []string
	// Unanswered is true if the write was made, though the manager receives an error.
	Unanswered bool
}

var (
	errInterrupted = errors.New("the manager has stopped")
	errRefused     = error(apierrors.NewInternalError(errors.New("the write was interrupted")))
)

// writes are those of the rings at a moment, and what becomes of them. Rings make some of them several at a time.
type writes struct {
	Interruption

	mu   sync.Mutex
	made []string
	// by returns who writes now.
	by func() string
}

// of says of a write whether it is made, and what the manager hears.
func (w *writes) of(verb string, obj any) (made bool, heard error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	is := w.name(verb, obj)
	w.made = append(w.made, is)
	switch {
	case w.At == "" || w.At != is && !w.Stop:
		return true, nil
	case w.Stop:
		return w.Unanswered && is == w.At || slices.Contains(w.Before, is), errInterrupted
	default:
		return w.Unanswered, errRefused
	}
}

// name tells a write from all others of a moment. Those that a ring makes together have names in their order.
func (w *writes) name(verb string, obj any) string {
	is := w.by() + " " + verb + fmt.Sprintf(" %T", obj)
	if o, ok := obj.(client.Object); ok {
		is += " " + o.GetNamespace() + "/" + o.GetName()
	} else if o, ok := obj.(interface{ GetName() *string }); ok {
		is += " " + ptr.Deref(o.GetName(), "")
	}
	for n := 1; ; n++ {
		if numbered := fmt.Sprintf("%s %d", is, n); !slices.Contains(w.made, numbered) {
			return numbered
		}
	}
}

// inOrder are the writes in their order, and in that of their names where a ring makes them together.
func (w *writes) inOrder() []string {
	all := slices.Clone(w.made)
	for from, to := 0, 1; from < len(all); from, to = to, to+1 {
		for to < len(all) && together(all[to]) != "" && together(all[to]) == together(all[from]) {
			to++
		}
		slices.Sort(all[from:to])
	}
	return all
}

// together is the same of writes that a ring may make together, empty of others.
func together(write string) string {
	f := strings.Fields(write)
	if f[1] != record.RingConfig && f[1] != record.RingPlans {
		return ""
	}
	return strings.Join(f[:3], " ")
}

// write makes a write, unless it is interrupted.
func (w *writes) write(verb string, obj any, write func() error) error {
	made, heard := w.of(verb, obj)
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

	read  func(request func() error) error
	write func(verb string, obj any, request func() error) error
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
	return c.write("create", obj, func() error { return c.Client.Create(ctx, obj, opts...) })
}

// Update implements [client.Writer].
func (c *between) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return c.write("update", obj, func() error { return c.Client.Update(ctx, obj, opts...) })
}

// Patch implements [client.Writer].
func (c *between) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return c.write("patch", obj, func() error { return c.Client.Patch(ctx, obj, patch, opts...) })
}

// Apply implements [client.Writer].
func (c *between) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return c.write("apply", obj, func() error { return c.Client.Apply(ctx, obj, opts...) })
}

// Delete implements [client.Writer].
func (c *between) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return c.write("delete", obj, func() error { return c.Client.Delete(ctx, obj, opts...) })
}

// Status implements [client.StatusClient].
func (c *between) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource implements [client.SubResourceClientConstructor].
func (c *between) SubResource(name string) client.SubResourceClient {
	return betweenSub{c.Client.SubResource(name), c.write}
}

type betweenSub struct {
	client.SubResourceClient

	write func(verb string, obj any, request func() error) error
}

// Create implements [client.SubResourceWriter].
func (c betweenSub) Create(ctx context.Context, obj, sub client.Object, opts ...client.SubResourceCreateOption) error {
	return c.write("create status", obj, func() error { return c.SubResourceClient.Create(ctx, obj, sub, opts...) })
}

// Update implements [client.SubResourceWriter].
func (c betweenSub) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	return c.write("update status", obj, func() error { return c.SubResourceClient.Update(ctx, obj, opts...) })
}

// Patch implements [client.SubResourceWriter].
func (c betweenSub) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return c.write("patch status", obj, func() error { return c.SubResourceClient.Patch(ctx, obj, patch, opts...) })
}
