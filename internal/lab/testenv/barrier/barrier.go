// Package barrier says when managers under test have observed and done all that follows from
// what was written before.
//
// A test writes, waits at the barrier, and asserts once: nothing that the manager does not do
// by then does it do later, unless the cluster or the clock changes. What it wrote between two
// barriers is all that it wrote, so "writes nothing" needs no quiet time.
//
// # What is waited for
//
//  1. Each event handler of each watch was called for all that a live list of its kind shows.
//     A handler puts what it wakes into a queue before it returns.
//  2. No queue has a request that is due, and no pass is running. A request that is due within
//     a second counts: this is how conflicts are retried.
//  3. No pass began, and no event was handled, since before the lists of 1; otherwise all is
//     asked again.
//
// All of it holds for all managers at the same time, also for those of other API servers, and
// the processes that a test plays itself have done what they have to do.
//
// Nothing is put into a queue by the barrier: a change that a ring fails to notice is not
// noticed because a test waits.
//
// A watch that is not of a cache has no handlers that could be observed: those of Pods by the
// config ring, and those of other clusters by the fleet ring. What they show is waited for as what
// other processes do.
//
// Other processes, such as the controllers of Kubernetes and kubelets, have no barrier. What
// they have yet to do a test waits for as before, by [testenv.Eventually], unless objects say
// when they have done it: then [Barrier.Also] waits for them too.
package barrier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
)

// ErrNone says that no manager runs that a test could wait for.
var ErrNone = errors.New("barrier: no manager runs")

// Barrier is where a test waits for its managers.
type Barrier struct {
	live  client.Client
	clock *Clock
	all   *processes
}

// processes are all that is waited for at a barrier.
type processes struct {
	mu       sync.Mutex
	managers map[*Manager]bool
	others   []func(context.Context) error
}

// New returns a barrier for managers of the API server of a client, which have this clock.
func New(live client.Client, clock *Clock) *Barrier {
	return &Barrier{live: live, clock: clock, all: &processes{managers: map[*Manager]bool{}}}
}

// Beside returns a barrier for managers of another API server. At either of the two the managers
// of both are waited for.
func (b *Barrier) Beside(live client.Client) *Barrier {
	return &Barrier{live: live, clock: b.clock, all: b.all}
}

// Also has the barrier wait for a process that is no manager: done is nil once it has done all
// that follows from what is written.
func (b *Barrier) Also(done func(context.Context) error) {
	b.all.mu.Lock()
	defer b.all.mu.Unlock()
	b.all.others = append(b.all.others, done)
}

// Managed is [testenv.Managed] for a manager that the barrier waits for. The manager under test
// is what [Manager.Observed] returns.
func (b *Barrier) Managed(t testing.TB, faults *fault.Injector, run func(context.Context, logr.Logger, *Manager) error) (stop func()) {
	t.Helper()
	m := &Manager{clock: b.clock, live: b.live}
	b.all.mu.Lock()
	b.all.managers[m] = true
	b.all.mu.Unlock()
	return testenv.Managed(t, faults, func(ctx context.Context, log logr.Logger) error {
		defer b.ended(m)
		return run(ctx, log, m)
	})
}

// Run runs a manager until the end of the test, or until stop: it reaches the API server through
// the faults, and serves neither metrics nor probes unless the options say so.
func (b *Barrier) Run(t testing.TB, cfg *rest.Config, faults *fault.Injector, o manager.Options) (stop func()) {
	t.Helper()
	o.MetricsAddress, o.ProbeAddress, o.Version = cmp.Or(o.MetricsAddress, "0"), cmp.Or(o.ProbeAddress, "0"), "test"
	return b.Managed(t, faults, func(ctx context.Context, log logr.Logger, m *Manager) error {
		o.Log, o.Observed = log, m.Observed
		return manager.Run(ctx, faults.Wrap(cfg), o)
	})
}

func (b *Barrier) ended(m *Manager) {
	b.all.mu.Lock()
	defer b.all.mu.Unlock()
	delete(b.all.managers, m)
}

// Wait returns once all managers have observed, and done, all that follows from what was
// written before.
func (b *Barrier) Wait(t testing.TB) {
	t.Helper()
	if err := b.Passed(t.Context()); errors.Is(err, ErrNone) {
		t.Fatal(err)
	}
	testenv.Eventually(t, b.Passed)
}

// Passed is nil if there is nothing to wait for; else it says what for.
func (b *Barrier) Passed(ctx context.Context) error {
	b.all.mu.Lock()
	defer b.all.mu.Unlock()
	if err := b.all.passed(ctx); err != nil {
		return fmt.Errorf("barrier: %w", err)
	}
	return nil
}

// passed asks the managers last: what others do wakes them.
func (p *processes) passed(ctx context.Context) error {
	if len(p.managers) == 0 {
		return ErrNone
	}
	before, err := p.idle()
	if err != nil {
		return err
	}
	for _, done := range p.others {
		if err := done(ctx); err != nil {
			return err
		}
	}
	for m := range p.managers {
		if err := m.level(ctx); err != nil {
			return err
		}
	}
	after, err := p.idle()
	if after != before {
		return fmt.Errorf("passes and events: %d before and %d after it was asked: %w", before, after, err)
	}
	return err
}

// idle is how many passes have begun and how many events were handled so far; and an error as
// long as one of the managers has more to do.
func (p *processes) idle() (activity int, err error) {
	for m := range p.managers {
		n, busy := m.idle()
		activity += n
		err = cmp.Or(err, busy)
	}
	return activity, err //nolint:wrapcheck // it says what is not idle
}

// Step steps the clock once nothing is left to do before, and returns once all is done after.
func (b *Barrier) Step(t testing.TB, by time.Duration) {
	t.Helper()
	b.Wait(t)
	b.clock.Step(by)
	b.Wait(t)
}
