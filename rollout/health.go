package rollout

import "time"

// judge decides whether too much has failed beneath a unit. A limit of its own
// counts every failed leaf; without one, those count that no unit beneath tolerates.
func (n *node) judge() {
	policy := &n.unit.Policy
	tooMany := n.tooMany()
	n.tolerates = !tooMany || policy.OnFailure == Continue
	n.stopped = !n.tolerates

	switch {
	case n.tolerates:
		n.untolerated = 0
	case policy.MaxFailures.Set:
		n.untolerated = n.failed
	}
}

func (n *node) tooMany() bool {
	limit := n.unit.Policy.MaxFailures
	if limit.Set {
		return n.failed > limit.Of(n.leaves)
	}

	return n.untolerated > 0
}

// clock stops a unit that ran out of time. From the outside everything in it
// that is unfinished has failed. A unit that is stopped by failures already does
// not run out of time as well.
func (d *decision) clock(n *node) {
	if n.over || n.stopped || n.unfinished == 0 || !d.reached(n.timeout()) {
		return
	}

	n.stopped, n.timedOut = true, true
	n.failed += n.unfinished
	n.downFailed += n.unfinishedDown
	n.removingFailed += n.unfinishedRemoving
	n.untolerated, n.moving = n.failed, 0
	n.unfinished, n.unfinishedDown, n.unfinishedRemoving = 0, 0, 0
	n.spared = 0
	n.firstFailed = n

	if n.down > n.downFailed {
		n.firstDown = d.firstLost(n)
	}
}

// firstLost is the first leaf beneath that got to its target and is down again, without having
// failed.
func (d *decision) firstLost(n *node) *node {
	for _, leaf := range d.beneath(n) {
		if leaf.isLeaf() && !leaf.up && !leaf.stopped && leaf.unit.Leaf.Settled {
			return leaf
		}
	}

	return n.firstDown
}

// waive takes failed leaves out of the budgets: where the policy says Continue, and those
// that are tolerated. The latter keep the turn under OneAtATime, and the place of a removal.
func (n *node) waive() {
	switch {
	case n.unit.Policy.OnFailure == Continue:
		n.down -= n.downFailed
		n.removing -= n.removingFailed
		n.downFailed, n.removingFailed = 0, 0
		n.spared = 0
	case n.tolerates:
		n.spared = n.downFailed - n.removingFailed
	}
}

// rollsBack tells whether a unit has failed and wants the former revision back.
func (n *node) rollsBack() bool {
	return n.stopped && !n.isLeaf() && n.unit.Policy.OnFailure == Rollback
}

// disrupts tells whether a child is not wholly available, as its parent counts.
func (n *node) disrupts() bool {
	if n.parent.unit.Policy.OnFailure == Continue {
		return n.down > n.downFailed
	}

	return n.down > 0
}

// available tells whether a leaf is up: healthy, and at its target for MinReady too.
func (d *decision) available(n *node) bool {
	leaf := &n.unit.Leaf
	if leaf.Health != Healthy {
		return false
	}

	return leaf.Current != leaf.Target || n.isRemoval() || n.minReady <= 0 || d.reached(n.readyAt())
}

// readyAt is when a healthy leaf will have been so for MinReady, zero if unknown.
func (n *node) readyAt() time.Time {
	return after(n.unit.Leaf.HealthySince, n.minReady)
}

// soaked tells whether everything beneath has been healthy for Soak.
func (n *node) soaked(d *decision) bool {
	return n.unit.Policy.Soak <= 0 || n.healthySince.IsZero() && !n.undated || d.reached(n.soakedAt())
}

// soakedAt is when the unit will have soaked, zero if unknown.
func (n *node) soakedAt() time.Time {
	if n.undated {
		return time.Time{}
	}

	return after(n.healthySince, n.unit.Policy.Soak)
}

// late tells whether a leaf has missed its deadline.
func (d *decision) late(n *node) bool {
	return n.isDue() && d.reached(n.due())
}

// runsOut is when the time of a unit runs out and changes what is decided: not
// for what is finished or has failed.
func (d *decision) runsOut(n *node) time.Time {
	switch {
	case n.isLeaf() && n.isDue() && !n.stopped:
		return n.due()
	case n.stopped || n.over || n.unfinished == 0:
		return time.Time{}
	default:
		return n.timeout()
	}
}

// isDue tells whether a deadline applies to a leaf: it was started, it has never
// got there, and it has moved or failed to; or it got there and was lost.
func (n *node) isDue() bool {
	leaf := &n.unit.Leaf

	switch {
	case n.deadline <= 0 || n.isMute():
		return false
	case leaf.Settled:
		return n.isLost()
	case n.outdated:
		return !leaf.RetryAt.IsZero()
	default:
		return leaf.Health != Healthy
	}
}

// due is when a leaf must be healthy, zero if never.
func (n *node) due() time.Time {
	return after(n.begins(), n.deadline)
}

// begins is when the time of a leaf begins to run, zero if it does not.
func (n *node) begins() time.Time {
	if n.isLost() {
		return n.unit.Leaf.LostSince
	}

	return n.unit.StartedAt
}

// isLost tells whether a leaf that got to its target is gone, and that is a failure if it
// lasts.
func (n *node) isLost() bool {
	leaf := &n.unit.Leaf

	return leaf.Settled && !n.outdated && leaf.Health == Degraded && !leaf.LostSince.IsZero()
}

// timeout is when a unit must be over, zero if never.
func (n *node) timeout() time.Time {
	if n.isLeaf() || n.unit.Policy.Timeout <= 0 {
		return time.Time{}
	}

	return after(n.unit.StartedAt, n.unit.Policy.Timeout)
}

// after is a moment somewhat later, zero if the moment is unknown.
func after(t time.Time, d time.Duration) time.Time {
	if t.IsZero() {
		return t
	}

	return t.Add(d)
}
