package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spillway-dev/spillway/rollout"
)

// Plan is what the ring is about to do, and what it waits for.
type Plan struct {
	rollout.Plan
	// Writes are at most one for each workload, in the order to make them.
	Writes []Write
}

// decide makes the plan: what moves is the engine's decision, and the rest is
// keeping the records straight.
func decide(o Observed, options Options) Plan {
	plan := Plan{Plan: rollout.Decide(tree(o, options))}
	stepping := map[string]bool{}
	for _, step := range plan.Steps {
		stepping[strings.Join(step.Path, "/")] = true
	}
	var records []Write
	for i := range o.Workloads {
		w := &o.Workloads[i]
		switch {
		case w.putOff(o.Now):
		case stepping[strings.Join(w.path(o.Now), "/")]:
			plan.Writes = append(plan.Writes, step(w, o.Now))
		default:
			records = append(records, record(w, o.Now)...)
		}
	}
	plan.order(o.Now)
	plan.Writes = append(plan.Writes, records...)
	return plan
}

// order puts the rolls into the order of the steps.
func (p *Plan) order(now time.Time) {
	place := make(map[string]int, len(p.Steps))
	for i, step := range p.Steps {
		place[strings.Join(step.Path, "/")] = i
	}
	slices.SortFunc(p.Writes, func(a, b Write) int {
		return place[strings.Join(a.Workload.path(now), "/")] - place[strings.Join(b.Workload.path(now), "/")]
	})
}

// tree is what the engine decides upon: the workloads that are not where they
// should be, and those on their way, in their namespaces.
func tree(o Observed, options Options) rollout.Observed {
	alone := rollout.Unit{Name: alone, Group: true, Policy: rollout.Policy{
		MaxUnavailable: limit(options.MaxRolling),
		Rate:           rate(o, options),
		OnFailure:      rollout.Continue,
	}}
	zones := rollout.Unit{Name: inGroups, Group: true, Policy: rollout.Policy{OnFailure: rollout.Continue}}
	slow := rollout.Unit{Name: late, Group: true, Policy: rollout.Policy{OnFailure: rollout.Continue}}
	for i := range o.Workloads {
		w := &o.Workloads[i]
		unit, ok := w.unit(o.Now, options)
		switch {
		case !ok:
		case w.isLate(o.Now):
			addTo(&slow, w.Namespace, rollout.Limit{}, unit)
		case w.Zone.Group != "":
			addTo(&zones, w.Namespace, rollout.Limit{}, unit)
		default:
			addTo(&alone, w.Namespace, limit(options.MaxRollingPerNamespace), unit)
		}
	}
	return rollout.Observed{Now: o.Now, Root: rollout.Unit{
		Group: true, Children: []rollout.Unit{alone, zones, slow},
		Policy: rollout.Policy{Deadline: progressDeadline, OnFailure: rollout.Continue},
	}}
}

// addTo adds a workload to its namespace. They come sorted by it.
func addTo(parent *rollout.Unit, namespace string, budget rollout.Limit, unit rollout.Unit) {
	last := len(parent.Children) - 1
	if last < 0 || parent.Children[last].Name != namespace {
		parent.Children = append(parent.Children, rollout.Unit{
			Name: namespace, Policy: rollout.Policy{MaxUnavailable: budget, OnFailure: rollout.Continue},
		})
		last++
	}
	parent.Children[last].Children = append(parent.Children[last].Children, unit)
}

func limit(n int) rollout.Limit {
	if n <= 0 {
		return rollout.Limit{}
	}
	return rollout.Number(n)
}

// rate is the token bucket; how full it is follows from when the workloads
// were last rolled, so that a restart does not refill it.
func rate(o Observed, options Options) rollout.Rate {
	r := rollout.Rate{Every: options.rateEvery(), Burst: max(options.UpdateBurst, 1)}
	if r.Every == 0 {
		return rollout.Rate{}
	}
	for i := range o.Workloads {
		if at := o.Workloads[i].Records.Roll.At; !at.IsZero() {
			r.Starts = append(r.Starts, at)
		}
	}
	return r
}

// The parts of the tree: workloads that move by themselves once they have their
// hash, zones, and workloads that have had their time. The first has no name, because
// sentences need none; only there is a budget.
const (
	alone    = ""
	inGroups = "zones"
	late     = "late"
)

// path is the workload's place in the tree.
func (w *Workload) path(now time.Time) rollout.Path {
	part := alone
	switch {
	case w.isLate(now):
		part = late
	case w.Zone.Group != "":
		part = inGroups
	}
	return rollout.Path{part, w.Namespace, w.Kind + " " + w.Name.Name}
}

// unit is the workload as the engine sees it; false if there is nothing to see,
// because it is where it should be and not on its way.
func (w *Workload) unit(now time.Time, options Options) (rollout.Unit, bool) {
	unit := rollout.Unit{Name: w.Kind + " " + w.Name.Name}
	rolling, isLate := w.rolling(now), w.isLate(now)
	switch {
	case isLate:
		unit.Policy.Deadline = timeToRoll(w.object)
	case w.settled() && !rolling:
		return unit, false
	}
	unit.Leaf = rollout.Leaf{Current: w.revision(), Target: w.target(), Health: w.availability(rolling || isLate), Priority: w.Settings.Priority}
	if rolling || isLate {
		unit.StartedAt = w.Records.Roll.At
	}
	if w.settled() {
		return unit, true
	}
	unit.Block = w.block(now, options)
	if w.Settings.Paused {
		unit.Pause = &rollout.Pause{}
	}
	if w.Retry != nil {
		unit.Leaf.RetryAt, unit.Leaf.RetryReason = w.Retry.At, w.Retry.Reason
	}
	return unit, true
}

// settled is true if nothing has to be done to the Pod template, and no Pod has to
// be freed.
func (w *Workload) settled() bool {
	return w.templateSettled() && w.Suspension.settled()
}

// templateSettled is settled for the template alone; Pods may still be waiting.
func (w *Workload) templateSettled() bool {
	if !w.Settings.Tracked {
		return !w.Suspension.suspended()
	}
	return w.current()
}

// current is true if the template carries a hash that means the present config.
func (w *Workload) current() bool {
	return !w.Suspension.suspended() && w.hashIsRight()
}

// hashIsRight is current for the hash alone.
func (w *Workload) hashIsRight() bool {
	if w.Hashes == nil || w.Template.Hash == "" {
		return false
	}
	return w.accepted() == w.Hashes.Desired || slices.Contains(w.Hashes.Equivalent, w.accepted()) || w.adopts()
}

// adopts is true if the hash is of the present config in another scope, and that
// has to be noted: that ours looks at more, or that something is ignored now,
// is no reason to roll.
func (w *Workload) adopts() bool {
	return w.Hashes != nil && (w.takesOver() || w.ignoresMore())
}

// takesOver is true if the hash is the predecessor's, and nothing has been noted
// of it yet. A hash that the ring wrote itself is never taken for one: what
// only ours looks at may have brought nothing when it was written.
func (w *Workload) takesOver() bool {
	return w.Records.Roll.At.IsZero() && w.Records.Roll.Admitted.IsZero() && !w.hasBaseline() && w.Template.Hash != "" && w.Template.Hash == w.Hashes.Predecessor
}

// ignoresMore is true if nothing has changed since the hash was written but what
// the user ignores.
func (w *Workload) ignoresMore() bool {
	u := w.Hashes.Unignored
	return u != "" && w.accepted() != w.Hashes.Desired && (u == w.accepted() || u == w.Template.Hash)
}

// Revisions that are no hashes.
const (
	suspended = "suspended"
	released  = "released"
	unhashed  = "changed"
)

func (w *Workload) revision() string {
	if !w.Suspension.settled() {
		return suspended
	}
	return w.accepted()
}

func (w *Workload) target() string {
	switch {
	case !w.Settings.Tracked:
		return released
	case w.current():
		return w.accepted()
	case w.Hashes != nil:
		return w.Hashes.Desired
	default:
		return unhashed
	}
}

// rolling is true while Pods follow a hash that the ring wrote, for at most the
// progress deadline; a workload that is not ready later has other reasons.
func (w *Workload) rolling(now time.Time) bool {
	at := w.Records.Roll.At
	return !at.IsZero() && now.Before(at.Add(progressDeadline)) && w.Health.Health != rollout.Healthy
}

// availability is how the workload counts against the budget: as healthy unless
// the ring itself disturbs it, and as down if its Pods were never scheduled.
func (w *Workload) availability(rolling bool) rollout.Health {
	switch {
	case !w.Suspension.settled():
		return rollout.Degraded
	case rolling:
		return w.Health.Health
	default:
		return rollout.Healthy
	}
}

// block is the ring's own reason why the workload cannot move, nil if none.
func (w *Workload) block(now time.Time, options Options) *rollout.Block {
	since := now
	if c := w.Records.Condition; c != nil {
		since = c.Since
	}
	switch {
	case w.templateSettled():
		return w.freeing(since)
	case w.Zone.Group != "" && w.Zone.Open && !w.Suspension.suspended():
		return &rollout.Block{Reason: ReasonNotHeld, Message: "group " + w.Zone.Group + " does not hold it at its revision"}
	case !w.Settings.Tracked:
		return nil
	case len(w.Denied) > 0:
		return &rollout.Block{Reason: ReasonNotPermitted, Message: strings.Join(w.Denied, "; "), Since: since}
	case len(w.Missing) > 0:
		return &rollout.Block{Reason: ReasonConfigMissing, Message: w.missingSentence(), Since: since}
	case w.Hashes == nil && !w.Retry.pending(now):
		return w.coalescing(now, options)
	default:
		return nil
	}
}

// freeing is why the waiting Pods of a released workload cannot be freed yet.
func (w *Workload) freeing(since time.Time) *rollout.Block {
	switch {
	case !w.Suspension.Known:
		return nil // a failed read is tried again
	case !w.Suspension.Seen:
		return &rollout.Block{Reason: ReasonReleasing, Message: "its controller has not seen yet that it was released", Since: since}
	case len(w.Suspension.deletable()) == 0:
		return &rollout.Block{Reason: ReasonReleasing, Since: since, Message: fmt.Sprintf(
			"Pod %s waits for config that exists by now, but the partition holds it at the revision that waits; lower the partition", w.Suspension.Waiting[0].Name)}
	default:
		return nil
	}
}

// missingSentence says what does not exist, and what that means for Pods that
// have not started.
func (w *Workload) missingSentence() string {
	if w.Suspension.suspended() {
		return w.missing() + "; its Pods are not scheduled before"
	}
	return w.missing()
}

// missing says what does not exist.
func (w *Workload) missing() string {
	parts := make([]string, 0, len(w.Missing))
	for _, m := range w.Missing {
		parts = append(parts, m.String(w.Namespace))
	}
	return strings.Join(parts, ", ")
}

// String says what does not exist, as seen from a namespace.
func (m Missing) String(namespace string) string {
	if m.Key == "" {
		return m.Object.From(namespace) + " does not exist"
	}
	return m.Object.From(namespace) + " has no key " + m.Key
}

func (w *Workload) coalescing(now time.Time, options Options) *rollout.Block {
	window := options.CoalesceWindow
	if w.Settings.CoalesceWindow != nil {
		window = *w.Settings.CoalesceWindow
	}
	until := w.Change.settlesAt(window)
	if !until.After(now) {
		return &rollout.Block{Reason: ReasonUnread, Message: "its config could not be read"}
	}
	return &rollout.Block{
		Reason:  ReasonCoalescing,
		Message: fmt.Sprintf("its config has just changed, and changes within %s are one roll", window),
		Since:   w.Change.First,
		Until:   until,
	}
}

// putOff is true while a failed write waits for its next try.
func (w *Workload) putOff(now time.Time) bool {
	return w.Retry.pending(now) && w.Retry.Write
}

// pending is true while the next try is still to come.
func (r *Retry) pending(now time.Time) bool { return r != nil && now.Before(r.At) }

// condition is what has to be said on the workload itself: what somebody has to
// fix. Nil if nothing has.
func (w *Workload) condition(now time.Time) *Condition {
	var c *Condition
	switch {
	case len(w.Denied) > 0:
		c = &Condition{Type: "Ready", Status: "False", Reason: ReasonNotPermitted, Message: strings.Join(w.Denied, "; ")}
	case len(w.Missing) > 0:
		c = &Condition{Type: "Ready", Status: "False", Reason: ReasonConfigMissing, Message: w.missingSentence()}
	case len(w.Settings.Problems) > 0:
		c = &Condition{Type: "Stalled", Status: "True", Reason: ReasonInvalidAnnotation, Message: w.problems()}
	default:
		return nil
	}
	c.Since = now.UTC().Truncate(time.Second)
	if old := w.Records.Condition; old != nil && old.Reason == c.Reason {
		c.Since = old.Since
	}
	return c
}

func (w *Workload) problems() string {
	parts := make([]string, 0, len(w.Settings.Problems))
	for _, p := range w.Settings.Problems {
		parts = append(parts, p.String())
	}
	return strings.Join(parts, "; ")
}
