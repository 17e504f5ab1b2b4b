package rollout_test

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spillway-dev/spillway/rollout"
)

// TestPhaseOfALeaf is what the step or the hold of a leaf means for it.
func TestPhaseOfALeaf(t *testing.T) {
	for tree, want := range map[string]rollout.Phase{
		"a v2":                             rollout.PhaseComplete,
		"a v1>v2":                          rollout.PhaseProgressing,
		"a v2 progressing":                 rollout.PhaseProgressing,
		". min-ready=1m\na v2 healthy=20s": rollout.PhaseProgressing,
		"a v2 degraded":                    rollout.PhaseWaiting,
		"a v2 failed":                      rollout.PhaseFailed,
		"a v1>v2 paused":                   rollout.PhasePaused,
		"a v1>v2 blocked=Closed:closed":    rollout.PhaseWaiting,
		"a gone progressing":               rollout.PhaseProgressing,
		". max-removed=0\na v1>gone":       rollout.PhaseWaiting,
		". series\nx soak=1m\n  b v2 healthy=1s\na v1>v2": rollout.PhaseWaiting,
	} {
		if got := rollout.Decide(observed(t, tree)).PhaseOf("a"); got != want {
			t.Errorf("%q: %s, want %s", tree, got, want)
		}
	}
}

// TestGroups is that each unit with others beneath it has those steps and holds of the
// plan that are its own or beneath it.
func TestGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawWorld(t, anything)
		p := rollout.Decide(o)

		for _, s := range look(o.Root) {
			if s.isLeaf() {
				continue
			}

			path := splitPath(s.path)
			g, steps := p.Group(path...), 0
			holds := []rollout.Hold{}

			for _, step := range p.Steps {
				steps += count(step.Path.Under(path))
			}

			for _, h := range p.Holds {
				if h.Path.Under(path) {
					holds = append(holds, h)
				}
			}

			if g.Steps != steps || !reflect.DeepEqual(append([]rollout.Hold{}, g.Holds...), holds) {
				t.Fatalf("%q has %d steps, want %d, and the holds %v, want %v", s.path, g.Steps, steps, g.Holds, holds)
			}
		}
	})
}

// TestPhaseOf is that the phase of a leaf agrees with that of a group of it alone.
func TestPhaseOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawWorld(t, anything)
		p := rollout.Decide(o)

		if p.PhaseOf() != p.Phase {
			t.Fatalf("the root is %s, the plan %s", p.PhaseOf(), p.Phase)
		}

		for i := range o.Root.Children {
			u := &o.Root.Children[i]
			answer := p.At(u.Name)

			if phase := p.PhaseOf(u.Name); (phase == rollout.PhaseComplete) != (answer == rollout.Answer{}) {
				t.Fatalf("%s is %s, and the plan says of it %q", u.Name, phase, answer.Message())
			}
		}
	})
}

// TestAtGate checks from when on there is something for a gate to measure.
func TestAtGate(t *testing.T) {
	at := noon
	gated := func(when rollout.When, leaf rollout.Leaf, change ...func(*rollout.Unit)) rollout.Group {
		u := rollout.Unit{Name: "stage", Group: true, Gates: []rollout.Gate{{Name: "g", When: when}}, Children: []rollout.Unit{{Name: "a", Leaf: leaf}}}
		for _, c := range change {
			c(&u)
		}

		return rollout.Decide(rollout.Observed{Now: at, Root: rollout.Unit{Group: true, Children: []rollout.Unit{u}}}).Group("stage")
	}
	done := rollout.Leaf{Current: "v2", Target: "v2", Health: rollout.Healthy, HealthySince: at.Add(-time.Minute)}
	old := rollout.Leaf{Current: "v1", Target: "v2", Health: rollout.Healthy}
	paused := func(u *rollout.Unit) { u.Pause = &rollout.Pause{} }
	soaks := func(u *rollout.Unit) { u.Policy.Soak = time.Hour }
	passed := func(u *rollout.Unit) { u.Gates[0].Verdict = rollout.Passed }
	with := func(other rollout.Leaf) func(*rollout.Unit) {
		return func(u *rollout.Unit) { u.Children = append(u.Children, rollout.Unit{Name: "b", Leaf: other}) }
	}

	for name, test := range map[string]struct {
		got                   rollout.Group
		before, during, after bool
	}{
		"before, and nothing else keeps it": {gated(rollout.Before, old), true, false, false},
		"before, and it is paused":          {gated(rollout.Before, old, paused), false, false, false},
		"before, and it is up to date":      {gated(rollout.Before, done), false, false, false},
		"after, and it is up to date":       {gated(rollout.After, done), false, true, true},
		"after, and it soaks":               {gated(rollout.After, done, soaks), false, true, false},
		"after, and it is outdated":         {gated(rollout.After, old), false, true, false},
		"during, and the first step":        {gated(rollout.During, old), false, true, false},
		"during, and nothing has moved":     {gated(rollout.During, old, paused), false, false, false},
		"during, and a part has moved":      {gated(rollout.During, done, paused, with(old)), false, true, false},
		"during, and it soaks":              {gated(rollout.During, done, soaks), false, true, false},
		"during, and it is up to date":      {gated(rollout.During, done), false, true, true},
		"during, and it has passed":         {gated(rollout.During, done, passed), false, false, false},
	} {
		if g := test.got; g.AtGateBefore != test.before || g.AtGateDuring != test.during || g.AtGateAfter != test.after {
			t.Errorf("%s: %t %t %t", name, g.AtGateBefore, g.AtGateDuring, g.AtGateAfter)
		}
	}
}
