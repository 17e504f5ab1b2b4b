package rollout_test

import (
	"testing"

	"github.com/spillway-dev/spillway/rollout"
)

// The states in which a cluster may be that is updated or removed.
var clusterStates = []rollout.Leaf{
	{Current: "v1", Target: "v2", Health: rollout.Healthy},
	{Current: "v1", Target: "v2", Health: rollout.Unknown},
	{Current: "v2", Target: "v2", Health: rollout.Healthy},
	{Current: "v1", Target: rollout.Removed, Health: rollout.Healthy},
	{Current: "v1", Target: rollout.Removed, Health: rollout.Degraded},
	{Current: rollout.Removed, Target: rollout.Removed, Health: rollout.Unknown},
	{Current: rollout.Removed, Target: rollout.Removed, Health: rollout.Healthy},
}

// smallFleet is two stages of two clusters, of which one may be down at a time, in one of
// all the states in which they may be.
type smallFleet struct {
	order    rollout.Order
	clusters [4]rollout.Leaf
	// shared is true if one may be down in both stages together.
	shared bool
	// limited is true if no more than one may be removed unless that was approved.
	limited  bool
	approved int
}

func (w *smallFleet) observed() rollout.Observed {
	root := rollout.Unit{Policy: rollout.Policy{Order: w.order, RemovalsApproved: w.approved}}
	if w.limited {
		root.Policy.MaxRemoved = rollout.Number(1)
	}

	for s := range 2 {
		stage := rollout.Unit{Name: "stage", Policy: rollout.Policy{MaxUnavailable: rollout.Number(1)}}
		if w.shared {
			stage.Policy.Budget = "both"
		}

		for i := 2 * s; i < 2*s+2; i++ {
			stage.Children = append(stage.Children, rollout.Unit{Name: podName(i), Leaf: w.clusters[i]})
		}

		root.Children = append(root.Children, stage)
	}

	return rollout.Observed{Now: noon, Root: root}
}

// TestEverySmallFleet checks in each of 86,000 fleets that a plan is what the rules of
// removals, written down here a second time, say it must be.
func TestEverySmallFleet(t *testing.T) {
	orders := []rollout.Order{rollout.Parallel, rollout.Series, rollout.OneAtATime}
	approvals := []int{0, 2, 3}
	n := len(clusterStates)

	everyChoice(n*n*n*n*len(orders)*len(approvals)*4, func(next func(n int) int) {
		w := smallFleet{}
		for i := range w.clusters {
			w.clusters[i] = clusterStates[next(n)]
		}

		w.order, w.approved = orders[next(len(orders))], approvals[next(len(approvals))]
		w.shared, w.limited = next(2) == 1, next(2) == 1
		p := rollout.Decide(w.observed())

		got, want := [4]bool{}, w.steps()
		for i := range got {
			for _, s := range p.Steps {
				got[i] = got[i] || s.Path[1] == podName(i)
			}
		}

		if got != want {
			t.Fatalf("%+v\n%v move, want %v\n%s", w, got, want, printPlan(p))
		}

		unfinished := 0
		for _, c := range w.clusters {
			unfinished += count(!done(c))
		}

		if len(p.Steps)+len(p.Holds) != unfinished {
			t.Fatalf("%+v\n%d are not where they should be\n%s", w, unfinished, printPlan(p))
		}
	})
}

func removed(l rollout.Leaf) bool { return l.Target == rollout.Removed }

// steps says from the rules which clusters move: those that are down first, and of each
// stage as many as may be.
func (w *smallFleet) steps() (moves [4]bool) {
	var down, removing [2]int

	for i, c := range w.clusters {
		down[w.budget(i)] += count(!up(c))
		removing[w.budget(i)] += count(removed(c) && !outdated(c) && !up(c))
	}

	for _, isUp := range []bool{false, true} {
		for i, c := range w.clusters {
			b := w.budget(i)

			switch {
			case up(c) != isUp || !w.mayMove(i):
				continue
			case isUp && down[b] > 0, removed(c) && removing[b] > 0:
				continue
			}

			moves[i] = true
			down[b] += count(isUp)
			removing[b] += count(removed(c))
		}
	}

	return moves
}

// budget is the one that a cluster takes a place of.
func (w *smallFleet) budget(i int) int {
	if w.shared {
		return 0
	}

	return i / 2
}

// mayMove says whether a cluster moves if there is a place for it.
func (w *smallFleet) mayMove(i int) bool {
	c, stage := w.clusters[i], i/2

	switch {
	case !outdated(c), w.isUnapproved(c):
		return false
	case w.order == rollout.Series:
		return stage == 0 || done(w.clusters[0]) && done(w.clusters[1])
	case w.order == rollout.OneAtATime && (up(c) || removed(c)):
		return w.hasTurn(stage)
	default:
		return true
	}
}

// isUnapproved: more are to be removed than may be. What is gone is not, and what is not
// seen to be gone is.
func (w *smallFleet) isUnapproved(c rollout.Leaf) bool {
	asked := 0
	for _, c := range w.clusters {
		asked += count(removed(c) && !done(c))
	}

	return removed(c) && w.limited && asked > 1 && asked > w.approved
}

// hasTurn: the other stage is not disrupted, and this one is, or is the first that has
// something to move.
func (w *smallFleet) hasTurn(stage int) bool {
	var disrupted, open [2]bool

	for i, c := range w.clusters {
		disrupted[i/2] = disrupted[i/2] || !up(c)
		open[i/2] = open[i/2] || outdated(c) && !w.isUnapproved(c)
	}

	return !disrupted[1-stage] && (disrupted[stage] || stage == 0 || !open[0])
}
