package simulate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/simulate/apiserver"
	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/simulate/world"
)

// Play is a world that is played moment by moment, and that can be forked at each. It is
// always at rest: everybody has done what is to be done at its moment.
type Play struct {
	s *simulation
	// writes are those of the rings at the last moment, and what becomes of those of the next.
	writes  *writes
	digests digests
}

// Start brings about the objects of base, as they are when the change is made.
func Start(ctx context.Context, base []*unstructured.Unstructured, o Options) (*Play, error) {
	p := &Play{writes: &writes{}, digests: digests{}}
	s, err := newSimulation(quiet(ctx), o)
	if err != nil {
		return nil, err
	}
	p.s = s
	if err := s.prepare(quiet(ctx), base); err != nil {
		return nil, fmt.Errorf("before the change: %w", err)
	}
	return p, s.begin(quiet(ctx))
}

// quiet has the rings log nothing: what they do is seen in what they write.
func quiet(ctx context.Context) context.Context { return logr.NewContext(ctx, logr.Discard()) }

// Apply makes the change.
func (p *Play) Apply(ctx context.Context, change []*unstructured.Unstructured) error {
	if err := p.s.apply(quiet(ctx), change); err != nil {
		return err
	}
	return p.rest(ctx)
}

// Fork is the same world once more, with a manager that has just begun. What is done to one does
// nothing to the other.
func (p *Play) Fork(ctx context.Context) (*Play, error) {
	f := &Play{s: p.s.asleep(), digests: p.digests}
	f.writes = &writes{by: f.s.looking}
	f.s.Client = &between{Client: f.s.Store, write: f.writes.write, read: always}
	if err := f.s.addActors(quiet(ctx)); err != nil {
		return nil, err
	}
	f.s.GoOn(p.s.World)
	f.s.Restart(func(a world.Actor) bool {
		r, ok := a.(*ring)
		return ok && r.remembers
	})
	return f, nil
}

// Sleep gives back what each fork makes again: only [Play.Fork] and [Play.State] may follow.
func (p *Play) Sleep() {
	p.s.Sleep()
	p.s.rings, p.s.Client = nil, nil
}

// Next lets time go on to the next moment at which anybody acts, and everybody act; false if there is none.
func (p *Play) Next(ctx context.Context) (bool, error) {
	if !p.s.Advance() {
		return false, nil
	}
	return true, p.rest(ctx)
}

func (p *Play) rest(ctx context.Context) error {
	p.writes.made = nil
	err := p.s.Rest(quiet(ctx))
	p.writes.Interruption = Interruption{}
	return err
}

// Interrupt has the manager stop, or a write of it fail, at the next moment, see [Interruption].
func (p *Play) Interrupt(i Interruption) { p.writes.Interruption = i }

// Writes are those that the rings have made at the last moment, in their order. Those that a ring makes several at a time are
// in the order of their names.
func (p *Play) Writes() []string { return p.writes.inOrder() }

// Restarted is the world once another manager has taken over, and has looked at everything.
func (p *Play) Restarted(ctx context.Context) (*Play, error) {
	f, err := p.Fork(ctx)
	if err != nil {
		return nil, err
	}
	f.s.Forgive()
	f.s.Restart(func(a world.Actor) bool {
		_, ok := a.(*ring)
		return ok
	})
	return f, f.rest(ctx)
}

// Afflict keeps a unit from being ready, see [models.Models.Afflict].
func (p *Play) Afflict(ctx context.Context, of record.Key, by world.Fault) error {
	p.s.models.Afflict(of, by)
	return p.rest(ctx)
}

// Relieve ends that.
func (p *Play) Relieve(ctx context.Context, of record.Key) error {
	p.s.models.Relieve(of)
	return p.rest(ctx)
}

// Refuse has the gates of a name refused that are reached from now on.
func (p *Play) Refuse(gate string) {
	of := map[string]v1alpha1.GateResult{gate: v1alpha1.GateFailure}
	maps.Copy(of, p.s.options.Gates)
	p.s.options.Gates = of
}

// Lose takes a Pod away as if its node had gone.
func (p *Play) Lose(ctx context.Context, of record.Key) error {
	p.s.models.Lose(of)
	return p.rest(ctx)
}

// Change is a write that has changed an object: Before is nil of what is new, After of what is gone.
type Change struct{ Before, After client.Object }

// Watch tells of all that a ring or a controller of Kubernetes has changed whenever it has looked at something,
// and which it is. The world is then as it has left it.
func (p *Play) Watch(see func(by string, changes []Change)) {
	var changes []Change
	p.s.Store.OnChange = func(before, after client.Object) {
		p.s.Changed(before, after)
		if p.s.Acting != nil {
			changes = append(changes, Change{before, after})
		}
	}
	p.s.After = func() {
		by := record.Kubernetes
		if r, ok := p.s.Acting.(*ring); ok {
			by = r.name
		}
		see(by, changes)
		changes = nil
	}
}

// Store has the objects. They must not be changed.
func (p *Play) Store() *apiserver.Store { return p.s.Store }

// At is how long after the change the world is.
func (p *Play) At() record.Offset { return p.s.offset(p.s.Now) }

// Now is its moment.
func (p *Play) Now() time.Time { return p.s.Now }

// Steps are all that were taken since the change.
func (p *Play) Steps() []record.Step { return p.s.Recorder.Steps() }

// GroupOf is the group of a StatefulSet, or of the one that a Pod belongs to.
func (p *Play) GroupOf(obj client.Object) string { return p.s.GroupOf(obj) }

// Waits are what is not where it should be at this moment, and why; but for what waited in the same
// way before the change.
func (p *Play) Waits(ctx context.Context) ([]record.Wait, error) {
	ctx = quiet(ctx)
	if err := p.s.Act(ctx); err != nil {
		return nil, err
	}
	unwhole, err := record.Unwhole(ctx, p.s.Store, "", p.s.waiting)
	if err != nil {
		return nil, err
	}
	all := slices.Concat(p.s.waiting, unwhole, p.s.failures())
	return slices.DeleteFunc(all, func(w record.Wait) bool { return slices.ContainsFunc(p.s.before, w.SameAs) }), nil
}
