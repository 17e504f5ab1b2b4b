package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/spillway-dev/spillway/rollout"
)

// oracle knows the rules, and nothing of the engine.
type oracle struct {
	world *world
	// flapped is true if leaves break automatically in this world.
	flapped bool
	// violations are what it has seen, in words.
	violations []string
}

func (o *oracle) complainf(format string, args ...any) {
	o.violations = append(o.violations, fmt.Sprintf(format, args...))
}

// look checks what must be so at every instant.
func (o *oracle) look() {
	o.checkBudget("everything", o.world.root.Policy.MaxUnavailable, o.world.root.Children)

	for _, group := range o.world.root.Children {
		o.checkBudget(group.Name, group.Policy.MaxUnavailable, o.sharing(group))
	}

	if o.world.root.Policy.Order == rollout.OneAtATime {
		o.checkOneAtATime()
	}
}

// down counts the leaves that are to be counted: those that an actor took down
// and that are not up again; in a world where nothing breaks automatically, all that
// are not up.
func (o *oracle) down(group rollout.Unit) int {
	n := 0

	for _, u := range group.Children {
		brokenByUs := o.world.disrupted[group.Name+"/"+u.Name]
		if brokenByUs || !o.flapped && u.Leaf.Health != rollout.Healthy {
			n++
		}
	}

	return n
}

func (o *oracle) checkBudget(name string, limit rollout.Limit, groups []rollout.Unit) {
	if !limit.Set {
		return
	}

	down, leaves := 0, 0
	for _, g := range groups {
		down += o.down(g)
		leaves += len(g.Children)
	}

	if allowed := allows(limit, leaves); down > allowed {
		o.complainf("%s: %d are down, %d may be", name, down, allowed)
	}

	o.checkRemoving(name, limit, groups)
}

// sharing are the groups that take places of the budget of a group.
func (o *oracle) sharing(group rollout.Unit) []rollout.Unit {
	if group.Policy.Budget == "" {
		return []rollout.Unit{group}
	}

	return slices.DeleteFunc(slices.Clone(o.world.root.Children), func(g rollout.Unit) bool { return g.Policy.Budget != group.Policy.Budget })
}

func (o *oracle) checkOneAtATime() {
	var down []string

	for _, g := range o.world.root.Children {
		if o.down(g) > 0 {
			down = append(down, g.Name)
		}
	}

	if len(down) > 1 {
		o.complainf("%v are disrupted at the same time", down)
	}
}

// announced checks a plan against the view that it was made from.
func (o *oracle) announced(v state, p rollout.Plan) {
	if holder := v.status.lock.Holder; v.root.Lock != nil && holder != "" && holder != self {
		o.complainf("steps are announced although %s holds the lock", holder)
	}

	// What may be about to move is seen as down.
	seen := state{root: observe(v).Root}

	for _, s := range p.Steps {
		group := o.group(v, s.Path[0])
		leaf := v.leaf(s.Path.String()).Leaf

		switch {
		case v.root.Pause != nil || group.Pause != nil:
			o.complainf("%s moves under a pause", s.Path)
		case group.Block != nil && v.now.Before(group.Block.Until):
			o.complainf("%s moves though it is blocked", s.Path)
		case leaf.Current == leaf.Target || s.To != leaf.Target && group.Whole == nil:
			o.complainf("%s moves from %s to %s, its target is %s", s.Path, leaf.Current, s.To, leaf.Target)
		case s.To == rollout.Removed:
			o.checkApproved(v, s)
		}

		o.checkWhole(group, s, seen.leaf(s.Path.String()).Leaf)

		o.checkGates(group)

		if !s.Repair {
			o.checkSoak(v, s)
		}
	}

	o.checkRate(v)
}

func (o *oracle) group(v state, name string) rollout.Unit {
	for _, g := range v.root.Children {
		if g.Name == name {
			return g
		}
	}

	return rollout.Unit{}
}

func (o *oracle) checkGates(group rollout.Unit) {
	for _, g := range group.Gates {
		if g.When == rollout.Before && g.Verdict != rollout.Passed {
			o.complainf("%s moves before its gate has passed", group.Name)
		}
	}
}

// checkSoak: before a leaf is taken down that is up, the groups that must be
// complete are, and have been for their soak.
func (o *oracle) checkSoak(v state, s rollout.Step) {
	for _, g := range v.root.Children {
		if g.Name == s.Path[0] {
			if v.root.Policy.Order == rollout.Series {
				return
			}

			continue
		}

		done, since := isAtTarget(g)

		switch {
		case v.root.Policy.Order == rollout.Parallel:
		case v.root.Policy.Order == rollout.Series && !done:
			o.complainf("%s moves though %s is not done", s.Path, g.Name)
		case done && v.now.Before(since.Add(g.Policy.Soak)):
			o.complainf("%s moves though %s has soaked since %s only", s.Path, g.Name, since)
		}
	}
}

// isAtTarget tells whether all of a group is healthy at its target, and since when.
func isAtTarget(g rollout.Unit) (done bool, since time.Time) {
	for _, u := range g.Children {
		if u.Leaf.Current != u.Leaf.Target || u.Leaf.Health != rollout.Healthy {
			return false, since
		}

		if u.Leaf.HealthySince.After(since) {
			since = u.Leaf.HealthySince
		}
	}

	return true, since
}

// checkRate: of the steps announced, no span of time has more than its share.
func (o *oracle) checkRate(v state) {
	rate := v.root.Policy.Rate
	if rate.Every == 0 {
		return
	}

	starts := o.world.status.starts
	last := starts[len(starts)-1]

	for i, first := range starts {
		n := len(starts) - i
		if allowed := rate.Burst + int(last.Sub(first)/rate.Every); n > allowed {
			o.complainf("%d steps since %s, %d may be taken", n, first, allowed)

			return
		}
	}
}
