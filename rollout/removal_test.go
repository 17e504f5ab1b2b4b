package rollout_test

import (
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/spillway-dev/spillway/rollout"
)

// removalWorld is a world in which leaves are removed and updated under one shared budget.
func removalWorld(t *rapid.T) rollout.Unit {
	limit := func(name string) rollout.Limit {
		l := rollout.Limit{Value: rapid.IntRange(0, 3).Draw(t, name), Set: rapid.Bool().Draw(t, name+" is set")}
		if rapid.Bool().Draw(t, name+" in percent") {
			l.Percent, l.Value = true, l.Value*20
		}

		return l
	}
	root := rollout.Unit{Group: true, Policy: rollout.Policy{OnFailure: rollout.Continue}}
	shared := rollout.Policy{MaxUnavailable: limit("max unavailable"), Budget: "all"}
	healths := []rollout.Health{rollout.Healthy, rollout.Healthy, rollout.Progressing, rollout.Degraded, rollout.Unknown}

	for _, name := range []string{"updates", "removals"} {
		unit := rollout.Unit{Name: name, Group: true, Policy: shared}

		for i := range rapid.IntRange(0, 5).Draw(t, name) {
			leaf := rollout.Leaf{Current: "v1", Target: "v2", Health: rapid.SampledFrom(healths).Draw(t, "health")}
			if name == "removals" {
				leaf.Target = rollout.Removed
				leaf.Current = rapid.SampledFrom([]string{"v1", "v1", rollout.Removed}).Draw(t, "current")
			}

			unit.Children = append(unit.Children, rollout.Unit{Name: strconv.Itoa(i), Leaf: leaf})
		}

		root.Children = append(root.Children, unit)
	}

	root.Children[1].Policy.MaxRemoved = limit("max removed")
	root.Children[1].Policy.RemovalsApproved = rapid.IntRange(0, 4).Draw(t, "approved")

	return root
}

// TestRemovals is that never are more leaves being removed than the budget allows, that
// none is where more are to be than may be and are approved, and that each is then one
// hold that says so.
func TestRemovals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		root := removalWorld(t)
		plan := rollout.Decide(rollout.Observed{Now: noon, Root: root})
		removals := &root.Children[1]
		policy := &removals.Policy
		pending, removing, steps := 0, 0, 0

		for i := range removals.Children {
			leaf := &removals.Children[i].Leaf
			pending += count(leaf.Current != rollout.Removed)
			removing += count(leaf.Current == rollout.Removed && leaf.Health != rollout.Healthy)
		}

		asked := pending + removing

		for _, s := range plan.Steps {
			steps += count(s.To == rollout.Removed)
		}

		allowed := policy.MaxUnavailable.Of(len(root.Children[0].Children) + len(removals.Children))
		if policy.MaxUnavailable.Set && steps > 0 && removing+steps > allowed {
			t.Fatalf("%d are being removed and %d more, of %d allowed", removing, steps, allowed)
		}

		if got := plan.Group("removals").Counts.Removals; got != asked {
			t.Fatalf("%d are counted as to be removed, want %d", got, asked)
		}

		if !policy.MaxRemoved.Set || asked <= policy.MaxRemoved.Of(asked) || asked <= policy.RemovalsApproved {
			return
		}

		unapproved := 0
		for _, h := range plan.Holds {
			unapproved += count(h.Reason == rollout.ReasonRemovalApproval)
		}

		if steps > 0 || unapproved != pending {
			t.Fatalf("%d are removed and %d wait for an approval, of %d", steps, unapproved, pending)
		}
	})
}

// TestApproveWith is that a hold names the command that approves the removals.
func TestApproveWith(t *testing.T) {
	root := rollout.Unit{Policy: rollout.Policy{MaxRemoved: rollout.Number(0), ApproveWith: "fleet approve shop --remove="}}
	root.Children = []rollout.Unit{{Name: "a", Leaf: rollout.Leaf{Current: "v1", Target: rollout.Removed, Health: rollout.Healthy}}}
	want := "a is waiting: 1 of 1 are to be removed, more than 0 (maxRemoved); to approve: fleet approve shop --remove=1"

	if got := rollout.Decide(rollout.Observed{Now: noon, Root: root}).At("a").Message(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
