package simulate

import (
	"context"
	"time"

	"github.com/go-logr/logr"

	"github.com/spillway-dev/spillway/internal/simulate/record"
)

// Rollout identifies what a ring rolls out.
type Rollout struct{ Ring, Namespace, Object string }

// RolloutOf is the one that waits.
func RolloutOf(w *record.Wait) Rollout { return Rollout{w.Ring, w.Namespace, w.Object} }

// Continued is how what is under way goes on.
type Continued struct {
	// Started is the moment from which on it goes on.
	Started time.Time
	// Steps are in the order in which they are taken.
	Steps []record.Step
	// Waiting are those that wait in the end.
	Waiting []record.Wait
	// Ends are when rollouts that waited did so no more.
	Ends map[Rollout]time.Time
	// Unmet are the keys of [Options.Readiness], and UnmetGates the names in [Options.Gates],
	// that are nothing in this simulation.
	Unmet, UnmetGates []string
}

// Continue plays o.Present without a change until nothing happens any more.
func Continue(ctx context.Context, o Options) (Continued, error) {
	ctx = logr.NewContext(ctx, logr.Discard()) // the steps and waits say all that the rings would
	s, err := newSimulation(ctx, o)
	if err != nil {
		return Continued{}, err
	}
	if err := s.prepare(ctx, nil); err != nil {
		return Continued{}, err
	}
	if err := s.begin(ctx); err != nil {
		return Continued{}, err
	}
	if err := s.settle(ctx); err != nil {
		return Continued{}, err
	}
	result, err := s.result(ctx)
	if err != nil {
		return Continued{}, err
	}
	unmet, _, err := s.unmet(ctx)
	return Continued{
		Started: s.Started, Steps: result.Steps, Waiting: s.waiting, Ends: s.ends, Unmet: unmet, UnmetGates: s.unmetGates(),
	}, err
}

// noteEnds notes which of the rollouts that have waited until now do so no more.
func (s *simulation) noteEnds(known []record.Wait) {
	for i := range known {
		s.ends[RolloutOf(&known[i])] = s.Now
	}
	for i := range s.waiting {
		delete(s.ends, RolloutOf(&s.waiting[i]))
	}
}
