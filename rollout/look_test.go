package rollout_test

import (
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/spillway-dev/spillway/rollout"
)

// This file reads trees without help of the engine, so that it may
// judge it.

// seen is a unit as these tests see it.
type seen struct {
	path   string
	unit   rollout.Unit
	above  []*seen
	leaves []*seen
	// ripe is MinReady as inherited.
	ripe time.Duration
}

// look lists the units of a tree.
func look(root rollout.Unit) []*seen {
	var all []*seen

	var visit func(u rollout.Unit, path string, ripe time.Duration, above []*seen)
	visit = func(u rollout.Unit, path string, ripe time.Duration, above []*seen) {
		if u.Policy.MinReady > 0 {
			ripe = u.Policy.MinReady
		}

		s := &seen{path: path, unit: u, above: above, ripe: ripe}
		all = append(all, s)

		if s.isLeaf() {
			for _, a := range append(slices.Clip(above), s) {
				a.leaves = append(a.leaves, s)
			}
		}

		for _, c := range u.Children {
			visit(c, strings.TrimPrefix(path+"/"+c.Name, "/"), ripe, append(slices.Clip(above), s))
		}
	}
	visit(root, "", 0, nil)

	return all
}

func (s *seen) isLeaf() bool { return len(s.unit.Children) == 0 && !s.unit.Group }

func (s *seen) outdated() bool { return s.unit.Leaf.Current != s.unit.Leaf.Target }

func (s *seen) available() bool {
	leaf := s.unit.Leaf
	if leaf.Health != rollout.Healthy {
		return false
	}

	return s.outdated() || s.isRemoval() || s.ripe == 0 || !leaf.HealthySince.IsZero() && !noon.Before(leaf.HealthySince.Add(s.ripe))
}

func (s *seen) isRemoval() bool { return s.unit.Leaf.Target == rollout.Removed }

// isRemoving: its removal has begun, and it is not seen to be gone.
func (s *seen) isRemoving() bool {
	return s.isRemoval() && !s.outdated() && s.unit.Leaf.Health != rollout.Healthy
}

// exists: there is something that could be removed.
func (s *seen) exists() bool {
	return s.isRemoving() || s.unit.Leaf.Current != rollout.Removed && s.unit.Leaf.Current != ""
}

// sharing are the leaves that take places in the budget of a unit.
func (s *seen) sharing(units []*seen) []*seen {
	name := s.unit.Policy.Budget
	if name == "" {
		return s.leaves
	}

	var leaves []*seen

	for _, u := range units {
		if u.unit.Policy.Budget == name {
			leaves = append(leaves, u.leaves...)
		}
	}

	return leaves
}

// tolerable is how many failures are tolerated beneath the units of a budget.
func (s *seen) tolerable(units []*seen) int {
	n := 0

	for _, u := range units {
		shares := u == s || s.unit.Policy.Budget != "" && u.unit.Policy.Budget == s.unit.Policy.Budget
		if !shares {
			continue
		}

		for _, beneath := range units {
			if !beneath.isLeaf() && beneath.unit.Policy.MaxFailures.Set && (beneath == u || slices.Contains(beneath.above, u)) {
				n += allows(beneath.unit.Policy.MaxFailures, len(beneath.leaves))
			}
		}
	}

	return n
}

// isMute: what becomes of it says nothing about its target.
func (s *seen) isMute() bool { return s.unit.Leaf.NoEvidence != "" && !s.isRemoval() }

// isSpared: it takes no place though it is down, as it was so before.
func (s *seen) isSpared() bool {
	return s.isMute() && !s.unit.Leaf.Disrupted && (s.outdated() || s.unit.Leaf.Repairing)
}

func (s *seen) isDone() bool { return !s.outdated() && s.available() }

// allows is a limit of so many leaves.
func allows(limit rollout.Limit, leaves int) int {
	switch {
	case limit.Value == 0:
		return 0
	case limit.Percent:
		return max(1, leaves*limit.Value/100)
	default:
		return limit.Value
	}
}

// plan is a plan with its steps and holds by path.
type plan struct {
	rollout.Plan
	steps map[string]rollout.Step
	holds map[string]rollout.Hold
}

func decide(t *rapid.T, o rollout.Observed) plan {
	p := plan{Plan: rollout.Decide(o), steps: map[string]rollout.Step{}, holds: map[string]rollout.Hold{}}

	for _, s := range p.Steps {
		if _, twice := p.steps[s.Path.String()]; twice {
			t.Fatalf("%s is stepped twice", s.Path)
		}

		p.steps[s.Path.String()] = s
	}

	for _, h := range p.Holds {
		if _, twice := p.holds[h.Path.String()]; twice {
			t.Fatalf("%s is held twice", h.Path)
		}

		p.holds[h.Path.String()] = h
	}

	return p
}

func (p plan) gaveUp(s *seen) bool {
	r := p.holds[s.path].Reason

	return r == rollout.ReasonFailed || r == rollout.ReasonDeadline
}

// takenDown counts the leaves that the plan takes down.
func (p plan) takenDown(leaves []*seen) int {
	n := 0

	for _, l := range leaves {
		_, steps := p.steps[l.path]
		n += count(steps && l.available())
	}

	return n
}

// removed counts the leaves that the plan removes.
func (p plan) removed(leaves []*seen) int {
	n := 0

	for _, l := range leaves {
		n += count(p.steps[l.path].To == rollout.Removed)
	}

	return n
}

func down(leaves []*seen) int {
	n := 0

	for _, l := range leaves {
		n += count(!l.available() && !l.isSpared())
	}

	return n
}

func removing(leaves []*seen) int {
	n := 0

	for _, l := range leaves {
		n += count(l.isRemoving())
	}

	return n
}

func count(yes bool) int {
	if yes {
		return 1
	}

	return 0
}

// splitPath are the names in a path.
func splitPath(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}
