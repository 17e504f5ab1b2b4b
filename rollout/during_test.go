package rollout_test

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/spillway-dev/spillway/rollout"
)

// TestAGateDuringIsTwo is that a gate during a unit is one after it, and once it is refused one
// before it as well: the same moves, and the same waits. Its own are the turn of a unit that it
// stops while it rolls, and that a refusal is the first thing to say.
func TestAGateDuringIsTwo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawWorld(t, anything)
		if anyUnit(&o.Root, func(u *rollout.Unit) bool { return u.Policy.Order == rollout.OneAtATime }) {
			t.Skip("a unit has turns")
		}

		two := o
		two.Root = clone(o.Root)
		anyUnit(&two.Root, func(u *rollout.Unit) bool {
			u.Gates = split(u.Gates)

			return false
		})

		got, want := decide(t, o).Plan, decide(t, two).Plan
		if !reflect.DeepEqual(got.Steps, want.Steps) || !reflect.DeepEqual(heldIn(&got), heldIn(&want)) || got.Wake != want.Wake {
			t.Fatalf("one gate:\n%s\ntwo gates:\n%s", printPlan(got), printPlan(want))
		}
	})
}

func heldIn(p *rollout.Plan) []rollout.Path {
	var paths []rollout.Path
	for _, h := range p.Holds {
		paths = append(paths, h.Path)
	}

	return paths
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
	rapid.Check(t, func(t *rapid.T) {
		o := drawWorld(t, anything)
		p := decide(t, o)
		units := look(o.Root)

		for _, s := range units {
			if s.unit.Policy.Order != rollout.OneAtATime {
				continue
			}

			children := childrenOf(units, s)
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

func anyUnit(u *rollout.Unit, is func(*rollout.Unit) bool) bool {
	found := is(u)
	for i := range u.Children {
		found = anyUnit(&u.Children[i], is) || found
	}

	return found
}
