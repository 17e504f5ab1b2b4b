package rollout

// judge decides whether too much has failed beneath a unit. A limit of its own
// counts every failed leaf; without one, those count that nobody beneath bears.
func (n *node) judge() {
	policy := &n.unit.Policy
	tooMany := n.tooMany()
	n.bears = !tooMany || policy.OnFailure == Continue
	n.stopped = !n.bears

	switch {
	case n.bears:
		n.unborne = 0
	case policy.MaxFailures.Set:
		n.unborne = n.failed
	}
}

func (n *node) tooMany() bool {
	limit := n.unit.Policy.MaxFailures
	if limit.Set {
		return n.failed > limit.Of(n.leaves)
	}

	return n.unborne > 0
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
	n.unborne, n.unfinished = n.failed, 0
	n.downFailed, n.removingFailed, n.moving = n.down, n.removing, 0
	n.firstFailed = n
}

// waive takes failed leaves out of the budgets, where the policy says Continue.
func (n *node) waive() {
	if n.unit.Policy.OnFailure == Continue {
		n.down -= n.downFailed
		n.removing -= n.removingFailed
		n.downFailed, n.removingFailed = 0, 0
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
