package rollout_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/spillway-dev/spillway/rollout"
)

// TestRepairsAreBounded is that what is down already is moved out of turn or beyond a
// budget only if it cannot recover, only so many at a time as may be, and not in a second
// child while another one is disrupted.
func TestRepairsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawWorld(t, strict())
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
				if l.unit.Leaf.MayRecover || l.boundary() != nil {
					checkSecond(t, o, units, l)
				}

				continue
			}

			if l.unit.Leaf.MayRecover {
				t.Fatalf("%s may recover and is moved out of turn:\n%s", l.path, printPlan(p.Plan))
			}

			if r := l.boundary(); r != nil {
				repairs[r]++
				checkSecond(t, o, units, l)
			}
		}

		for r, n := range repairs {
			for _, l := range r.leaves {
				n += count(l.isBeingRepaired())
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

// isBeingRepaired is true of a leaf that was moved while it was down, unless nothing can
// come of that: it is outdated once more, and cannot recover.
func (s *seen) isBeingRepaired() bool {
	leaf := s.unit.Leaf

	return leaf.Repairing && !s.available() && (leaf.MayRecover || leaf.Current == leaf.Target)
}

// checkSecond is that a leaf is not repaired in a child that is not disrupted while
// another one is, and in none but that for which the lock is ours if something is down there.
func checkSecond(t *rapid.T, o rollout.Observed, units []*seen, l *seen) {
	for _, a := range l.above {
		if a.unit.Policy.Order != rollout.OneAtATime {
			continue
		}

		own, others := false, ""

		for _, c := range childrenOf(units, a) {
			isLocked := isOurs(o, a, c) && down(c.leaves) > 0 && !c.has(l)
			if isLocked && a.unit.Policy.OnFailure != rollout.Continue && c.unit.Policy.OnFailure != rollout.Continue {
				t.Fatalf("%s is repaired while %s is down, for which the lock is ours", l.path, c.path)
			}

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

		if others != "" && !own && !(isOurs(o, a, a) || slices.ContainsFunc(childrenOf(units, a), func(c *seen) bool { return c.has(l) && isOurs(o, a, c) })) {
			t.Fatalf("%s is repaired while %s is disrupted", l.path, others)
		}
	}
}

// isOurs is true if the lock is ours for a child of the root.
func isOurs(o rollout.Observed, parent, child *seen) bool {
	lock := o.Root.Lock

	return lock != nil && lock.Holder == o.Self && len(parent.above) == 0 && lock.Unit == child.unit.Name
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

			if got, want := stepsOf(p), strings.Join(test.steps, " "); got != want {
				t.Errorf("steps %q, want %q:\n%s", got, want, printPlan(p))
			}
		})
	}
}

// Out of turn no more are repaired than may be, also where nothing was disrupted by a step.
func TestRepairsOutOfTurnAreCounted(t *testing.T) {
	broken := rollout.Leaf{Current: "v2", Target: "v2", Health: rollout.Degraded, Settled: true}
	p := rollout.Decide(rollout.Observed{Now: noon, Root: rollout.Unit{
		Policy: rollout.Policy{Order: rollout.OneAtATime, Repairs: rollout.Number(1)},
		Children: []rollout.Unit{
			{Name: "zone-a", Children: []rollout.Unit{{Name: "zone-a-0", Leaf: broken, StartedAt: noon}}},
			{Name: "zone-b", Children: []rollout.Unit{{Name: "zone-b-0", Leaf: ailing(false)}, {Name: "zone-b-1", Leaf: ailing(false)}}},
		},
	}})

	if got := stepsOf(p); got != "zone-b/zone-b-0" {
		t.Errorf("steps %q:\n%s", got, printPlan(p))
	}
}

func starting() rollout.Leaf {
	return rollout.Leaf{Current: "v2", Target: "v2", Health: rollout.Degraded}
}

func ailing(mayRecover bool) rollout.Leaf {
	return rollout.Leaf{Current: "v1", Target: "v2", Health: rollout.Degraded, MayRecover: mayRecover}
}

// What is down in the zone for which the lock is ours may have been moved, though no leaf
// says so: no other zone is repaired, whatever was moved there.
func TestTheLockTellsWhatIsDisrupted(t *testing.T) {
	broken := rollout.Leaf{Current: "v1", Target: "v3", Health: rollout.Degraded, Disrupted: true}

	for lock, want := range map[string]string{"zone-a": "", "zone-b": "zone-b/zone-b-0", "": "zone-b/zone-b-0"} {
		zone := func(name string, leaf rollout.Leaf) rollout.Unit {
			return rollout.Unit{Name: name, Children: []rollout.Unit{{Name: name + "-0", Leaf: leaf}}}
		}
		p := rollout.Decide(rollout.Observed{Now: noon, Self: "us", Root: rollout.Unit{
			Policy:   rollout.Policy{Order: rollout.OneAtATime, Repairs: rollout.Number(1)},
			Lock:     &rollout.Lock{Holder: "us", Unit: lock},
			Children: []rollout.Unit{zone("zone-a", ailing(true)), zone("zone-b", broken)},
		}})

		if got := stepsOf(p); got != want {
			t.Errorf("lock for %q: steps %q, want %q:\n%s", lock, got, want, printPlan(p))
		}
	}
}

// A lock for the whole says of no child that it is disrupted: the first in which something is
// down may be. One that is not ours says nothing.
func TestALockForTheWholeTellsWhatMayBeDisrupted(t *testing.T) {
	healthy := rollout.Leaf{Current: "v1", Target: "v2", Health: rollout.Healthy}

	for name, test := range map[string]struct {
		holder string
		first  rollout.Leaf
		second []rollout.Leaf
		want   string
	}{
		"zone-a is down":          {"us", ailing(true), []rollout.Leaf{ailing(false)}, ""},
		"zone-a is healthy":       {"us", healthy, []rollout.Leaf{ailing(true), ailing(false)}, "zone-b/zone-b-1"},
		"the lock is not ours":    {"", ailing(true), []rollout.Leaf{ailing(false)}, "zone-b/zone-b-0"},
		"zone-a cannot come back": {"us", ailing(false), []rollout.Leaf{ailing(false)}, "zone-a/zone-a-0"},
	} {
		t.Run(name, func(t *testing.T) {
			zone := func(name string, leaves ...rollout.Leaf) rollout.Unit {
				u := rollout.Unit{Name: name, Policy: rollout.Policy{MaxUnavailable: rollout.Number(1)}}
				for i, leaf := range leaves {
					u.Children = append(u.Children, rollout.Unit{Name: fmt.Sprintf("%s-%d", name, i), Leaf: leaf})
				}

				return u
			}
			p := rollout.Decide(rollout.Observed{Now: noon, Self: "us", Root: rollout.Unit{
				Policy:   rollout.Policy{Order: rollout.OneAtATime, Repairs: rollout.Number(1)},
				Lock:     &rollout.Lock{Holder: test.holder},
				Children: []rollout.Unit{zone("zone-a", test.first), zone("zone-b", test.second...)},
			}})

			if got := stepsOf(p); got != test.want {
				t.Errorf("steps %q, want %q:\n%s", got, test.want, printPlan(p))
			}
		})
	}
}

// Beneath a child whose own children go at the same time, one that is disrupted keeps no
// other from being repaired.
func TestARepairBesideADisruptedLeaf(t *testing.T) {
	p := rollout.Decide(rollout.Observed{Now: noon, Root: rollout.Unit{
		Policy: rollout.Policy{Order: rollout.OneAtATime, Repairs: rollout.Number(2)},
		Children: []rollout.Unit{{
			Name: "zone-a", Policy: rollout.Policy{MaxUnavailable: rollout.Number(1)},
			Children: []rollout.Unit{
				{Name: "zone-a-0", Leaf: rollout.Leaf{Current: "v2", Target: "v2", Health: rollout.Progressing, Disrupted: true}},
				{Name: "zone-a-1", Leaf: ailing(false)},
			},
		}},
	}})

	if got := stepsOf(p); got != "zone-a/zone-a-1" {
		t.Errorf("steps %q:\n%s", got, printPlan(p))
	}
}

// A repair of which nothing comes does not keep others waiting: what was repaired, is
// outdated once more, and cannot recover, is not being repaired.
func TestRepairsThatFailedDoNotWaitForEachOther(t *testing.T) {
	failed := rollout.Leaf{Current: "v2", Target: "v3", Health: rollout.Degraded, Disrupted: true, Repairing: true}
	starting := rollout.Leaf{Current: "v3", Target: "v3", Health: rollout.Progressing, Disrupted: true, Repairing: true}

	for name, test := range map[string]struct {
		leaves []rollout.Leaf
		want   string
	}{
		"the first goes":             {[]rollout.Leaf{failed, failed, failed}, "zone-a/zone-a-0"},
		"one is being repaired":      {[]rollout.Leaf{failed, starting, failed}, ""},
		"one that may still recover": {[]rollout.Leaf{failed, {Current: "v2", Target: "v3", Health: rollout.Degraded, MayRecover: true, Disrupted: true, Repairing: true}, failed}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			zone := rollout.Unit{Name: "zone-a", Policy: rollout.Policy{MaxUnavailable: rollout.Number(2)}}
			for i, leaf := range test.leaves {
				zone.Children = append(zone.Children, rollout.Unit{Name: fmt.Sprintf("zone-a-%d", i), Leaf: leaf})
			}

			p := rollout.Decide(rollout.Observed{Now: noon, Root: rollout.Unit{
				Policy:   rollout.Policy{Order: rollout.OneAtATime, Repairs: rollout.Number(1)},
				Children: []rollout.Unit{zone},
			}})

			if got := stepsOf(p); got != test.want {
				t.Errorf("steps %q, want %q:\n%s", got, test.want, printPlan(p))
			}
		})
	}
}

// zone-a is held, so that it is to be started as a whole, and waits for zone-b; zone-b waits
// for zone-a, which is disrupted. What is down in zone-a is moved alone.
func TestAHeldZoneIsRepairedIfAnotherOneWaitsForIt(t *testing.T) {
	for name, test := range map[string]struct {
		disrupted, mayRecover bool
		want                  string
	}{
		"zone-a is disrupted":             {true, false, "zone-a/zone-a-0"},
		"zone-a broke on its own":         {false, false, "zone-b/zone-b-0"},
		"zone-a is disrupted, zone-b may": {true, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			held := rollout.Leaf{Current: "v1", Target: "v2", Health: rollout.Degraded, Disrupted: test.disrupted}
			p := rollout.Decide(rollout.Observed{Now: noon, Root: rollout.Unit{
				Policy: rollout.Policy{Order: rollout.OneAtATime, Repairs: rollout.Number(1)},
				Children: []rollout.Unit{
					{
						Name: "zone-a", Whole: &rollout.Whole{Revision: "v1", Reason: "Whole", Message: "held"},
						Children: []rollout.Unit{{Name: "zone-a-0", Leaf: held}},
					},
					{Name: "zone-b", Children: []rollout.Unit{{Name: "zone-b-0", Leaf: ailing(test.mayRecover)}}},
				},
			}})

			if got := stepsOf(p); got != test.want {
				t.Errorf("steps %q, want %q:\n%s", got, test.want, printPlan(p))
			}
		})
	}
}

// stepsOf are the paths of what moves.
func stepsOf(p rollout.Plan) string {
	var steps []string
	for _, s := range p.Steps {
		steps = append(steps, s.Path.String())
	}

	return strings.Join(steps, " ")
}
