package sim

import (
	"time"

	"github.com/spillway-dev/spillway/rollout"
)

// share makes the groups take places of one budget.
func (w *world) share(root *rollout.Unit) {
	limit := w.budget()

	for i := range root.Children {
		if p := &root.Children[i].Policy; p.Order == rollout.Parallel {
			p.MaxUnavailable, p.Budget = limit, "all"
		}
	}
}

// removable is how many leaves may be removed without an approval.
func (w *world) removable() rollout.Limit {
	if w.chance(0.5) {
		return rollout.Percentage(w.rnd.IntN(60))
	}

	return rollout.Number(w.rnd.IntN(3))
}

// unwant lets a user want some leaves of a group removed.
func (w *world) unwant(group *rollout.Unit) {
	for i := range group.Children {
		if u := &group.Children[i]; u.Leaf.Target != rollout.Removed && w.chance(0.4) {
			w.notef("a user wants %s removed", u.Name)
			u.Leaf.Target, u.Leaf.Settled, u.StartedAt = rollout.Removed, false, time.Time{}

			if u.Leaf.Current == "" { // there was nothing yet
				u.Leaf.Current, u.Leaf.Health, u.Leaf.HealthySince = rollout.Removed, rollout.Healthy, w.now
			}
		}
	}
}

// wantBack lets a user want everything of a group back. What is gone is recreated; in a
// series it could not be before its turn, and would use up a budget above. It is down for
// no step of ours, so it happens only where leaves break automatically.
func (w *world) wantBack(group *rollout.Unit) {
	if w.flap == 0 {
		return
	}

	for i := range group.Children {
		u := &group.Children[i]
		if u.Leaf.Target != rollout.Removed || group.Policy.Order == rollout.Series {
			continue
		}

		w.notef("a user wants %s back", u.Name)
		u.Leaf.Target, u.Leaf.Settled, u.StartedAt = w.target, false, time.Time{}

		if u.Leaf.Current == rollout.Removed {
			u.Leaf.Current, u.Leaf.Health, u.Leaf.HealthySince = "", rollout.Unknown, time.Time{}
			delete(w.disrupted, group.Name+"/"+u.Name)
			w.versions[group.Name+"/"+u.Name]++
		}
	}
}

// approve lets a user approve as many removals as there are.
func (w *world) approve() {
	w.root.Policy.RemovalsApproved, _ = w.removals()
}

// fixRemovals lets a user fix what is down and to be removed where only one group may be
// disrupted: it is not removed while another one is, and that may wait for the same.
func (w *world) fixRemovals() {
	if w.root.Policy.Order != rollout.OneAtATime {
		return
	}

	w.eachLeaf(func(path string, u *rollout.Unit) {
		if leaf := &u.Leaf; leaf.Target == rollout.Removed && leaf.Current != rollout.Removed && leaf.Health != rollout.Healthy {
			leaf.Current, leaf.Health, leaf.HealthySince = "r0", rollout.Healthy, w.now

			delete(w.disrupted, path)
			w.changed(path)
		}
	})
}

// removals counts the leaves that are to be removed and are not gone, and all that exist.
func (s *state) removals() (asked, existing int) {
	s.eachLeaf(func(_ string, u *rollout.Unit) {
		leaf := &u.Leaf
		removing := leaf.Current == rollout.Removed && leaf.Health != rollout.Healthy
		exists := removing || leaf.Current != rollout.Removed && leaf.Current != ""
		existing += one(exists)
		asked += one(leaf.Target == rollout.Removed && exists)
	})

	return asked, existing
}

// checkRemoving counts the leaves that are being removed in groups with one budget.
func (o *oracle) checkRemoving(name string, limit rollout.Limit, groups []rollout.Unit) {
	removing, leaves := 0, 0

	for _, g := range groups {
		leaves += len(g.Children)
		for _, u := range g.Children {
			removing += one(u.Leaf.Current == rollout.Removed && u.Leaf.Health != rollout.Healthy)
		}
	}

	if allowed := allows(limit, leaves); limit.Set && removing > allowed {
		o.complainf("%s: %d are being removed, %d may be", name, removing, allowed)
	}
}

// checkApproved: nothing is removed in a view in which more are to be removed than may be.
func (o *oracle) checkApproved(v state, s rollout.Step) {
	limit := v.root.Policy.MaxRemoved
	asked, existing := v.removals()

	if limit.Set && asked > allows(limit, existing) && asked > v.root.Policy.RemovalsApproved {
		o.complainf("%s is removed: %d of %d are to be, and %d are approved", s.Path, asked, existing, v.root.Policy.RemovalsApproved)
	}
}

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
