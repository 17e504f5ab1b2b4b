package rollout_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/spillway-dev/spillway/rollout"
)

func TestAdvance(t *testing.T) {
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	running := rollout.Entry{Revision: "v2", StartedAt: at(0), Outcome: rollout.OutcomeRunning}
	complete := rollout.Entry{Revision: "v2", StartedAt: at(0), EndedAt: at(1), Outcome: rollout.OutcomeComplete}
	failed := rollout.Entry{Revision: "v2", StartedAt: at(0), EndedAt: at(1), Outcome: rollout.OutcomeFailed}
	rolledBack := rollout.Entry{Revision: "v2", StartedAt: at(0), EndedAt: at(1), Outcome: rollout.OutcomeRolledBack}
	former := rollout.Entry{Revision: "v1", StartedAt: at(-9), EndedAt: at(-8), Outcome: rollout.OutcomeComplete}

	cases := map[string]struct {
		history  []rollout.Entry
		revision string
		phase    rollout.Phase
		limit    int
		want     []rollout.Entry
	}{
		"the first entry": {
			revision: "v2", phase: rollout.PhaseProgressing,
			want: []rollout.Entry{{Revision: "v2", StartedAt: at(5), Outcome: rollout.OutcomeRunning}},
		},
		"complete when first seen": {
			revision: "v2", phase: rollout.PhaseComplete,
			want: []rollout.Entry{{Revision: "v2", StartedAt: at(5), EndedAt: at(5), Outcome: rollout.OutcomeComplete}},
		},
		"it completes": {
			history: []rollout.Entry{running, former}, revision: "v2", phase: rollout.PhaseComplete,
			want: []rollout.Entry{
				{Revision: "v2", StartedAt: at(0), EndedAt: at(5), Outcome: rollout.OutcomeComplete}, former,
			},
		},
		"it fails": {
			history: []rollout.Entry{running, former}, revision: "v2", phase: rollout.PhaseFailed,
			want: []rollout.Entry{
				{Revision: "v2", StartedAt: at(0), EndedAt: at(5), Outcome: rollout.OutcomeFailed}, former,
			},
		},
		"it rolls back": {
			history: []rollout.Entry{failed}, revision: "v2", phase: rollout.PhaseRollingBack,
			want: []rollout.Entry{{Revision: "v2", StartedAt: at(0), EndedAt: at(5), Outcome: rollout.OutcomeRolledBack}},
		},
		"the first end of a kind is kept": {
			history: []rollout.Entry{failed}, revision: "v2", phase: rollout.PhaseFailed,
			want: []rollout.Entry{failed},
		},
		"it runs again": {
			history: []rollout.Entry{failed}, revision: "v2", phase: rollout.PhaseProgressing,
			want: []rollout.Entry{running},
		},
		"what was rolled back does not run again": {
			history: []rollout.Entry{rolledBack}, revision: "v2", phase: rollout.PhaseProgressing,
			want: []rollout.Entry{rolledBack},
		},
		"what broke later is no new rollout": {
			history: []rollout.Entry{complete}, revision: "v2", phase: rollout.PhaseFailed,
			want: []rollout.Entry{complete},
		},
		"a running one is superseded": {
			history: []rollout.Entry{running}, revision: "v3", phase: rollout.PhasePaused,
			want: []rollout.Entry{
				{Revision: "v3", StartedAt: at(5), Outcome: rollout.OutcomeRunning},
				{Revision: "v2", StartedAt: at(0), EndedAt: at(5), Outcome: rollout.OutcomeSuperseded},
			},
		},
		"a failed one stays failed": {
			history: []rollout.Entry{failed}, revision: "v3", phase: rollout.PhaseWaiting,
			want: []rollout.Entry{{Revision: "v3", StartedAt: at(5), Outcome: rollout.OutcomeRunning}, failed},
		},
		"back to an older revision": {
			history: []rollout.Entry{complete, former}, revision: "v1", phase: rollout.PhaseProgressing,
			want: []rollout.Entry{{Revision: "v1", StartedAt: at(5), Outcome: rollout.OutcomeRunning}, complete, former},
		},
		"only the newest are kept": {
			history: []rollout.Entry{complete, former}, revision: "v3", phase: rollout.PhaseProgressing, limit: 2,
			want: []rollout.Entry{{Revision: "v3", StartedAt: at(5), Outcome: rollout.OutcomeRunning}, complete},
		},
		"a lower limit cuts": {
			history: []rollout.Entry{complete, former}, revision: "v2", phase: rollout.PhaseComplete, limit: 1,
			want: []rollout.Entry{complete},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			before := append([]rollout.Entry(nil), c.history...)

			got := rollout.Advance(c.history, c.revision, c.phase, at(5), c.limit)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}

			if diff := cmp.Diff(before, append([]rollout.Entry(nil), c.history...)); diff != "" {
				t.Errorf("what it was given has changed: %s", diff)
			}

			again := rollout.Advance(got, c.revision, c.phase, at(6), c.limit)
			if diff := cmp.Diff(got, again); diff != "" || &again[0] != &got[0] {
				t.Errorf("nothing has happened, and yet: %s", diff)
			}
		})
	}
}
