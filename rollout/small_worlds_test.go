package rollout_test

import (
	"testing"

	"github.com/spillway-dev/spillway/rollout"
)

// The states in which a Pod may be.
var podStates = []rollout.Leaf{
	{Current: "v1", Target: "v2", Health: rollout.Healthy},
	{Current: "v1", Target: "v2", Health: rollout.Degraded},
	{Current: "v2", Target: "v2", Health: rollout.Healthy},
	{Current: "v2", Target: "v2", Health: rollout.Progressing},
	{Current: "v2", Target: "v2", Health: rollout.Failed},
}

// smallWorld is two zones of two Pods, in one of all the states in which they may be.
type smallWorld struct {
	order   rollout.Order
	pods    [4]rollout.Leaf
	pauses  [3]bool // the group, zone-a, zone-b
	holder  string
	waivers bool
}

func (w smallWorld) observed() rollout.Observed {
	zone := func(name string, paused bool, pods []rollout.Leaf) rollout.Unit {
		return rollout.Unit{
			Name: name, Pause: pause(paused), Policy: rollout.Policy{MaxUnavailable: rollout.Number(1)},
			Children: []rollout.Unit{{Name: name + "-0", Leaf: pods[0]}, {Name: name + "-1", Leaf: pods[1]}},
		}
	}
	root := rollout.Unit{
		Policy: rollout.Policy{Order: w.order}, Pause: pause(w.pauses[0]), Lock: &rollout.Lock{Holder: w.holder},
		Children: []rollout.Unit{zone("zone-a", w.pauses[1], w.pods[:2]), zone("zone-b", w.pauses[2], w.pods[2:])},
	}

	if w.waivers {
		root.Policy.OnFailure = rollout.Continue
		root.Children[0].Policy.OnFailure = rollout.Continue
		root.Children[1].Policy.OnFailure = rollout.Continue
	}

	return rollout.Observed{Now: noon, Self: "us", Root: root}
}

func pause(paused bool) *rollout.Pause {
	if !paused {
		return nil
	}

	return &rollout.Pause{Since: noon}
}

// everySmallWorld calls visit for all of them.
func everySmallWorld(visit func(smallWorld)) {
	orders := []rollout.Order{rollout.Parallel, rollout.Series, rollout.OneAtATime}
	holders := []string{"", "us", "them"}
	pods := len(podStates) * len(podStates) * len(podStates) * len(podStates)

	everyChoice(len(orders)*len(holders)*8*2*pods, func(next func(n int) int) {
		w := smallWorld{}
		for p := range w.pods {
			w.pods[p] = podStates[next(len(podStates))]
		}

		for p := range w.pauses {
			w.pauses[p] = next(2) == 1
		}

		w.order, w.holder, w.waivers = orders[next(len(orders))], holders[next(len(holders))], next(2) == 1
		visit(w)
	})
}

// everyChoice calls visit with every way to choose: next returns one of n, and all that a
// visit asks for together are total.
func everyChoice(total int, visit func(next func(n int) int)) {
	for i := range total {
		visit(func(n int) int {
			digit := i % n
			i /= n

			return digit
		})
	}
}

// TestEverySmallWorld checks in each of 90,000 worlds that a plan is what the
// rules, written down here a second time, say it must be.
func TestEverySmallWorld(t *testing.T) {
	everySmallWorld(func(w smallWorld) {
		p := rollout.Decide(w.observed())
		stepped := map[string]bool{}

		for _, s := range p.Steps {
			stepped[s.Path[1]] = true
		}

		for i := range w.pods {
			if want := w.moves(i); stepped[podName(i)] != want {
				t.Fatalf("%+v\n%s moves: %v, ought to: %v\n%s", w, podName(i), stepped[podName(i)], want, printPlan(p))
			}
		}

		if len(p.Steps)+len(p.Holds) != w.unfinished() {
			t.Fatalf("%+v\n%d are not where they should be\n%s", w, w.unfinished(), printPlan(p))
		}
	})
}

func podName(i int) string {
	return []string{"zone-a-0", "zone-a-1", "zone-b-0", "zone-b-1"}[i]
}

func outdated(l rollout.Leaf) bool { return l.Current != l.Target }
func up(l rollout.Leaf) bool       { return l.Health == rollout.Healthy }
func broken(l rollout.Leaf) bool   { return l.Health == rollout.Failed }
func done(l rollout.Leaf) bool     { return up(l) && !outdated(l) }

// moves says from the rules whether a Pod has to move.
func (w smallWorld) moves(i int) bool {
	pod, zone := w.pods[i], i/2

	switch {
	case !outdated(pod), w.pauses[0], w.pauses[1+zone], w.holder == "them", w.isStopped():
		return false
	case w.order == rollout.Series && zone == 1 && !w.isOver(0):
		return false
	case !up(pod):
		return true
	case w.order == rollout.OneAtATime && !w.hasTurn(zone):
		return false
	default:
		return w.isFirstOfBudget(i)
	}
}

// isStopped: a failure that no one waives stops everything.
func (w smallWorld) isStopped() bool {
	for _, p := range w.pods {
		if broken(p) && !w.waivers {
			return true
		}
	}

	return false
}

// waives: it has failed, and that takes no place.
func (w smallWorld) waives(p rollout.Leaf) bool { return broken(p) && w.waivers }

// isOver: everything in the zone is done, or failed and waived.
func (w smallWorld) isOver(zone int) bool {
	for _, p := range w.pods[2*zone : 2*zone+2] {
		if !done(p) && !w.waives(p) {
			return false
		}
	}

	return true
}

// isDisrupted: something in the zone is down that is not waived.
func (w smallWorld) isDisrupted(zone int) bool {
	for _, p := range w.pods[2*zone : 2*zone+2] {
		if !up(p) && !w.waives(p) {
			return true
		}
	}

	return false
}

// hasTurn: the other zone is not disrupted, and this one is, or comes first.
func (w smallWorld) hasTurn(zone int) bool {
	other := 1 - zone

	switch {
	case w.isDisrupted(other):
		return false
	case w.isDisrupted(zone):
		return true
	default:
		return zone == 0 || w.pauses[1] || w.isOver(0) || !w.hasOutdated(0)
	}
}

func (w smallWorld) hasOutdated(zone int) bool {
	return outdated(w.pods[2*zone]) || outdated(w.pods[2*zone+1])
}

// isFirstOfBudget: nothing else in the zone is down, and no earlier Pod of it is
// taken down by the same plan.
func (w smallWorld) isFirstOfBudget(i int) bool {
	zone := i / 2
	if w.isDisrupted(zone) {
		return false
	}

	return i%2 == 0 || !outdated(w.pods[i-1]) || !up(w.pods[i-1])
}

func (w smallWorld) unfinished() int {
	n := 0

	for _, p := range w.pods {
		if !done(p) {
			n++
		}
	}

	return n
}
