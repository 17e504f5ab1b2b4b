package rollout_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spillway-dev/spillway/rollout"
)

// wilderness says what may occur in a random tree.
type wilderness struct {
	// holds are pauses, blocks, gates, locks of others and retries.
	holds bool
	// failures are leaves that failed, deadlines and timeouts, and limits on them.
	failures bool
	// waivers are answers of Continue, which take leaves out of the budgets.
	waivers bool
	// illness lets leaves be other than healthy.
	illness bool
	// soaks are MinReady and Soak.
	soaks bool
	// rates are token buckets.
	rates bool
}

// anything is everything that there is.
var anything = wilderness{holds: true, failures: true, waivers: true, illness: true, soaks: true, rates: true}

// drawWorld draws a random world.
func drawWorld(t *rapid.T, w wilderness) rollout.Observed {
	root := drawGroup(t, w, "root", 0)

	if rapid.Bool().Draw(t, "locked") {
		root.Lock = drawLock(t, w, root)
	}

	return rollout.Observed{Now: noon, Self: "us", Root: root}
}

func drawGroup(t *rapid.T, w wilderness, name string, depth int) rollout.Unit {
	u := rollout.Unit{Name: name, Group: true, Policy: drawPolicy(t, w)}

	if w.failures {
		u.StartedAt = drawTime(t, "group started")
	}

	drawHolds(t, w, &u)

	for i := range rapid.IntRange(0, 4).Draw(t, "children") {
		child := fmt.Sprintf("%s%d", strings.TrimPrefix(name, "root"), i)

		if depth < 2 && rapid.Bool().Draw(t, "is group") {
			u.Children = append(u.Children, drawGroup(t, w, child+"-", depth+1))
		} else {
			u.Children = append(u.Children, drawLeaf(t, w, child))
		}
	}

	return u
}

func drawLeaf(t *rapid.T, w wilderness, name string) rollout.Unit {
	u := rollout.Unit{Name: name, StartedAt: drawTime(t, "started")}
	u.Leaf = rollout.Leaf{
		Current:      rapid.SampledFrom([]string{"v1", "v2"}).Draw(t, "current"),
		Target:       "v2",
		Health:       rollout.Healthy,
		HealthySince: drawTime(t, "healthy"),
		Priority:     rapid.IntRange(0, 2).Draw(t, "priority"),
	}

	if w.illness {
		healths := []rollout.Health{rollout.Healthy, rollout.Healthy, rollout.Progressing, rollout.Degraded, rollout.Unknown}
		u.Leaf.Health = rapid.SampledFrom(healths).Draw(t, "health")
		u.Leaf.Settled = rapid.Bool().Draw(t, "settled")
		u.Leaf.LostSince = drawTime(t, "lost")
	}

	if w.failures && rapid.IntRange(0, 4).Draw(t, "fails") == 0 {
		u.Leaf.Health = rollout.Failed
	}

	if w.holds && rapid.IntRange(0, 3).Draw(t, "retries") == 0 {
		u.Leaf.RetryAt = drawTime(t, "retry")
	}

	drawHolds(t, w, &u)

	return u
}

func drawPolicy(t *rapid.T, w wilderness) rollout.Policy {
	p := rollout.Policy{Order: rapid.SampledFrom([]rollout.Order{
		rollout.Parallel, rollout.Parallel, rollout.Series, rollout.OneAtATime,
	}).Draw(t, "order")}

	p.MaxUnavailable = drawLimit(t, "max unavailable", 1)

	if w.rates && rapid.IntRange(0, 2).Draw(t, "has rate") == 0 {
		p.Rate = drawRate(t)
	}

	if w.soaks {
		p.MinReady = drawSpan(t, "min ready")
		p.Soak = drawSpan(t, "soak")
	}

	if w.failures {
		p.Deadline = drawSpan(t, "deadline")
		p.Timeout = drawSpan(t, "timeout")
		p.MaxFailures = drawLimit(t, "max failures", 0)
		p.OnFailure = rapid.SampledFrom([]rollout.OnFailure{rollout.Stop, rollout.Rollback}).Draw(t, "on failure")
	}

	if w.waivers && rapid.IntRange(0, 2).Draw(t, "waives") == 0 {
		p.OnFailure = rollout.Continue
	}

	return p
}

func drawLimit(t *rapid.T, label string, least int) rollout.Limit {
	switch rapid.IntRange(0, 3).Draw(t, label) {
	case 0:
		return rollout.Number(rapid.IntRange(least, 4).Draw(t, label))
	case 1:
		return rollout.Percentage(rapid.IntRange(least, 100).Draw(t, label))
	default:
		return rollout.Limit{}
	}
}

func drawRate(t *rapid.T) rollout.Rate {
	r := rollout.Rate{
		Every: time.Duration(rapid.IntRange(1, 30).Draw(t, "every")) * time.Second,
		Burst: rapid.IntRange(0, 4).Draw(t, "burst"),
	}

	for range rapid.IntRange(0, 6).Draw(t, "starts") {
		r.Starts = append(r.Starts, noon.Add(-time.Duration(rapid.IntRange(0, 99).Draw(t, "start"))*time.Second))
	}

	return r
}

// drawSpan draws a duration, often none.
func drawSpan(t *rapid.T, label string) time.Duration {
	return time.Duration(max(0, rapid.IntRange(-60, 120).Draw(t, label))) * time.Second
}

// drawTime draws a moment around noon, sometimes none.
func drawTime(t *rapid.T, label string) time.Time {
	s := rapid.IntRange(-100, 60).Draw(t, label)
	if s == 0 {
		return time.Time{}
	}

	return noon.Add(time.Duration(s) * time.Second)
}

func drawHolds(t *rapid.T, w wilderness, u *rollout.Unit) {
	if !w.holds {
		return
	}

	switch rapid.IntRange(0, 19).Draw(t, "hold") {
	case 0:
		u.Pause = &rollout.Pause{By: "alice", Since: noon}
	case 1:
		u.Block = &rollout.Block{Reason: "Closed", Message: "it is closed", Until: drawTime(t, "block")}
	case 2, 3:
		u.Gates = []rollout.Gate{drawGate(t), drawGate(t)}
	}
}

func drawGate(t *rapid.T) rollout.Gate {
	return rollout.Gate{
		Name:    "approve",
		When:    rapid.SampledFrom([]rollout.When{rollout.Before, rollout.After}).Draw(t, "when"),
		Verdict: rapid.SampledFrom([]rollout.Verdict{rollout.Pending, rollout.Passed, rollout.Refused}).Draw(t, "verdict"),
	}
}

func drawLock(t *rapid.T, w wilderness, root rollout.Unit) *rollout.Lock {
	holders := []string{"", "us"}
	if w.holds {
		holders = append(holders, "them")
	}

	l := &rollout.Lock{Holder: rapid.SampledFrom(holders).Draw(t, "holder")}
	if l.Holder != "" && len(root.Children) > 0 {
		l.Unit = rapid.SampledFrom(root.Children).Draw(t, "unit").Name
	}

	return l
}

// The rest of the file reads trees without help of the engine, so that it may
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

	return s.outdated() || s.ripe == 0 || !leaf.HealthySince.IsZero() && !noon.Before(leaf.HealthySince.Add(s.ripe))
}

func (s *seen) isDone() bool { return !s.outdated() && s.available() }

func (s *seen) allows(limit rollout.Limit) int {
	switch {
	case limit.Value == 0:
		return 0
	case limit.Percent:
		return max(1, len(s.leaves)*limit.Value/100)
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

// takenDown counts the leaves beneath that the plan takes down.
func (p plan) takenDown(s *seen) int {
	n := 0

	for _, l := range s.leaves {
		if step, ok := p.steps[l.path]; ok && !step.Repair {
			n++
		}
	}

	return n
}

func down(s *seen) int {
	n := 0

	for _, l := range s.leaves {
		if !l.available() {
			n++
		}
	}

	return n
}

// TestEveryUnitIsOneStepOrOneHold is the promise that it says why.
func TestEveryUnitIsOneStepOrOneHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawWorld(t, anything)
		p := decide(t, o)

		for _, s := range look(o.Root) {
			_, steps := p.steps[s.path]
			hold, holds := p.holds[s.path]

			switch {
			case steps && holds:
				t.Fatalf("%s is both stepped and held", s.path)
			case steps && (!s.isLeaf() || !s.outdated()):
				t.Fatalf("%s is stepped though there is nothing to move", s.path)
			case s.isLeaf() && !s.isDone() && !steps && !holds:
				t.Fatalf("%s is neither stepped nor held", s.path)
			case s.isLeaf() && s.isDone() && holds && hold.Reason != rollout.ReasonSoak && hold.Reason != rollout.ReasonGate &&
				hold.Reason != rollout.ReasonGateRefused:
				t.Fatalf("%s is done and held: %s", s.path, hold.Message)
			}

			if holds && !s.isLeaf() {
				checkGroupHold(t, p, s, hold)
			}
		}
	})
}

// checkGroupHold: a group is held for itself only once nothing beneath it is left.
func checkGroupHold(t *rapid.T, p plan, s *seen, hold rollout.Hold) {
	switch hold.Reason {
	case rollout.ReasonSoak, rollout.ReasonGate, rollout.ReasonGateRefused:
	default:
		t.Fatalf("group %q is held by %s: %s", s.path, hold.Reason, hold.Message)
	}

	for _, l := range s.leaves {
		// What had settled does not fail by a timeout, but is given up by it.
		if !l.isDone() && !p.gaveUp(l) && (!l.unit.Leaf.Settled || !hasTimeouts(l)) {
			t.Fatalf("group %q is held though %s is neither done nor failed", s.path, l.path)
		}
	}
}

// TestBudgetsHold is that no step takes more down than any budget above it allows.
func TestBudgetsHold(t *testing.T) {
	strict := anything
	strict.waivers = false

	rapid.Check(t, func(t *rapid.T) {
		o := drawWorld(t, strict)
		p := decide(t, o)

		for _, s := range look(o.Root) {
			taken := p.takenDown(s)
			if !s.unit.Policy.MaxUnavailable.Set || taken == 0 {
				continue
			}

			if allowed := s.allows(s.unit.Policy.MaxUnavailable); down(s)+taken > allowed {
				t.Fatalf("%q: %d down, %d taken down, %d allowed", s.path, down(s), taken, allowed)
			}
		}
	})
}

// TestBudgetsHoldWithFailuresWaived is the same where failed leaves do not count:
// nothing else may be forgotten.
func TestBudgetsHoldWithFailuresWaived(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawWorld(t, anything)
		p := decide(t, o)

		for _, s := range look(o.Root) {
			counted := p.takenDown(s)
			if !s.unit.Policy.MaxUnavailable.Set || counted == 0 {
				continue
			}

			for _, l := range s.leaves {
				if !l.available() && !p.gaveUp(l) && l.unit.Leaf.Health != rollout.Failed {
					counted++
				}
			}

			// What ran out of time is waived too, although a leaf that may still
			// become healthy says that it is soaking.
			if hasTimeouts(s) {
				continue
			}

			if allowed := s.allows(s.unit.Policy.MaxUnavailable); counted > allowed {
				t.Fatalf("%q: %d down or taken down, %d allowed", s.path, counted, allowed)
			}
		}
	})
}

func hasTimeouts(s *seen) bool {
	for _, l := range s.leaves {
		for _, a := range append(l.above, s) {
			if a.unit.Policy.Timeout > 0 {
				return true
			}
		}
	}

	return false
}

// TestOneAtATime is that no two children are disrupted at the same time.
func TestOneAtATime(t *testing.T) {
	strict := anything
	strict.waivers = false

	rapid.Check(t, func(t *rapid.T) {
		o := drawWorld(t, strict)
		p := decide(t, o)
		units := look(o.Root)

		for _, s := range units {
			if s.unit.Policy.Order != rollout.OneAtATime {
				continue
			}

			var disrupted, taken []string

			for _, c := range childrenOf(units, s) {
				if p.takenDown(c) > 0 {
					taken = append(taken, c.path)
				}

				if down(c) > 0 || p.takenDown(c) > 0 {
					disrupted = append(disrupted, c.path)
				}
			}

			if len(taken) > 0 && len(disrupted) > 1 {
				t.Fatalf("%q: takes down %v while %v are disrupted", s.path, taken, disrupted)
			}
		}
	})
}

func childrenOf(units []*seen, parent *seen) []*seen {
	var children []*seen

	for _, s := range units {
		if len(s.above) > 0 && s.above[len(s.above)-1] == parent {
			children = append(children, s)
		}
	}

	return children
}

// TestSeries is that a child moves only once nothing is left of the earlier ones.
func TestSeries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawWorld(t, anything)
		p := decide(t, o)
		units := look(o.Root)

		for _, s := range units {
			if s.unit.Policy.Order != rollout.Series {
				continue
			}

			begun := false
			children := childrenOf(units, s)

			for _, c := range slices.Backward(children) {
				if begun {
					checkOver(t, p, c)
				}

				begun = begun || steps(p, c) > 0
			}
		}
	})
}

func steps(p plan, s *seen) int {
	n := 0

	for _, l := range s.leaves {
		if _, ok := p.steps[l.path]; ok {
			n++
		}
	}

	return n
}

func checkOver(t *rapid.T, p plan, s *seen) {
	if _, held := p.holds[s.path]; held && !p.gaveUp(s) {
		t.Fatalf("a later unit moves though %s is held: %s", s.path, p.holds[s.path].Message)
	}

	for _, l := range s.leaves {
		if !l.isDone() && !p.gaveUp(l) && !hasTimeouts(l) {
			t.Fatalf("a later unit moves though %s is not done", l.path)
		}
	}
}

// TestNothingMovesThatIsForbidden is that pauses, blocks, gates, and locks of
// others hold everything beneath them.
func TestNothingMovesThatIsForbidden(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawWorld(t, anything)
		p := decide(t, o)

		for _, s := range look(o.Root) {
			if _, ok := p.steps[s.path]; !ok {
				continue
			}

			if s.unit.Leaf.RetryAt.After(noon) {
				t.Fatalf("%s moves before its retry is due", s.path)
			}

			for _, a := range append(s.above, s) {
				if why := forbids(a.unit); why != "" {
					t.Fatalf("%s moves though %q forbids it: %s", s.path, a.path, why)
				}
			}
		}
	})
}

func forbids(u rollout.Unit) string {
	switch {
	case u.Pause != nil:
		return "paused"
	case u.Block != nil && (u.Block.Until.IsZero() || u.Block.Until.After(noon)):
		return "blocked"
	case u.Lock != nil && u.Lock.Holder == "them":
		return "locked"
	}

	for _, g := range u.Gates {
		if g.When == rollout.Before && g.Verdict != rollout.Passed {
			return "gated"
		}
	}

	return ""
}

// TestProgress is that something moves if the outside world holds nothing.
func TestProgress(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawWorld(t, wilderness{})
		p := decide(t, o)

		outdated := 0

		for _, s := range look(o.Root) {
			if s.isLeaf() && s.outdated() {
				outdated++
			}
		}

		if outdated > 0 && len(p.Steps) == 0 {
			t.Fatalf("nothing moves:\n%s", printPlan(p.Plan))
		}

		if outdated == 0 && p.Phase != rollout.PhaseComplete {
			t.Fatalf("nothing is left to do, and yet:\n%s", printPlan(p.Plan))
		}
	})
}

// TestProgressAmongTheIll is that something moves, or will automatically, or is ill, if
// nothing forbids it. Nothing waits for nothing.
func TestProgressAmongTheIll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawWorld(t, wilderness{illness: true, soaks: true, rates: true})
		p := decide(t, o)

		if len(p.Holds) == 0 || len(p.Steps) > 0 || !p.Wake.IsZero() {
			return
		}

		for _, s := range look(o.Root) {
			if s.isLeaf() && (s.unit.Leaf.Health != rollout.Healthy || s.unit.Leaf.HealthySince.IsZero()) {
				return
			}
		}

		t.Fatalf("everything waits for nothing:\n%s", printPlan(p.Plan))
	})
}

// TestDecideIsPure is that the same world gives the same plan and stays as it is.
func TestDecideIsPure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawWorld(t, anything)
		before := printPlan(rollout.Decide(rollout.Observed{Now: o.Now, Self: o.Self, Root: clone(o.Root)}))
		copied := clone(o.Root)
		first, second := rollout.Decide(o), rollout.Decide(o)

		if !reflect.DeepEqual(first, second) {
			t.Fatalf("two plans for one world:\n%s\n%s", printPlan(first), printPlan(second))
		}

		if !reflect.DeepEqual(o.Root, copied) {
			t.Fatal("the world was changed")
		}

		if before != printPlan(first) {
			t.Fatal("a copy of the world gives another plan")
		}
	})
}

// clone copies a tree so that nothing is shared.
func clone(u rollout.Unit) rollout.Unit {
	u.Children = append([]rollout.Unit(nil), u.Children...)
	for i := range u.Children {
		u.Children[i] = clone(u.Children[i])
	}

	u.Gates = append([]rollout.Gate(nil), u.Gates...)
	u.Policy.Rate.Starts = append([]time.Time(nil), u.Policy.Rate.Starts...)
	u.Pause, u.Block, u.Lock = copied(u.Pause), copied(u.Block), copied(u.Lock)

	return u
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}

	c := *p

	return &c
}

// TestWakeIsExact is that time alone changes nothing before Wake, and something
// at Wake. Two things are measured from the plan itself, as it is to be carried out
// at the same time: the lock to take carries the moment at which it is taken, and the tokens
// after a step come back from that step on.
func TestWakeIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawWorld(t, anything)
		p := rollout.Decide(o)

		const horizon = 24 * time.Hour

		end := noon.Add(horizon)
		if !p.Wake.IsZero() {
			end = p.Wake
		}

		if !p.Wake.IsZero() && !p.Wake.After(noon) {
			t.Fatalf("wakes at %s, which is not ahead", p.Wake)
		}

		span := int64(end.Sub(noon))
		for _, at := range []int64{rapid.Int64Range(0, span-1).Draw(t, "at"), span - 1} {
			later := o
			later.Now = noon.Add(time.Duration(at))

			if q := rollout.Decide(later); !reflect.DeepEqual(timeless(p), timeless(q)) {
				t.Fatalf("the plan changes at %s, before it wakes\n%s\n%s", later.Now, printPlan(p), printPlan(q))
			}
		}

		if p.Wake.IsZero() || queues(p) || isTimeout(o, p.Wake) {
			return
		}

		later := o
		later.Now = p.Wake

		q := rollout.Decide(later)
		q.Wake = p.Wake

		if reflect.DeepEqual(timeless(p), timeless(q)) {
			t.Fatalf("nothing changes at Wake\n%s\n%s", printPlan(p), printPlan(q))
		}
	})
}

// isTimeout tells whether a unit runs out of time at that moment.
func isTimeout(o rollout.Observed, at time.Time) bool {
	for _, s := range look(o.Root) {
		if !s.isLeaf() && s.unit.Policy.Timeout > 0 && s.unit.StartedAt.Add(s.unit.Policy.Timeout).Equal(at) {
			return true
		}
	}

	return false
}

// queues tells whether leaves wait for a rate of which this plan takes tokens.
func queues(p rollout.Plan) bool {
	for _, h := range p.Holds {
		if h.Reason == rollout.ReasonRate && len(p.Steps) > 0 {
			return true
		}
	}

	return false
}

func timeless(p rollout.Plan) rollout.Plan {
	p.Groups = append([]rollout.Group(nil), p.Groups...)
	for i := range p.Groups {
		p.Groups[i].Holds = nil // they are those of the plan
	}

	if queues(p) {
		p.Wake, p.Holds = time.Time{}, append([]rollout.Hold(nil), p.Holds...)
		for i := range p.Holds {
			if p.Holds[i].Reason == rollout.ReasonRate {
				p.Holds[i] = rollout.Hold{Path: p.Holds[i].Path, Reason: rollout.ReasonRate}
			}
		}
	}

	if p.Acquire != nil {
		l := *p.Acquire
		l.Since = time.Time{}
		p.Acquire = &l
	}

	return p
}

// TestSentences is that every hold is a sentence, and one a machine may rely on.
func TestSentences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, h := range rollout.Decide(drawWorld(t, anything)).Holds {
			switch {
			case h.Reason == "" || h.Message == "":
				t.Fatalf("%s is held without a reason", h.Path)
			case strings.ContainsAny(h.Message, "\n\t") || strings.HasSuffix(h.Message, ".") || strings.Contains(h.Message, "  "):
				t.Fatalf("not a sentence: %q", h.Message)
			case !h.Until.IsZero() && !h.Until.After(noon):
				t.Fatalf("%q holds until %s, which is past", h.Message, h.Until)
			case (h.Position > 0) != (h.Reason == rollout.ReasonBudget || h.Reason == rollout.ReasonRate):
				t.Fatalf("%q has position %d", h.Message, h.Position)
			}
		}
	})
}

// TestLock is that a lock is taken for steps only, never while it is another's,
// and never taken and released in one plan.
func TestLock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawWorld(t, anything)
		p := rollout.Decide(o)
		lock := o.Root.Lock

		switch {
		case lock == nil && (p.Acquire != nil || p.Release):
			t.Fatal("a lock that does not exist")
		case lock == nil:
		case lock.Holder == "" && (p.Acquire != nil) != (len(p.Steps) > 0):
			t.Fatal("the lock is free, and not taken exactly when something moves")
		case lock.Holder == "them" && (p.Acquire != nil || p.Release || len(p.Steps) > 0):
			t.Fatal("the lock is another client's")
		case p.Release && (lock.Holder != "us" || p.Acquire != nil || len(p.Steps) > 0):
			t.Fatal("released for no reason")
		case p.Acquire != nil && p.Acquire.Unit != "":
			checkLockUnit(t, p)
		case lock.Holder == "us" && p.Phase == rollout.PhaseComplete && !p.Release:
			t.Fatal("kept for nothing")
		}
	})
}

// checkLockUnit: a lock for one unit is for all steps.
func checkLockUnit(t *rapid.T, p rollout.Plan) {
	for _, s := range p.Steps {
		if s.Path[0] != p.Acquire.Unit {
			t.Fatalf("%s moves under a lock for %s", s.Path, p.Acquire.Unit)
		}
	}
}

// TestRateIsATokenBucket compares the engine's bucket with a plain one.
func TestRateIsATokenBucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := drawRate(t)
		root := rollout.Unit{Group: true, Policy: rollout.Policy{Rate: rate}}

		for i := range 6 {
			leaf := rollout.Leaf{Current: "v1", Target: "v2", Health: rollout.Healthy}
			root.Children = append(root.Children, rollout.Unit{Name: fmt.Sprint(i), Leaf: leaf})
		}

		tokens := tokensAt(noon, rate)
		p := rollout.Decide(rollout.Observed{Now: noon, Root: root})

		if len(p.Steps) != min(6, tokens) {
			t.Fatalf("%d steps for %d tokens", len(p.Steps), tokens)
		}

		for i, h := range p.Holds {
			if h.Position != i+1 {
				t.Fatalf("%s is number %d in the queue", h.Path, h.Position)
			}
		}
	})
}

// tokensAt keeps the bucket second by second.
func tokensAt(now time.Time, rate rollout.Rate) int {
	burst := max(1, rate.Burst)
	full := int64(burst) * int64(rate.Every/time.Second)
	level := full

	for at := now.Add(-100 * time.Second); ; at = at.Add(time.Second) {
		level = min(full, level+1)

		for _, s := range rate.Starts {
			if s.Equal(at) {
				level = max(0, level-int64(rate.Every/time.Second))
			}
		}

		if at.Equal(now) {
			return int(level / int64(rate.Every/time.Second))
		}
	}
}
