package rollout

import (
	"cmp"
	"strconv"
	"strings"
	"time"
)

func (n *node) minReadyCause() *cause {
	return &cause{
		reason: ReasonSoak, said: n.is(n.soaking()),
		since: n.unit.Leaf.HealthySince, until: n.readyAt(),
	}
}

func (n *node) movingCause() *cause {
	said := clause{n, "is updating", n.condition()}
	if n.isRemoval() {
		said = clause{n, "is being removed", n.unit.Leaf.Reason}
	}

	return &cause{reason: cmp.Or(n.unit.Leaf.Cause, ReasonProgressing), said: said, since: n.unit.StartedAt}
}

func (n *node) unhealthyCause() *cause {
	return &cause{reason: cmp.Or(n.unit.Leaf.Cause, ReasonUnhealthy), said: n.is("up to date but " + n.condition())}
}

func (n *node) failedCause() *cause {
	return &cause{reason: ReasonFailed, said: n.failureClause()}
}

// lateCause is why a leaf waits that missed its deadline, or has failed.
func (n *node) lateCause() *cause {
	return &cause{reason: ReasonDeadline, said: n.failureClause(), since: n.due()}
}

// overdueCause is why everything beneath a unit waits that ran out of time.
func (n *node) overdueCause(on *node) *cause {
	c := &cause{reason: ReasonDeadline, on: on, said: on.failureClause(), since: on.timeout()}

	// What only has to stay ready still comes through automatically.
	if n.isLeaf() && !n.outdated && n.unit.Leaf.Health == Healthy {
		c.until = n.readyAt()
	}

	return c
}

// failureClause says that a unit failed, and how.
func (n *node) failureClause() clause {
	if n.hasFailed() {
		return clause{n, "failed", n.unit.Leaf.Reason}
	}

	return clause{n, "failed", n.failure()}
}

// failureCause is why nothing more moves beneath a unit where too much has failed.
func (n *node) failureCause() *cause {
	n = n.whereFailed()
	why := ""
	if limit := n.unit.Policy.MaxFailures; limit.Set || n.untolerated > 1 {
		why = share(n.untolerated, n.leaves) + " units failed, " + strconv.Itoa(limit.Of(n.leaves)) + " allowed; "
	}

	return &cause{reason: ReasonFailed, on: n.firstFailed, said: clause{n, "failed", why + n.firstFailed.name() + " " + n.firstFailed.failure()}}
}

// whereFailed is the unit whose limit the failures beneath a unit have exceeded: itself, or
// where it has none the first beneath that has one, as the numbers are those of that.
func (n *node) whereFailed() *node {
	if n.unit.Policy.MaxFailures.Set {
		return n
	}

	for _, c := range n.children {
		if at := c.whereFailed(); at.unit.Policy.MaxFailures.Set && at.stopped && !at.timedOut {
			return at
		}
	}

	return n
}

// failure is a clause that says how a unit failed, after its name.
func (n *node) failure() string {
	switch {
	case n.timedOut:
		return "not complete after " + duration(n.unit.Policy.Timeout) + " (timeout)"
	case n.hasFailed():
		return "failed" + detail(n.unit.Leaf.Reason)
	case n.outdated:
		return "not " + n.done() + " after " + duration(n.deadline) + " (progress deadline)" + detail(n.unit.Leaf.RetryReason)
	case n.isRemoval():
		return "not removed after " + duration(n.deadline) + " (progress deadline)" + detail(n.unit.Leaf.Reason)
	case n.isLost():
		return "not ready for " + duration(n.deadline) + " (progress deadline)" + detail(n.unit.Leaf.Reason)
	default:
		return "not ready after " + duration(n.deadline) + " (progress deadline)" + detail(n.unit.Leaf.Reason)
	}
}

// hasFailed tells whether a leaf failed at its target, whatever the time.
func (n *node) hasFailed() bool {
	return !n.timedOut && !n.outdated && n.unit.Leaf.Health == Failed
}

// soakCause is why a unit waits that is up to date and healthy.
func (n *node) soakCause() *cause {
	c := &cause{reason: ReasonSoak, since: n.healthySince, until: n.soakedAt()}

	if c.until.IsZero() {
		c.since = time.Time{}
	}

	c.said = n.is(ready(c.until, n.unit.Policy.Soak))

	return c
}

// progress is how far a unit has come.
func (n *node) progress() string {
	switch {
	case n.isLeaf() && !n.up:
		return n.name() + " is " + n.condition()
	case n.isLeaf():
		return n.name() + " is next"
	case n.removals == n.leaves:
		return n.name() + " has " + share(n.ready, n.leaves) + " removed"
	case n.firstDown != nil:
		return n.name() + " has " + share(n.available, n.leaves) + " ready, " +
			n.firstDown.name() + " is " + n.firstDown.condition()
	default:
		return n.name() + " has " + share(n.updated, n.leaves) + " updated"
	}
}

func (n *node) retryCause() *cause {
	leaf := &n.unit.Leaf

	why := ""
	if leaf.RetryReason != "" {
		why = leaf.RetryReason + "; "
	}

	return &cause{
		reason: ReasonRetry, until: leaf.RetryAt,
		said: n.waits(why + "next try at " + Clock(leaf.RetryAt)),
	}
}

// budgetCause is why a leaf waits for the budget of a unit that has just counted
// it in its queue.
func (n *node) budgetCause(full *node) *cause {
	down, allowed := full.budget.down+full.budget.taken, full.allowed()
	c := &cause{reason: ReasonBudget, position: full.budget.queue}

	switch {
	case allowed == 0:
		c.said = n.waits("0 allowed unavailable" + full.within())
	case !n.isRemoval() || n.up:
		c.said = n.queues(share(down, allowed) + " allowed unavailable" + full.within() + full.budget.oneDown() + full.budget.besides() + full.shared())
	default:
		c.said = n.queues(share(full.budget.removing, allowed) + " allowed in removal" + full.within())
	}

	if full.parent != nil {
		c.on = full
	}

	return c
}

func share(part, whole int) string {
	return strconv.Itoa(part) + " of " + strconv.Itoa(whole)
}

// done is what an outdated leaf is to be.
func (n *node) done() string {
	if n.isRemoval() {
		return "removed"
	}

	return "updated"
}

// waits is the clause of a unit that waits, queues that of one in a queue.
func (n *node) waits(why string) clause { return clause{n, waiting, why} }

func (n *node) queues(why string) clause { return clause{n, queued, why} }

// What is said of a unit that waits for another one, and of one that has a position.
const (
	waiting = "is waiting"
	queued  = "is queued"
)

// is is the clause of a unit that is something.
func (n *node) is(what string) clause { return clause{n, "is " + what, ""} }

// sentence is what is said of the unit that the clause is about.
func (c *cause) sentence() string {
	return Cause{Does: c.said.does, Why: c.said.why}.Sentence(c.said.of.name(), c.position)
}

// root is what the unit waits for that is quoted last.
func (c *cause) root() string {
	switch {
	case c.quoted != "":
		return c.quoted
	case c.said.does == waiting || c.said.does == queued:
		return c.said.why
	default:
		return c.sentence()
	}
}

// Sentence is the sentence about a unit that waits for the cause, and has a position in the queue.
func (c Cause) Sentence(unit string, position int) string {
	s := cmp.Or(c.Subject, unit) + " " + c.Does
	if c.Does == queued {
		s += " (position " + strconv.Itoa(position) + ")"
	}

	return s + detail(c.Why)
}

// besides says how many are down and take no place.
func (b *budget) besides() string {
	if b.spared == 0 {
		return ""
	}

	return ", besides " + strconv.Itoa(b.spared) + " failed (maxFailures)"
}

// oneDown names one of those that take a place in a budget.
func (b *budget) oneDown() string {
	if b.example == nil {
		return ""
	}

	return " (" + b.example.name() + " is " + b.example.condition() + ")"
}

// condition says of a leaf that is not available what it is, as what may follow
// "is" or a colon.
func (n *node) condition() string {
	leaf := &n.unit.Leaf

	switch {
	case leaf.Health == Healthy:
		return n.soaking()
	case leaf.Reason != "":
		return leaf.Reason
	case n.isRemoval() && !n.outdated:
		return "being removed"
	case leaf.Current == "" && n.outdated:
		return "not created"
	case leaf.Health == Failed:
		return "failed"
	case leaf.Health == Progressing, leaf.Health == Degraded:
		return "not ready"
	default:
		return "in an unknown state"
	}
}

// soaking is the condition of a leaf that is ready, but not for MinReady.
func (n *node) soaking() string {
	return ready(n.readyAt(), n.minReady) + " (minReadySeconds)"
}

// ready says until when what is ready has to stay so.
func ready(until time.Time, span time.Duration) string {
	if until.IsZero() {
		return "ready since an unknown time; soaking for " + duration(span)
	}

	return "ready; soaking until " + Clock(until)
}

// rateCause is why a leaf waits for a token of a unit that has just counted it.
func (n *node) rateCause(dry *node) *cause {
	b := dry.bucket
	c := &cause{reason: ReasonRate, position: b.queue}
	c.until = b.next().Add(time.Duration(b.queue-1) * b.every)
	c.said = n.queues("at most 1 update" + dry.within() + " every " + duration(b.every) + dry.shared())

	return c
}

// shared says who has what a unit permits.
func (n *node) shared() string {
	if n.unit.Policy.Shared == "" {
		return ""
	}

	return "; " + n.unit.Policy.Shared
}

// within says in which unit something is counted: nothing for the root, and for
// a part of it that has no name.
func (n *node) within() string {
	if n.parent == nil || n.unit.Name == "" {
		return ""
	}

	return " in " + n.unit.Name
}

// duration writes a duration without the units that are zero at its end.
func duration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}

	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}

	return s
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

// Clause says who paused a unit, since when and why, as far as that is known: "paused by ann since
// 2 Jan 15:04:05 UTC: the database moves".
func (p *Pause) Clause() string {
	by := ""
	if p.By != "" {
		by = " by " + p.By
	}

	return "paused" + by + stamped("since", p.Since) + detail(p.Reason)
}

// clause says what a gate says, after "is stopped: " or "is waiting: ".
func (g *Gate) clause() string {
	if g.Verdict == Refused {
		return "gate " + g.Name + " was refused" + detail(g.Message)
	}

	return "gate " + g.Name + " is pending" + detail(g.Message)
}

// detail adds a reason, where one is given.
func detail(reason string) string {
	if reason == "" {
		return ""
	}

	return ": " + reason
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

// stamped adds a moment to a clause, where it is known.
func stamped(word string, t time.Time) string {
	if t.IsZero() {
		return ""
	}

	return " " + word + " " + Clock(t)
}

// Clock writes a moment the way all sentences of a plan do, so that a sentence
// stays the same while time passes.
func Clock(t time.Time) string {
	return t.UTC().Format("2 Jan 15:04:05 UTC")
}
