package rollout_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/spillway-dev/spillway/rollout"
)

const twoZones = `
. one-at-a-time
zone-a max-unavailable=1 min-ready=1m
  a0 v2 healthy=1h
  a1 v2 healthy=1s
  a2 v1>v2
  a3 v2 progressing started=1m
zone-b
  b0 v1>v2
  b1 v1>v2
zone-c paused=alice
  c0 v1>v2
zone-d
  d0 v2
`

func observed(t *testing.T, tree string) rollout.Observed {
	t.Helper()

	return rollout.Observed{Now: noon, Self: "spillway", Root: parseTree(t, noon, tree)}
}

func TestAt(t *testing.T) {
	p := rollout.Decide(observed(t, twoZones))

	cases := map[string]struct {
		path []string
		want string
	}{
		"a leaf":                       {[]string{"zone-b", "b1"}, "zone-b is waiting: zone-a has 2 of 4 ready, a1 is ready; soaking until 4 May 12:00:59 UTC (minReadySeconds)"},
		"the most telling of a unit":   {[]string{"zone-a"}, "a3 is updating: not ready"},
		"a unit that waits as a whole": {[]string{"zone-c"}, "zone-c is paused by alice since 4 May 12:00:00 UTC"},
		"the whole":                    {nil, "zone-c is paused by alice since 4 May 12:00:00 UTC"},
		"a leaf that is done":          {[]string{"zone-a", "a0"}, ""},
		"a unit that is done":          {[]string{"zone-d"}, ""},
		"a unit that does not exist":   {[]string{"zone-x"}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := p.At(c.path...).Message(); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestAtPrefersSteps(t *testing.T) {
	p := rollout.Decide(observed(t, "zone-a max-unavailable=1\n  a0 v2 progressing\n  a1 v1>v2 failed\n  a2 ->v2 unknown"))

	if got, want := p.At("zone-a").Message(), "a1 is updating from v1 to v2 (already unavailable)"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}

	if got, want := p.At("zone-a", "a2").Message(), "a2 is updating to v2"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestARootMayBeALeaf(t *testing.T) {
	root := rollout.Unit{Leaf: rollout.Leaf{Current: "v1", Target: "v2", Health: rollout.Healthy}}
	p := rollout.Decide(rollout.Observed{Now: noon, Root: root})

	if got, want := p.At().Message(), "the rollout is updating from v1 to v2"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestARootThatIsALeafHasALock is that the lock of a leaf is for the whole.
func TestARootThatIsALeafHasALock(t *testing.T) {
	root := rollout.Unit{Name: "web", Lock: &rollout.Lock{}, Leaf: rollout.Leaf{Current: "v1", Target: "v2", Health: rollout.Healthy}}
	want := &rollout.Lock{Holder: "us", Purpose: "rollout", Since: noon}

	if diff := cmp.Diff(want, rollout.Decide(rollout.Observed{Now: noon, Self: "us", Root: root}).Acquire); diff != "" {
		t.Error(diff)
	}
}

// TestUnknownMoments is that a sentence is silent about what is not known.
func TestUnknownMoments(t *testing.T) {
	leaf := rollout.Leaf{Current: "v1", Target: "v2", Health: rollout.Healthy}
	root := rollout.Unit{Children: []rollout.Unit{{Name: "a", Pause: &rollout.Pause{}, Leaf: leaf}}}

	if got, want := rollout.Decide(rollout.Observed{Now: noon, Root: root}).At("a").Message(), "a is paused"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestMostTelling goes through the reasons from the least telling on.
func TestMostTelling(t *testing.T) {
	reasons := []rollout.Reason{
		rollout.ReasonTurn, rollout.ReasonOrder, rollout.ReasonRate, rollout.ReasonBudget, rollout.ReasonGate,
		rollout.ReasonSoak, rollout.ReasonRetry, rollout.ReasonLocked, rollout.ReasonProgressing,
		rollout.ReasonUnhealthy, "ConfigMissing", rollout.ReasonPaused, rollout.ReasonGateRefused,
		rollout.ReasonDeadline, rollout.ReasonFailed,
	}

	var p rollout.Plan
	for _, r := range reasons {
		p.Holds = append(p.Holds, rollout.Hold{Path: rollout.Path{"x", string(r)}, Reason: r})

		if got := p.At("x").Hold.Reason; got != r {
			t.Errorf("got %s, want %s", got, r)
		}
	}
}

func TestCount(t *testing.T) {
	o := observed(t, twoZones)
	cases := map[string]struct {
		path []string
		want rollout.Counts
	}{
		"a zone":         {[]string{"zone-a"}, rollout.Counts{Total: 4, Updated: 3, Available: 2, Ready: 1, Evident: 1}},
		"another":        {[]string{"zone-b"}, rollout.Counts{Total: 2, Available: 2}},
		"a leaf":         {[]string{"zone-d", "d0"}, rollout.Counts{Total: 1, Updated: 1, Available: 1, Ready: 1, Evident: 1}},
		"the whole":      {nil, rollout.Counts{Total: 8, Updated: 4, Available: 6, Ready: 2, Evident: 2}},
		"what is not so": {[]string{"zone-x"}, rollout.Counts{}},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, rollout.Count(o, c.path...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCountFailed(t *testing.T) {
	o := observed(t, `
x deadline=1m on-failure=continue
  a v2 failed
  b v2 progressing started=1m
  c v1 failed
  d v1>v2 failed
`)
	want := rollout.Counts{Total: 4, Updated: 3, Failed: 3}

	if diff := cmp.Diff(want, rollout.Count(o, "x")); diff != "" {
		t.Error(diff)
	}
}

func TestClock(t *testing.T) {
	berlin := time.FixedZone("CEST", 2*60*60)
	at := time.Date(2026, time.May, 4, 16, 3, 5, 999, berlin)

	if got, want := rollout.Clock(at), "4 May 14:03:05 UTC"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
