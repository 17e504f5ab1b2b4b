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
// Nothing is put into a queue by the barrier: a change that a ring fails to notice is not
// noticed because a test waits.
//
// A watch that is not of a cache has no handlers that could be observed: those of Pods by the
// config ring, and those of other clusters by the fleet ring. What they show is waited for as what
// other processes do.
//
// Other processes, such as the controllers of Kubernetes and kubelets, have no barrier. What
// they have yet to do a test waits for as before, by [testenv.Eventually].
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

var errNone = errors.New("barrier: no manager runs")

// Barrier is where a test waits for its managers.
type Barrier struct {
	live  client.Client
	clock *Clock

	mu       sync.Mutex
	managers map[*Manager]bool
}

// New returns a barrier for managers of the API server of a client, which have this clock.
func New(live client.Client, clock *Clock) *Barrier {
	return &Barrier{live: live, clock: clock, managers: map[*Manager]bool{}}
}

// Managed is [testenv.Managed] for a manager that the barrier waits for. The manager under test
// is what [Manager.Observed] returns.
func (b *Barrier) Managed(t testing.TB, faults *fault.Injector, run func(context.Context, logr.Logger, *Manager) error) (stop func()) {
	t.Helper()
	m := &Manager{clock: b.clock}
	b.mu.Lock()
	b.managers[m] = true
	b.mu.Unlock()
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
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.managers, m)
}

// Wait returns once all managers have observed, and done, all that follows from what was
// written before.
func (b *Barrier) Wait(t testing.TB) {
	t.Helper()
	if err := b.Passed(t.Context()); errors.Is(err, errNone) {
		t.Fatal(err)
	}
	testenv.Eventually(t, b.Passed)
}

// Passed is nil if there is nothing to wait for; else it says what for.
func (b *Barrier) Passed(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.managers) == 0 {
		return errNone
	}
	for m := range b.managers {
		if err := m.passed(ctx, b.live); err != nil {
			return fmt.Errorf("barrier: %w", err)
		}
	}
	return nil
}

// Step steps the clock once nothing is left to do before, and returns once all is done after.
func (b *Barrier) Step(t testing.TB, by time.Duration) {
	t.Helper()
	b.Wait(t)
	b.clock.Step(by)
	b.Wait(t)
}
