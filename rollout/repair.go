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

	// What was repaired before, and is to be moved again, does not wait for itself.
	others := r.repairing - one(n.unit.Leaf.Repairing)
	if others+r.repaired >= r.unit.Policy.Repairs.Of(r.leaves) || d.disruptsSecond(n) {
		return false
	}

	r.repaired++

	return true
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
// which the lock is ours, else the first, so that they do not wait for each other.
func (d *decision) firstDisrupted(n *node) *node {
	var first *node

	for _, c := range n.children {
		if c.disrupted > 0 && (first == nil || d.lockedFor(c)) {
			first = c
		}
	}

	return first
}
