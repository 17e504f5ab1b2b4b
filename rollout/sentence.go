package rollout

import (
	"strconv"
	"strings"
	"time"
)

// Clock writes a moment the way all sentences of a plan do, so that a sentence
// stays the same while time passes.
func Clock(t time.Time) string {
	return t.UTC().Format("2 Jan 15:04:05 UTC")
}

// String joins the names with slashes; the root is empty.
func (p Path) String() string {
	return strings.Join(p, "/")
}

// name is how sentences call a unit.
func (n *node) name() string {
	if n.parent == nil || n.unit.Name == "" {
		return "the rollout"
	}

	return n.unit.Name
}

// within says in which unit something is counted: nothing for the root, and for
// a part of it that has no name.
func (n *node) within() string {
	if n.parent == nil || n.unit.Name == "" {
		return ""
	}

	return " in " + n.unit.Name
}

// stamped adds a moment to a clause, where it is known.
func stamped(word string, t time.Time) string {
	if t.IsZero() {
		return ""
	}

	return " " + word + " " + Clock(t)
}

// span writes a duration without the units that are zero at its end.
func span(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}

	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}

	return s
}

// detail adds what somebody has said.
func detail(said string) string {
	if said == "" {
		return ""
	}

	return ": " + said
}

// condition is a clause that says how a leaf does that is not available.
func (n *node) condition() string {
	leaf := &n.unit.Leaf

	switch {
	case leaf.Health == Healthy:
		return n.ripening()
	case leaf.Reason != "":
		return "is " + leaf.Reason
	case leaf.Current == "" && n.outdated:
		return "is not there yet"
	case leaf.Health == Failed:
		return "has failed"
	case leaf.Health == Progressing:
		return "is not ready yet"
	case leaf.Health == Degraded:
		return "is not ready"
	default:
		return "is in an unknown state"
	}
}

// ripening is the condition of a leaf that is ready, but not for long enough.
func (n *node) ripening() string {
	if at := n.readyAt(); !at.IsZero() {
		return "has to stay ready until " + Clock(at)
	}

	return "has to be ready for " + span(n.minReady) + ", and it is not known since when it is"
}

func (n *node) minReadyCause() *cause {
	return &cause{
		reason: ReasonSoak, message: n.name() + " " + n.ripening(),
		since: n.unit.Leaf.HealthySince, until: n.readyAt(),
	}
}

func (n *node) movingCause() *cause {
	return &cause{
		reason: ReasonProgressing, message: n.name() + " is on its way: it " + n.condition(),
		since: n.unit.StartedAt,
	}
}

func (n *node) unhealthyCause() *cause {
	return &cause{reason: ReasonUnhealthy, message: n.name() + " is up to date but " + n.condition()}
}

func (n *node) failedCause() *cause {
	return &cause{reason: ReasonFailed, message: n.name() + " " + n.failure()}
}

// lateCause is why a leaf that missed its deadline, or has failed, waits.
func (n *node) lateCause() *cause {
	return &cause{reason: ReasonDeadline, message: n.name() + " " + n.failure(), since: n.due()}
}

// overdueCause is why everything beneath a unit waits that ran out of time.
func (n *node) overdueCause(on *node) *cause {
	c := &cause{reason: ReasonDeadline, on: on, message: on.name() + " " + on.failure(), since: on.timeout()}

	// What only has to stay ready still comes through by itself.
	if n.isLeaf() && !n.outdated && n.unit.Leaf.Health == Healthy {
		c.until = n.readyAt()
	}

	return c
}

// failure is a clause that says how a unit has failed.
func (n *node) failure() string {
	switch {
	case n.timedOut:
		return "was to take at most " + span(n.unit.Policy.Timeout) + stamped("from", n.unit.StartedAt)
	case n.unit.Leaf.Health == Failed && !n.outdated:
		return "has failed" + n.details()
	default:
		return "was to be ready within " + span(n.deadline) + stamped("of", n.begins()) + n.details()
	}
}

// details are what is known of why a leaf is not ready.
func (n *node) details() string {
	leaf := &n.unit.Leaf

	switch {
	case n.outdated:
		return detail(leaf.RetryReason)
	case leaf.Reason != "":
		return ": it is " + leaf.Reason
	default:
		return ""
	}
}

// failureCause is why nothing more moves beneath a unit where too much has failed.
func (n *node) failureCause() *cause {
	message := n.name() + " is stopped: "
	if limit := n.unit.Policy.MaxFailures; limit.Set || n.unborne > 1 {
		message += strconv.Itoa(n.unborne) + " of " + units(n.leaves) + " failed, at most " +
			strconv.Itoa(limit.of(n.leaves)) + " may; "
	}

	return &cause{reason: ReasonFailed, on: n.firstFailed, message: message + n.firstFailed.name() + " " + n.firstFailed.failure()}
}

func units(n int) string {
	if n == 1 {
		return "1 unit"
	}

	return strconv.Itoa(n) + " units"
}

// soakCause is why a unit waits that is up to date and healthy.
func (n *node) soakCause() *cause {
	c := &cause{reason: ReasonSoak, since: n.healthySince, until: n.soakedAt()}

	if c.until.IsZero() {
		c.since = time.Time{}
		c.message = n.name() + " soaks for " + span(n.unit.Policy.Soak) + ", and it is not known since when it is healthy"
	} else {
		c.message = n.name() + " soaks until " + Clock(c.until)
	}

	return c
}

// progress is how far a unit has come.
func (n *node) progress() string {
	switch {
	case n.isLeaf() && !n.up:
		return n.name() + " " + n.condition()
	case n.isLeaf():
		return n.name() + " goes first"
	case n.firstDown != nil:
		return n.name() + " has " + share(n.available, n.leaves) + " ready, " +
			n.firstDown.name() + " " + n.firstDown.condition()
	default:
		return n.name() + " has " + share(n.updated, n.leaves) + " updated"
	}
}

func share(part, whole int) string {
	return strconv.Itoa(part) + " of " + strconv.Itoa(whole)
}

func (n *node) retryCause() *cause {
	leaf := &n.unit.Leaf

	return &cause{
		reason: ReasonRetry, until: leaf.RetryAt,
		message: n.name() + " waits" + detail(leaf.RetryReason) + ", next try at " + Clock(leaf.RetryAt),
	}
}

// budgetCause is why a leaf waits for the budget of a unit that has just counted
// it in its queue.
func (n *node) budgetCause(full *node) *cause {
	down, budget := full.down+full.taken, full.budget()
	c := &cause{reason: ReasonBudget, position: full.queue}

	if budget == 0 {
		c.message = n.name() + " waits: no unit" + full.within() + " may be taken down"
	} else {
		c.message = n.name() + " waits, number " + strconv.Itoa(c.position) + " in the queue: " + strconv.Itoa(down) +
			" of at most " + strconv.Itoa(budget) + full.within() + areDown(down) + full.example()
	}

	if full.parent != nil {
		c.on = full
	}

	return c
}

// example names one of those that are down.
func (n *node) example() string {
	if n.down == 0 || n.firstDown == nil {
		return ""
	}

	return " (" + n.firstDown.name() + " " + n.firstDown.condition() + ")"
}

func areDown(n int) string {
	if n == 1 {
		return " is down or on its way"
	}

	return " are down or on their way"
}

// rateCause is why a leaf waits for a token of a unit that has just counted it.
func (n *node) rateCause(dry *node) *cause {
	b := dry.bucket
	c := &cause{reason: ReasonRate, position: b.queue}
	c.until = b.next().Add(time.Duration(b.queue-1) * b.every)
	c.message = n.name() + " waits, number " + strconv.Itoa(c.position) + " in the queue: at most one unit" +
		dry.within() + " may move every " + span(b.every)

	return c
}

// clause says who paused a unit, and why.
func (p *Pause) clause() string {
	by := ""
	if p.By != "" {
		by = " by " + p.By
	}

	return "paused" + by + stamped("since", p.Since) + detail(p.Reason)
}

// clause says what a gate says, after "is stopped: " or "waits ".
func (g *Gate) clause() string {
	if g.Verdict == Refused {
		return "gate " + g.Name + " was refused" + detail(g.Message)
	}

	return "for gate " + g.Name + detail(g.Message)
}

// clause says who holds a lock, and for what.
func (l *Lock) clause() string {
	held := ""
	if l.Purpose != "" {
		held = " for " + l.Purpose
	}

	if l.Unit != "" {
		held += " of " + l.Unit
	}

	return "the lock is held by " + l.Holder + held + stamped("since", l.Since)
}
