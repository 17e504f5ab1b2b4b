package rollout_test

import (
	"fmt"
	"strings"
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
	// removals are leaves that are to be removed, and budgets that units share.
	removals bool
	// approvals are limits on removals.
	approvals bool
	// wholes are units that start as a whole.
	wholes bool
	// mutes are leaves that give no evidence, and units that ask for some.
	mutes bool
	// repairs are leaves that may recover, or are being repaired, and limits on them.
	repairs bool
}

// anything is everything that there is.
var anything = wilderness{
	holds: true, failures: true, waivers: true, illness: true, soaks: true, rates: true, removals: true,
	approvals: true, wholes: true, repairs: true, mutes: true,
}

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

	// Units that share a budget are not beneath one another.
	if w.removals && rapid.IntRange(0, 3).Draw(t, "shares") == 0 {
		u.Policy.Budget = fmt.Sprintf("budget of depth %d", depth)
	}

	if w.wholes && depth > 0 && rapid.IntRange(0, 2).Draw(t, "is whole") == 0 {
		u.Whole = &rollout.Whole{Revision: "v1", Reason: "Whole", Message: "held"}
		u.Policy.Order = rollout.Parallel
	}

	for i := range rapid.IntRange(0, 4).Draw(t, "children") {
		child := fmt.Sprintf("%s%d", strings.TrimPrefix(name, "root"), i)

		if depth < 2 && u.Whole == nil && rapid.Bool().Draw(t, "is group") {
			u.Children = append(u.Children, drawGroup(t, w, child+"-", depth+1))
		} else {
			leaf := drawLeaf(t, w, child)
			if w.mutes && u.Whole == nil && rapid.IntRange(0, 3).Draw(t, "is mute") == 0 {
				leaf.Leaf.NoEvidence = "mute"
			}

			u.Children = append(u.Children, leaf)
		}
	}

	return u
}

func drawLeaf(t *rapid.T, w wilderness, name string) rollout.Unit {
	u := rollout.Unit{Name: name, StartedAt: drawTime(t, "started")}
	u.Leaf = rollout.Leaf{
		Current:      rapid.SampledFrom([]string{"v1", "v1", "v2", "v2", "v0"}).Draw(t, "current"),
		Target:       "v2",
		Health:       rollout.Healthy,
		HealthySince: drawTime(t, "healthy"),
		Priority:     rapid.IntRange(0, 2).Draw(t, "priority"),
	}

	if w.removals && rapid.IntRange(0, 2).Draw(t, "is removed") == 0 {
		u.Leaf.Current = rapid.SampledFrom([]string{"v1", "v1", rollout.Removed}).Draw(t, "current")
		u.Leaf.Target = rollout.Removed
	}

	if w.illness {
		healths := []rollout.Health{rollout.Healthy, rollout.Healthy, rollout.Progressing, rollout.Degraded, rollout.Unknown}
		u.Leaf.Health = rapid.SampledFrom(healths).Draw(t, "health")
		u.Leaf.Settled = rapid.Bool().Draw(t, "settled")
		u.Leaf.LostSince = drawTime(t, "lost")
	}

	if w.repairs {
		u.Leaf.MayRecover = rapid.Bool().Draw(t, "may recover")
		u.Leaf.RecoversBy = drawTime(t, "recovers by")
		u.Leaf.Disrupted = rapid.IntRange(0, 3).Draw(t, "disrupted") == 0
		u.Leaf.Repairing = u.Leaf.Disrupted && rapid.Bool().Draw(t, "repairing")
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

	if w.mutes {
		p.MinEvidence = max(0, rapid.IntRange(-2, 2).Draw(t, "min evidence"))
	}

	if w.repairs {
		p.Repairs = drawLimit(t, "repairs", 1)
	}

	if w.approvals {
		p.MaxRemoved = drawLimit(t, "max removed", 0)
		p.Removed = rapid.IntRange(0, 2).Draw(t, "removed before")
		p.RemovalsApproved = rapid.IntRange(0, 6).Draw(t, "approved")
	}

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
		Name:      "approve",
		When:      rapid.SampledFrom([]rollout.When{rollout.Before, rollout.After, rollout.During}).Draw(t, "when"),
		Verdict:   rapid.SampledFrom([]rollout.Verdict{rollout.Pending, rollout.Passed, rollout.Refused}).Draw(t, "verdict"),
		OnRefusal: rapid.SampledFrom([]rollout.OnFailure{rollout.Stop, rollout.Stop, rollout.Continue, rollout.Rollback}).Draw(t, "on refusal"),
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
