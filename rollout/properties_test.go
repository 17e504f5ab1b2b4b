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
	case rollout.ReasonSoak, rollout.ReasonGate, rollout.ReasonGateRefused, rollout.ReasonNoEvidence:
	default:
		t.Fatalf("group %q is held by %s: %s", s.path, hold.Reason, hold.Message)
	}

	for _, l := range s.leaves {
		// What had settled does not fail by a timeout, but is given up by it.
		if !l.isDone() && !l.isMute() && !p.gaveUp(l) && (!l.unit.Leaf.Settled || !hasTimeouts(l)) {
			t.Fatalf("group %q is held though %s is neither done nor failed", s.path, l.path)
		}
	}
}

// TestBudgetsHold is that no step takes more down than any budget above it allows, and the
// failures besides that are tolerated there.
func TestBudgetsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawWorld(t, strict())
		p := decide(t, o)

		units := look(o.Root)

		for _, s := range units {
			if s.isLeaf() || !s.unit.Policy.MaxUnavailable.Set {
				continue
			}

			leaves := s.sharing(units)
			allowed := allows(s.unit.Policy.MaxUnavailable, len(leaves))
			limit := allowed + s.tolerable(units)

			if n := p.takenDown(leaves); p.takenDown(s.leaves) > 0 && down(leaves)+n > limit {
				t.Fatalf("%q: %d down, %d taken down, %d allowed", s.path, down(leaves), n, limit)
			}

			if n := p.removed(leaves); p.removed(s.leaves) > 0 && removing(leaves)+n > limit {
				t.Fatalf("%q: %d being removed, %d removed, %d allowed", s.path, removing(leaves), n, allowed)
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
		units := look(o.Root)

		for _, s := range units {
			leaves := s.sharing(units)

			// What ran out of time is waived too, although a leaf that may still
			// become healthy says that it is soaking.
			if s.isLeaf() || !s.unit.Policy.MaxUnavailable.Set || slices.ContainsFunc(leaves, hasTimeouts) {
				continue
			}

			waived := func(l *seen) bool { return p.gaveUp(l) || l.unit.Leaf.Health == rollout.Failed }
			counted := slices.DeleteFunc(slices.Clone(leaves), waived)
			allowed := allows(s.unit.Policy.MaxUnavailable, len(leaves))

			if n := down(counted) + p.takenDown(leaves); p.takenDown(s.leaves) > 0 && n > allowed {
				t.Fatalf("%q: %d down or taken down, %d allowed", s.path, n, allowed)
			}

			if n := removing(counted) + p.removed(leaves); p.removed(s.leaves) > 0 && n > allowed {
				t.Fatalf("%q: %d being removed, %d allowed", s.path, n, allowed)
			}
		}
	})
}

// TestRemovalsAreApproved is that nothing is removed where more is to be than may be and
// than was approved, whatever else there is, and that no such leaf waits for less.
func TestRemovalsAreApproved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawWorld(t, anything)
		p := decide(t, o)
		unapproved := map[string]bool{}

		for _, s := range look(o.Root) {
			asked, existing, limit := 0, 0, s.unit.Policy.MaxRemoved
			for _, l := range s.leaves {
				asked += count(l.isRemoval() && l.exists())
				existing += count(l.exists())
			}

			before := s.unit.Policy.Removed
			if limit.Set && asked > 0 && asked+before > allows(limit, existing+before) && asked > s.unit.Policy.RemovalsApproved {
				for _, l := range s.leaves {
					unapproved[l.path] = l.isRemoval() && l.outdated()
				}

				if n := p.removed(s.leaves); n > 0 {
					t.Fatalf("%q: %d are removed; %d of %d are to be, approved are %d", s.path, n, asked, existing, s.unit.Policy.RemovalsApproved)
				}
			}

			if got := rollout.Count(o, splitPath(s.path)...).Removals; got != asked {
				t.Fatalf("%q: %d are counted as to be removed, want %d", s.path, got, asked)
			}
		}

		for path, h := range p.holds {
			later := []rollout.Reason{rollout.ReasonTurn, rollout.ReasonBudget, rollout.ReasonRate, rollout.ReasonRetry, "Whole"}
			if unapproved[path] && slices.Contains(later, h.Reason) {
				t.Fatalf("%s is not approved, and waits for %s", path, h.Message)
			}

			if h.Reason == rollout.ReasonRemovalApproval && !unapproved[path] {
				t.Fatalf("%s waits for an approval of nothing: %s", path, h.Message)
			}
		}
	})
}

// TestRemovalsWaitForTheirTurn is that what is down already is not removed before its
// turn: that takes something away.
func TestRemovalsWaitForTheirTurn(t *testing.T) {
	takingTurns(t, strict(), func(t *rapid.T, p plan, _ *seen, children []*seen) {
		for _, c := range children {
			others := slices.DeleteFunc(slices.Clone(children), func(other *seen) bool { return other == c || down(other.leaves) == 0 })
			if p.removed(c.leaves) > 0 && len(others) > 0 {
				t.Fatalf("%q: a leaf is removed while %s is disrupted", c.path, others[0].path)
			}
		}
	})
}

// TestWholesStartAsAWhole is that a unit is started as a whole, or leaf by leaf with what
// is down alone, or not at all.
func TestWholesStartAsAWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawWorld(t, anything)
		p := decide(t, o)
		each := 0

		for _, s := range look(o.Root) {
			starts := map[rollout.Start]int{}

			for _, l := range s.leaves {
				step, steps := p.steps[l.path]
				if !steps {
					continue
				}

				if starts[step.Start]++; s.unit.Whole != nil {
					checkWholeStep(t, s, l, step)
				}
			}

			if s.unit.Whole == nil {
				continue
			}

			if starts[rollout.StartWhole] > 0 {
				checkStarted(t, p, s)
			}

			if len(starts) > 1 {
				t.Fatalf("%s is started in two ways: %v", s.path, starts)
			}

			each += count(starts[rollout.StartEach] > 0)
		}

		if others := len(p.Steps); each > 1 || each == 1 && others != startsOf(p, rollout.StartEach) {
			t.Fatalf("%d units are started leaf by leaf, with %d steps in all", each, others)
		}
	})
}

func startsOf(p plan, start rollout.Start) int {
	n := 0

	for _, s := range p.Steps {
		n += count(s.Start == start)
	}

	return n
}

// checkWholeStep: a leaf that starts nothing is down, at a revision of its own, and does
// not get to its target.
func checkWholeStep(t *rapid.T, s, l *seen, step rollout.Step) {
	whole := s.unit.Whole

	switch {
	case step.Start == rollout.StartNone && (l.available() || l.unit.Leaf.Current == whole.Revision || step.To != whole.Revision):
		t.Fatalf("%s moves to %s though its unit has not started", l.path, step.To)
	case step.Start == rollout.StartEach && l.available():
		t.Fatalf("%s is taken down though its unit is not started as a whole", l.path)
	case step.Start != rollout.StartNone && step.To != l.unit.Leaf.Target:
		t.Fatalf("%s moves to %s, its target is %s", l.path, step.To, l.unit.Leaf.Target)
	}
}

// checkStarted: in a unit that is started, nothing keeps a leaf but its place or its own
// Block.
func checkStarted(t *rapid.T, p plan, s *seen) {
	for _, l := range s.leaves {
		h, held := p.holds[l.path]
		if !l.outdated() || !held {
			continue
		}

		switch h.Reason {
		case rollout.ReasonBudget, rollout.ReasonRate, rollout.ReasonRetry, "Closed":
		default:
			t.Fatalf("%s is started as a whole, though %s", s.path, h.Message)
		}
	}
}

// TestOneAtATime is that no two children are disrupted at the same time.
func TestOneAtATime(t *testing.T) {
	takingTurns(t, strict(), func(t *rapid.T, p plan, s *seen, children []*seen) {
		var disrupted, taken []string

		for _, c := range children {
			if p.takenDown(c.leaves) > 0 {
				taken = append(taken, c.path)
			}

			if down(c.leaves) > 0 || p.takenDown(c.leaves) > 0 {
				disrupted = append(disrupted, c.path)
			}
		}

		if len(taken) > 0 && len(disrupted) > 1 {
			t.Fatalf("%q: takes down %v while %v are disrupted", s.path, taken, disrupted)
		}
	})
}

// strict is everything but that a failure is waived.
func strict() wilderness {
	w := anything
	w.waivers = false

	return w
}

// takingTurns checks each unit whose children go one at a time.
func takingTurns(t *testing.T, in wilderness, check func(t *rapid.T, p plan, s *seen, children []*seen)) {
	t.Helper()

	rapid.Check(t, func(t *rapid.T) {
		o := drawWorld(t, in)
		p := decide(t, o)
		units := look(o.Root)

		for _, s := range units {
			if s.unit.Policy.Order == rollout.OneAtATime {
				check(t, p, s, childrenOf(units, s))
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
	if _, held := p.holds[s.path]; held && !p.gaveUp(s) && !s.isMute() {
		t.Fatalf("a later unit moves though %s is held: %s", s.path, p.holds[s.path].Message)
	}

	for _, l := range s.leaves {
		if !l.isDone() && !l.isMute() && !p.gaveUp(l) && !hasTimeouts(l) {
			t.Fatalf("a later unit moves though %s is not done", l.path)
		}
	}
}

// TestEvidence is that what gives none is no failure and moves last, and that nothing is complete
// without enough.
func TestEvidence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawWorld(t, anything)
		p := decide(t, o)

		for _, s := range look(o.Root) {
			if s.isLeaf() {
				checkMute(t, p, s)
			} else if g := p.Group(splitPath(s.path)...); g.Complete && evident(s.leaves) < s.unit.Policy.MinEvidence {
				t.Fatalf("%q is complete with %d of %d", s.path, evident(s.leaves), s.unit.Policy.MinEvidence)
			}
		}
	})
}

// checkMute: a leaf without evidence has not failed, and moves only where others have given
// evidence, or cannot.
func checkMute(t *rapid.T, p plan, s *seen) {
	if !s.isMute() {
		return
	}

	if hold := p.holds[s.path]; hold.Reason == rollout.ReasonFailed && len(hold.On) == 0 && !s.outdated() {
		t.Fatalf("%s gives no evidence, and failed: %s", s.path, hold.Message)
	}

	if _, steps := p.steps[s.path]; !steps {
		return
	}

	for _, a := range s.above {
		tells := func(l *seen) bool { return !l.isMute() && !p.gaveUp(l) && l.unit.Leaf.Health != rollout.Failed }
		if evident(a.leaves) < a.unit.Policy.MinEvidence && slices.ContainsFunc(a.leaves, tells) {
			t.Fatalf("%s moves before others in %q have given evidence", s.path, a.path)
		}
	}
}

// evident counts the leaves that show that the target is good.
func evident(leaves []*seen) int {
	n := 0

	for _, l := range leaves {
		n += count(l.isDone() && !l.isMute())
	}

	return n
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
		letThrough := g.Verdict == rollout.Passed || g.Verdict == rollout.Refused && g.OnRefusal == rollout.Continue
		if (g.When == rollout.Before || g.When == rollout.During && g.Verdict == rollout.Refused) && !letThrough {
			return "gated"
		}
	}

	return ""
}

// TestProgress is that something moves if the outside world holds nothing.
func TestProgress(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawWorld(t, wilderness{removals: true, wholes: true})
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
		o := drawWorld(t, wilderness{illness: true, soaks: true, rates: true, removals: true, wholes: true})
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
			case strings.Contains(h.Message, "root"):
				t.Fatalf("the root has a name in %q", h.Message)
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
