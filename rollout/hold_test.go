package rollout_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/spillway-dev/spillway/rollout"
)

// TestHold reads everything that a hold says, besides its sentence.
func TestHold(t *testing.T) {
	at := func(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

	cases := map[string]struct {
		tree string
		path rollout.Path
		want rollout.Hold
	}{
		"paused": {
			tree: "x paused=alice\n  a v1>v2",
			path: rollout.Path{"x", "a"},
			want: rollout.Hold{Reason: rollout.ReasonPaused, Since: noon},
		},
		"blocked": {
			tree: "a v1>v2 blocked=Closed:closed:30s",
			path: rollout.Path{"a"},
			want: rollout.Hold{Reason: "Closed", Until: at(30)},
		},
		"removals of a part are not approved": {
			tree: "x max-removed=1\n  a v1>gone\n  b v1>gone",
			path: rollout.Path{"x", "a"},
			want: rollout.Hold{Reason: rollout.ReasonRemovalApproval, On: rollout.Path{"x"}},
		},
		"removals are not approved": {
			tree: ". max-removed=1\nx\n  a v1>gone\n  b v1>gone",
			path: rollout.Path{"x", "a"},
			want: rollout.Hold{Reason: rollout.ReasonRemovalApproval},
		},
		"locked": {
			tree: ". lock=them\na v1>v2",
			path: rollout.Path{"a"},
			want: rollout.Hold{Reason: rollout.ReasonLocked, Since: at(-600)},
		},
		"waits for the previous": {
			tree: ". series\nx\n  a v1>v2\ny\n  b v1>v2",
			path: rollout.Path{"y", "b"},
			want: rollout.Hold{Reason: rollout.ReasonOrder, On: rollout.Path{"x"}},
		},
		"waits for one that is held": {
			tree: ". series\nx blocked=Closed:closed:30s\n  a v1>v2\ny\n  b v1>v2",
			path: rollout.Path{"y", "b"},
			want: rollout.Hold{Reason: rollout.ReasonOrder, On: rollout.Path{"x"}, Until: at(30)},
		},
		"waits for one that is held, behind a stronger cause": {
			tree: ". series\nx blocked=Closed:closed:30s\n  a v1>v2\n  c v2 degraded\ny paused\n  b v1>v2",
			path: rollout.Path{"y", "b"},
			want: rollout.Hold{Reason: rollout.ReasonPaused, Since: noon},
		},
		"waits for the other": {
			tree: ". one-at-a-time\nx\n  a v1>v2\ny\n  b v1>v2 degraded",
			path: rollout.Path{"x", "a"},
			want: rollout.Hold{Reason: rollout.ReasonTurn, On: rollout.Path{"y"}},
		},
		"a unit soaks since an unknown time": {
			tree: "x soak=1m\n  a v2 healthy=20s\n  b v2",
			path: rollout.Path{"x"},
			want: rollout.Hold{Reason: rollout.ReasonSoak},
		},
		"a leaf soaks": {
			tree: ". min-ready=1m\na v2 healthy=20s",
			path: rollout.Path{"a"},
			want: rollout.Hold{Reason: rollout.ReasonSoak, Since: at(-20), Until: at(40)},
		},
		"a unit soaks": {
			tree: "x soak=1m\n  a v2 healthy=20s\n  b v2 healthy=1h",
			path: rollout.Path{"x"},
			want: rollout.Hold{Reason: rollout.ReasonSoak, Since: at(-20), Until: at(40)},
		},
		"waits for a soak": {
			tree: ". series\nx soak=1m\n  a v2 healthy=20s\ny\n  b v1>v2",
			path: rollout.Path{"y", "b"},
			want: rollout.Hold{Reason: rollout.ReasonSoak, On: rollout.Path{"x"}, Since: at(-20), Until: at(40)},
		},
		"the budget of all": {
			tree: ". max-unavailable=1\na v1>v2\nb v1>v2\nc v1>v2",
			path: rollout.Path{"c"},
			want: rollout.Hold{Reason: rollout.ReasonBudget, Position: 2},
		},
		"the budget of a unit": {
			tree: "x max-unavailable=1\n  a v1>v2\n  b v1>v2",
			path: rollout.Path{"x", "b"},
			want: rollout.Hold{Reason: rollout.ReasonBudget, On: rollout.Path{"x"}, Position: 1},
		},
		"the second token": {
			tree: ". every=10s starts=4s\na v1>v2\nb v1>v2",
			path: rollout.Path{"b"},
			want: rollout.Hold{Reason: rollout.ReasonRate, Position: 2, Until: at(16)},
		},
		"a retry": {
			tree: "a v1>v2 retry=30s",
			path: rollout.Path{"a"},
			want: rollout.Hold{Reason: rollout.ReasonRetry, Until: at(30)},
		},
		"updating": {
			tree: "a v2 progressing started=20s",
			path: rollout.Path{"a"},
			want: rollout.Hold{Reason: rollout.ReasonProgressing, Since: at(-20)},
		},
		"late": {
			tree: ". deadline=10s\na v2 progressing started=30s",
			path: rollout.Path{"a"},
			want: rollout.Hold{Reason: rollout.ReasonDeadline, Since: at(-20)},
		},
		"out of time": {
			tree: "x timeout=10s started=30s\n  a v1>v2",
			path: rollout.Path{"x", "a"},
			want: rollout.Hold{Reason: rollout.ReasonDeadline, On: rollout.Path{"x"}, Since: at(-20)},
		},
		"out of time, but it only has to stay ready": {
			tree: "x timeout=10s started=30s min-ready=1m\n  a v2 healthy=20s",
			path: rollout.Path{"x", "a"},
			want: rollout.Hold{Reason: rollout.ReasonDeadline, On: rollout.Path{"x"}, Since: at(-20), Until: at(40)},
		},
		"stopped by another's failure": {
			tree: "x\n  a v2 failed\n  b v1>v2",
			path: rollout.Path{"x", "b"},
			want: rollout.Hold{Reason: rollout.ReasonFailed, On: rollout.Path{"x", "a"}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			answer := rollout.Decide(observed(t, c.tree)).At(c.path...)
			if answer.Hold == nil {
				t.Fatal("it is not held")
			}

			got := *answer.Hold
			got.Message, got.Cause = "", rollout.Cause{}
			c.want.Path = c.path

			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
