package rollout_test

import (
	"reflect"
	"testing"

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
