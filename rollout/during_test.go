package rollout_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/spillway-dev/spillway/rollout"
)

// TestAGateDuringIsTwo is that a gate during a unit is one after it, and once it is refused one
// before it as well: the same moves, and the same waits. Its own are the turn of a unit that it
// stops while it rolls, which these worlds do without, and that a refusal is the first thing to
// say.
func TestAGateDuringIsTwo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawWorld(t, anything)
		eachUnit(&o.Root, func(u *rollout.Unit) {
			if u.Policy.Order == rollout.OneAtATime {
				u.Policy.Order = rollout.Parallel
			}
		})

		two := o
		two.Root = clone(o.Root)
		eachUnit(&two.Root, func(u *rollout.Unit) { u.Gates = split(u.Gates) })

		got, want := decide(t, o).Plan, decide(t, two).Plan
		if why := differs(&got, &want); why != "" {
			t.Fatalf("%s\none gate:\n%s\ntwo gates:\n%s", why, printPlan(got), printPlan(want))
		}
	})
}

// differs is how a plan with one gate differs from that with two, but for what is said of a
// refusal: a unit that waits for that is not woken for anything else.
func differs(got, want *rollout.Plan) string {
	if !reflect.DeepEqual(got.Steps, want.Steps) || len(got.Holds) != len(want.Holds) {
		return "other moves or waits"
	}

	saysMore := false

	for i, h := range got.Holds {
		switch other := want.Holds[i]; {
		case !slices.Equal(h.Path, other.Path):
			return "other waits"
		case h.Reason == other.Reason:
		case h.Reason == rollout.ReasonGateRefused:
			saysMore = true
		default:
			return fmt.Sprintf("%s waits for something else", h.Path)
		}
	}

	if got.Wake.Equal(want.Wake) || saysMore && !want.Wake.IsZero() && (got.Wake.IsZero() || got.Wake.After(want.Wake)) {
		return ""
	}

	return "another time to wake"
}

func split(gates []rollout.Gate) []rollout.Gate {
	var two []rollout.Gate

	for _, g := range gates {
		if g.When != rollout.During {
			two = append(two, g)

			continue
		}

		g.When = rollout.After
		two = append(two, g)

		if g.Verdict == rollout.Refused {
			g.When = rollout.Before
			two = append(two, g)
		}
	}

	return two
}

// TestARefusalHalfwayKeepsTheTurn is that no second unit begins to be disrupted where one at a
// time may be, while a gate stops the first, of which a part was moved.
func TestARefusalHalfwayKeepsTheTurn(t *testing.T) {
	takingTurns(t, anything, func(t *rapid.T, p plan, s *seen, children []*seen) {
		for _, c := range children {
			if !isStoppedHalfway(c) {
				continue
			}

			for _, l := range s.leaves {
				if step, ok := p.steps[l.path]; ok && !step.Repair {
					t.Fatalf("%s moves though a gate stops %s, of which a part was moved", l.path, c.path)
				}
			}
		}
	})
}

func isStoppedHalfway(s *seen) bool {
	moved := 0
	for _, l := range s.leaves {
		if !l.outdated() {
			moved++
		}
	}

	return moved > 0 && moved < len(s.leaves) && forbids(rollout.Unit{Gates: during(s.unit.Gates)}) != ""
}

func during(gates []rollout.Gate) []rollout.Gate {
	var found []rollout.Gate

	for _, g := range gates {
		if g.When == rollout.During {
			found = append(found, g)
		}
	}

	return found
}

func eachUnit(u *rollout.Unit, do func(*rollout.Unit)) {
	do(u)

	for i := range u.Children {
		eachUnit(&u.Children[i], do)
	}
}
