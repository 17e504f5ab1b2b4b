package assemblage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/binding"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

const (
	// MaxPasses bounds how many passes follow one another without a look at the queue.
	MaxPasses = 5
	// ConflictPause is how long to wait after a conflict until the cache has caught up.
	ConflictPause = 50 * time.Millisecond
)

// Backoff is that of a pass that failed.
func Backoff() ring.Backoff { return ring.Backoff{First: 20 * time.Millisecond, Most: time.Minute} }

// Act is what a write does.
type Act string

// The acts on the assemblage itself.
const (
	AddFinalizer    Act = "AddFinalizer"
	RemoveFinalizer Act = "RemoveFinalizer"
	// Retire deletes an assemblage that is orphaned.
	Retire Act = "Retire"
)

// Plan is what to do next about an assemblage. W is a write.
type Plan[W any] struct {
	// Needs are objects that must be read before the plan is complete.
	Needs []binding.Object
	// Writes are to be made in this order.
	Writes []W
	// Status is the new status, Changes is true if it differs from the present one.
	Status  v1alpha1.AssemblageStatus
	Changes bool
	// Wake is when to reconcile again without an event, zero for never.
	Wake time.Time
}

// Refusals are the writes of a pass that were not accepted, by the sync that needs them;
// by an empty name if none does, or if all do.
type Refusals map[string]*outcome.Refusal

// Results are what became of a pass.
type Results struct {
	// Made is how many writes were made besides that of the status.
	Made int
	// Reported is true if the status was written.
	Reported bool
	// Err ended the pass, or says what was refused in it.
	Err error
}

// Next says how to go on after a pass.
func (r *Results) Next(now, wake time.Time) (ring.Next, error) {
	if apierrors.IsConflict(r.Err) || errors.Is(r.Err, ring.ErrConflict) {
		return ring.Next{Wake: now.Add(ConflictPause)}, nil
	}
	return ring.Next{Again: r.Made > 0, Wake: wake}, r.Err
}

// Actor makes the writes of a kind of assemblages. W is a write.
type Actor[W any] struct {
	Client client.Client
	Live   client.Reader
	Kind   schema.GroupVersionKind
	// Status is where an assemblage has its status.
	Status func(client.Object) *v1alpha1.AssemblageStatus
	// StatusFirst is true if a status says nothing of the writes of its pass but that they are being made.
	StatusFirst bool
	// Of returns what a write does, and the sync that needs it, empty if none or all do.
	Of func(*W) (Act, string)
}

// Pass is what is particular to the writes of one pass.
type Pass[W any] struct {
	// Read is the assemblage as it was observed.
	Read client.Object
	// Write makes a write that is not about the assemblage itself.
	Write func(context.Context, *W) error
	// Refused plans again with what was refused.
	Refused func(Refusals) Plan[W]
}

// Act makes the writes of a plan if the assemblage is unchanged since it was observed,
// and writes the status. After a refusal it skips the later writes of the same sync,
// which depend on it. A refused write of the assemblage itself ends the pass, and so does
// any other error.
func (a *Actor[W]) Act(ctx context.Context, pass Pass[W], p *Plan[W]) (r Results) {
	if r.Reported, r.Err = a.confirm(ctx, &pass, p); r.Err != nil {
		return r
	}
	refusals, itself := Refusals{}, false
	for i := range p.Writes {
		act, sync := a.Of(&p.Writes[i])
		if refusals[sync] != nil {
			continue
		}
		err := a.write(ctx, pass, &p.Writes[i])
		switch refusal := outcome.RefusalOf(err); {
		case err == nil:
			r.Made++
			itself = itself || act.isItself()
		case refusal == nil || act.isItself():
			r.Err = err
			return r
		default:
			refusals[sync], r.Err = refusal, errors.Join(r.Err, err)
		}
	}
	if len(refusals) > 0 {
		*p = pass.Refused(refusals)
	}
	if p.Changes && !itself && !r.Reported || r.Reported && len(refusals) > 0 {
		_, err := a.writeStatus(ctx, pass.Read, p)
		r.Reported, r.Err = err == nil, errors.Join(r.Err, err)
	}
	return r
}

// confirm has the API server confirm that the assemblage is unchanged since it was observed, unless all writes are
// of the assemblage itself: each of these has that as its precondition. A status has it too: one that begins
// something is written now, instead of a question, and what follows is about the assemblage as that has left it.
func (a *Actor[W]) confirm(ctx context.Context, pass *Pass[W], p *Plan[W]) (reported bool, err error) {
	itself := 0
	for i := range p.Writes {
		if act, _ := a.Of(&p.Writes[i]); act.isItself() {
			itself++
		}
	}
	switch {
	case itself == len(p.Writes):
		return false, nil
	case itself > 0 || !a.begins(pass, p):
		return false, ring.Confirm(ctx, a.Live, a.Kind, pass.Read)
	}
	read, err := a.writeStatus(ctx, pass.Read, p)
	if err == nil && read == nil { // it is gone
		err = ring.ErrConflict
	}
	if err == nil {
		pass.Read = read
	}
	return err == nil, err
}

// begins reports whether a status is the first about a new spec, and says nothing that a write has to come before: that
// something is not there any more.
func (a *Actor[W]) begins(pass *Pass[W], p *Plan[W]) bool {
	was := a.Status(pass.Read)
	isKept := func(s v1alpha1.SyncStatus) bool {
		return slices.ContainsFunc(p.Status.Syncs, func(now v1alpha1.SyncStatus) bool { return now.Name == s.Name })
	}
	return a.StatusFirst && p.Changes && was.ObservedGeneration != p.Status.ObservedGeneration &&
		!slices.ContainsFunc(was.Syncs, func(s v1alpha1.SyncStatus) bool { return !isKept(s) })
}

func (a *Actor[W]) write(ctx context.Context, pass Pass[W], w *W) error {
	var err error
	switch act, _ := a.Of(w); act {
	case Retire:
		err = ring.Do(ctx, nil, time.Time{}, func(ctx context.Context) error {
			return a.Client.Delete(ctx, pass.Read, ring.Preconditions(pass.Read.GetUID(), pass.Read.GetResourceVersion()))
		})
	case AddFinalizer, RemoveFinalizer:
		_, err = ring.SetFinalizer(ctx, a.Client, pass.Read, vocabulary.AssemblageFinalizer, act == AddFinalizer)
	default:
		return ring.Do(ctx, nil, time.Time{}, func(ctx context.Context) error { return pass.Write(ctx, w) })
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write %s %s: %w", a.Kind.Kind, pass.Read.GetName(), err)
	}
	return nil
}

// writeStatus writes the status. What is read next from the cache shows it.
func (a *Actor[W]) writeStatus(ctx context.Context, read client.Object, p *Plan[W]) (client.Object, error) {
	now, err := ring.UpdateStatus(ctx, a.Client.Status(), read, func(o client.Object) { p.Status.DeepCopyInto(a.Status(o)) }, ring.ReadBack)
	if apierrors.IsConflict(err) {
		return nil, ring.ErrConflict
	}
	return now, client.IgnoreNotFound(err) //nolint:wrapcheck // ring.UpdateStatus wraps it
}

func (a Act) isItself() bool { return a == AddFinalizer || a == RemoveFinalizer || a == Retire }
