package rollout

// isDown tells whether a leaf is to be moved that is down already.
func (n *node) isDown() bool {
	return !n.up && !n.isRemoval()
}

// needsPlace tells whether a leaf that is down is moved only within the budgets, unless
// it may be repaired beyond them.
func (n *node) needsPlace() bool {
	return n.unit.Leaf.MayRecover || n.repairs != nil
}

// crowdedOut is why a leaf waits for its turn or for a place in a budget, nil if it
// has both, or may be repaired without them.
func (d *decision) crowdedOut(n *node) *cause {
	full := n.tightestBudget()

	if n.isDown() {
		// What was moved and has not come back goes on with the disruption of its own.
		inTurn := n.spare == nil || n.unit.Leaf.Disrupted && !d.disruptsSecond(n)

		if full == nil && inTurn || d.mayRepair(n) {
			return nil
		}

		if !inTurn {
			return n.spare
		}
	}

	if full == nil {
		return nil
	}

	full.budget.queue++

	return n.budgetCause(full)
}

// mayRepair tells whether a leaf that is down may be moved out of turn or beyond a
// budget, and counts it if so.
func (d *decision) mayRepair(n *node) bool {
	if n.unit.Leaf.MayRecover {
		return false
	}

	r := n.repairs
	if r == nil {
		return true
	}

	if r.repairing+r.repaired >= r.unit.Policy.Repairs.Of(r.leaves) || d.disruptsSecond(n) {
		return false
	}

	r.repaired++

	return true
}

// isBeingRepaired tells whether a leaf was moved while it was down, and may still become
// available. One that is to be moved again, and cannot recover, is not: nothing comes of
// that repair, and of several such none must wait for the others.
func (n *node) isBeingRepaired() bool {
	leaf := &n.unit.Leaf

	return leaf.Repairing && !n.up && (leaf.MayRecover || !n.outdated)
}

// disruptsSecond tells whether to move a leaf out of turn would disrupt a second child
// of a unit whose children go one at a time.
func (d *decision) disruptsSecond(n *node) bool {
	for c := n; c.parent != nil; c = c.parent {
		if c.parent.unit.Policy.Order != OneAtATime {
			continue
		}

		if first := d.firstDisrupted(c.parent); first != nil && first != c {
			return true
		}
	}

	return false
}

// firstDisrupted is the child that is disrupted, nil if none is; of several the one for
// which the lock is ours, else the first, so that they do not wait for each other. What
// is down in the child for which the lock is ours may be down because it was moved, whatever
// is known of its leaves: the lock is acquired before a step, and not released before
// everything is available.
func (d *decision) firstDisrupted(n *node) *node {
	var first *node

	for _, c := range n.children {
		switch {
		case d.lockedFor(c) && c.down+c.disrupted > 0:
			return c
		case first == nil && c.disrupted > 0:
			first = c
		}
	}

	if first == nil && d.serves("") && d.lock == n {
		return n.firstChildDown()
	}

	return first
}

// firstChildDown is the first child beneath which something is down, nil if there is none.
func (n *node) firstChildDown() *node {
	for _, c := range n.children {
		if c.down > 0 {
			return c
		}
	}

	return nil
}
