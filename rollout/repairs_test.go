package rollout_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/spillway-dev/spillway/rollout"
)

// TestRepairsAreBounded is that what is down already is moved out of turn or beyond a
// budget only if it cannot recover, only so many at a time as may be, and not in a second
// child while another one is disrupted.
func TestRepairsAreBounded(t *testing.T) {
	strict := anything
	strict.waivers = false

	rapid.Check(t, func(t *rapid.T) {
		o := drawWorld(t, strict)
		p := decide(t, o)
		units := look(o.Root)
		repairs := map[*seen]int{}

		for _, l := range units {
			if _, steps := p.steps[l.path]; !steps || !l.isLeaf() || l.available() || l.isRemoval() {
				continue
			}

			if p.inTurn(units, l) && p.withinBudgets(units, l) {
				continue
			}

			if l.unit.Leaf.Disrupted && p.withinBudgets(units, l) {
				checkSecond(t, units, l)

				continue
			}

			if l.unit.Leaf.MayRecover {
				t.Fatalf("%s may recover and is moved out of turn:\n%s", l.path, printPlan(p.Plan))
			}

			if r := l.boundary(); r != nil {
				repairs[r]++
				checkSecond(t, units, l)
			}
		}

		for r, n := range repairs {
			for _, l := range r.leaves {
				_, again := p.steps[l.path]
				n += count(l.unit.Leaf.Repairing && !l.available() && !again)
			}

			if allowed := allows(r.unit.Policy.Repairs, len(r.leaves)); n > allowed {
				t.Fatalf("%q: %d repairs at a time, %d allowed", r.path, n, allowed)
			}
		}
	})
}

// inTurn is true if no other child is disrupted where one may be at a time.
func (p plan) inTurn(units []*seen, l *seen) bool {
	for _, a := range l.above {
		if a.unit.Policy.Order != rollout.OneAtATime {
			continue
		}

		for _, c := range childrenOf(units, a) {
			if !c.has(l) && (down(c.leaves) > 0 || p.settles(c)) {
				return false
			}
		}
	}

	return true
}

// settles is true of a group that is up to date, and held for itself.
func (p plan) settles(s *seen) bool {
	for _, c := range append([]*seen{s}, s.leaves...) {
		if _, held := p.holds[c.path]; held && (!c.isLeaf() || c.isDone()) {
			return true
		}
	}

	return false
}

// withinBudgets is true if no more are down than may be, the leaf itself included.
func (p plan) withinBudgets(units []*seen, l *seen) bool {
	for _, a := range l.above {
		if !a.unit.Policy.MaxUnavailable.Set {
			continue
		}

		leaves := a.sharing(units)
		if down(leaves)+p.takenDown(leaves) > allows(a.unit.Policy.MaxUnavailable, len(leaves))+a.tolerable(units) {
			return false
		}
	}

	return true
}

// boundary is the nearest unit above that bounds repairs, nil if none does.
func (s *seen) boundary() *seen {
	for _, a := range slices.Backward(s.above) {
		if a.unit.Policy.Repairs.Set {
			return a
		}
	}

	return nil
}

func (s *seen) has(leaf *seen) bool {
	return s == leaf || slices.Contains(s.leaves, leaf)
}

// isDisrupted is true of a leaf that was moved, and has not been available since.
func (s *seen) isDisrupted() bool {
	leaf := s.unit.Leaf
	moves := s.isRemoval() || !leaf.Settled && !s.unit.StartedAt.IsZero() || leaf.Health == rollout.Progressing

	return !s.available() && (leaf.Disrupted || !s.outdated() && moves)
}

// checkSecond is that a leaf is not repaired in a child that is not disrupted while
// another one is.
func checkSecond(t *rapid.T, units []*seen, l *seen) {
	for _, a := range l.above {
		if a.unit.Policy.Order != rollout.OneAtATime {
			continue
		}

		own, others := false, ""

		for _, c := range childrenOf(units, a) {
			for _, m := range append([]*seen{c}, c.leaves...) {
				switch {
				case !m.isLeaf() || !m.isDisrupted():
				case c.has(l):
					own = true
				default:
					others = m.path
				}
			}
		}

		if others != "" && !own {
			t.Fatalf("%s is repaired while %s is disrupted", l.path, others)
		}
	}
}

// The story that this is for: zone-a is disrupted, and a Pod of zone-b is not ready.
func TestASecondZoneIsNotRepaired(t *testing.T) {
	for name, test := range map[string]struct {
		a, b  rollout.Leaf
		steps []string
	}{
		"it may recover":           {starting(), ailing(true), nil},
		"it cannot":                {starting(), ailing(false), nil},
		"zone-a broke on its own":  {ailing(true), ailing(false), []string{"zone-b/zone-b-0"}},
		"both may recover":         {ailing(true), ailing(true), nil},
		"neither can":              {ailing(false), ailing(false), []string{"zone-a/zone-a-0"}},
		"zone-a was disrupted":     {rollout.Leaf{Current: "v0", Target: "v2", Health: rollout.Degraded, MayRecover: true, Disrupted: true}, ailing(true), []string{"zone-a/zone-a-0"}},
		"zone-a is healthy":        {rollout.Leaf{Current: "v1", Target: "v2", Health: rollout.Healthy}, ailing(true), []string{"zone-b/zone-b-0"}},
		"zone-a is being repaired": {rollout.Leaf{Current: "v1", Target: "v2", Health: rollout.Progressing, Disrupted: true, Repairing: true}, ailing(false), []string{"zone-a/zone-a-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			zone := func(name string, leaf rollout.Leaf) rollout.Unit {
				return rollout.Unit{
					Name: name, Policy: rollout.Policy{MaxUnavailable: rollout.Number(1)},
					Children: []rollout.Unit{{Name: name + "-0", Leaf: leaf, StartedAt: noon}},
				}
			}
			p := rollout.Decide(rollout.Observed{Now: noon, Root: rollout.Unit{
				Policy:   rollout.Policy{Order: rollout.OneAtATime, Repairs: rollout.Number(1)},
				Children: []rollout.Unit{zone("zone-a", test.a), zone("zone-b", test.b)},
			}})

			var steps []string
			for _, s := range p.Steps {
				steps = append(steps, s.Path.String())
			}

			if len(steps) != len(test.steps) || len(steps) > 0 && steps[0] != test.steps[0] {
				t.Errorf("steps %v, want %v:\n%s", steps, test.steps, printPlan(p))
			}
		})
	}
}

func starting() rollout.Leaf {
	return rollout.Leaf{Current: "v2", Target: "v2", Health: rollout.Degraded}
}

func ailing(mayRecover bool) rollout.Leaf {
	return rollout.Leaf{Current: "v1", Target: "v2", Health: rollout.Degraded, MayRecover: mayRecover}
}
