package rollout_test

import (
	"testing"

	"github.com/spillway-dev/spillway/rollout"
)

// The states in which a Pod of a zone may be that starts as a whole.
var wholeStates = []rollout.Leaf{
	{Current: "v1", Target: "v2", Health: rollout.Healthy},
	{Current: "v1", Target: "v2", Health: rollout.Degraded},
	{Current: "v0", Target: "v2", Health: rollout.Degraded},
	{Current: "v2", Target: "v2", Health: rollout.Healthy},
	{Current: "v2", Target: "v2", Health: rollout.Progressing},
	{Current: "v2", Target: "v2", Health: rollout.Degraded},
}

// smallWhole is two zones of two Pods. Another controller moves a zone that is whole.
type smallWhole struct {
	order   rollout.Order
	pods    [4]rollout.Leaf
	whole   [2]bool
	paused  bool // zone-a
	bounded bool // one Pod of a zone at a time
}

func (w *smallWhole) observed() rollout.Observed {
	root := rollout.Unit{Policy: rollout.Policy{Order: w.order}}

	for z, name := range []string{"zone-a", "zone-b"} {
		zone := rollout.Unit{Name: name, Pause: pause(w.paused && z == 0)}
		if w.whole[z] {
			zone.Whole = &rollout.Whole{Revision: "v1", Reason: "Whole", Message: "held"}
		}

		if w.bounded {
			zone.Policy.MaxUnavailable = rollout.Number(1)
		}

		for i := 2 * z; i < 2*z+2; i++ {
			zone.Children = append(zone.Children, rollout.Unit{Name: podName(i), Leaf: w.pods[i]})
		}

		root.Children = append(root.Children, zone)
	}

	return rollout.Observed{Now: noon, Root: root}
}

// TestEverySmallWhole checks in each of 41,000 worlds that a plan is what the rules of
// units that start as a whole, written down here a second time, say it must be.
func TestEverySmallWhole(t *testing.T) {
	n := len(wholeStates)

	everyChoice(n*n*n*n*2*4*2*2, func(next func(n int) int) {
		w := smallWhole{}
		for i := range w.pods {
			w.pods[i] = wholeStates[next(n)]
		}

		w.order = []rollout.Order{rollout.Parallel, rollout.OneAtATime}[next(2)]
		w.whole = [2]bool{next(2) == 1, next(2) == 1}
		w.paused, w.bounded = next(2) == 1, next(2) == 1

		p := rollout.Decide(w.observed())
		got, want := map[string]string{}, map[string]string{}

		for _, s := range p.Steps {
			got[s.Path[1]] = s.To + startOf[s.Start]
		}

		for i, to := range w.steps() {
			if to != "" {
				want[podName(i)] = to
			}
		}

		for i := range w.pods {
			if name := podName(i); got[name] != want[name] {
				t.Fatalf("%+v\n%s moves to %q, want %q\n%s", w, name, got[name], want[name], printPlan(p))
			}
		}
	})
}

// steps says from the rules where each Pod moves.
func (w *smallWhole) steps() (to [4]string) {
	var taken, keeps [2]bool

	moves, updating := false, false

	for i, pod := range w.pods {
		zone := i / 2
		updating = updating || !outdated(pod) && pod.Health == rollout.Progressing

		to[i] = w.step(i, taken[zone])
		taken[zone] = taken[zone] || to[i] != "" && up(pod)
		moves = moves || to[i] != ""
		keeps[zone] = keeps[zone] || w.isKept(i)
	}

	// Both wait for the other alone: what is down in the first is moved.
	if keeps[0] && keeps[1] && !moves && !updating {
		for i := range 2 {
			if w.isKept(i) {
				to[i] = "v2" + startOf[rollout.StartEach]
			}
		}
	}

	return to
}

// step is where a Pod moves if another one of its zone was taken down, or not.
func (w *smallWhole) step(i int, taken bool) string {
	pod, zone := w.pods[i], i/2
	started := "v2"

	if w.whole[zone] {
		started += startOf[rollout.StartWhole]
	}

	switch {
	case !outdated(pod), w.paused && zone == 0, w.isKept(i):
		return ""
	case !up(pod) && w.whole[zone] && !w.hasTurn(zone):
		return "v1"
	case !up(pod):
		return started
	case !w.hasTurn(zone), w.bounded && (taken || w.isDisrupted(zone)):
		return ""
	default:
		return started
	}
}

// isKept: it is down at the revision that it gets back anyway, and its zone may not start.
func (w *smallWhole) isKept(i int) bool {
	zone, pod := i/2, w.pods[i]

	return w.whole[zone] && !w.hasTurn(zone) && (!w.paused || zone != 0) && pod.Current == "v1" && !up(pod)
}

func (w *smallWhole) isDisrupted(zone int) bool {
	return !up(w.pods[2*zone]) || !up(w.pods[2*zone+1])
}

func (w *smallWhole) hasTurn(zone int) bool {
	isOpen := !w.paused && (outdated(w.pods[0]) || outdated(w.pods[1]))

	switch {
	case w.order == rollout.Parallel:
		return true
	case w.isDisrupted(1 - zone):
		return false
	default:
		return w.isDisrupted(zone) || zone == 0 || !isOpen
	}
}
