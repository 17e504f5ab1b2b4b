package rollout

// chooseTurn finds out which child of a unit may go, where only one may.
func (d *decision) chooseTurn(n *node) {
	switch n.unit.Policy.Order {
	case Series:
		n.turn = n.firstUnfinished()
	case OneAtATime:
		n.claims = n.claimants()
		n.turn = d.choose(n)
	case Parallel:
	}
}

// claimants are the children that are disrupted, up to date but not settled, or stopped by a
// gate during them: each of them claims the turn.
func (n *node) claimants() []*node {
	var claims []*node

	for _, c := range n.children {
		if c.disrupts() || c.settles() || c.isRefusedDuring() {
			claims = append(claims, c)
		}
	}

	return claims
}

// choose gives the turn to the one that claims it, else to the one for which the
// lock is ours, else to the first that can use it. Of several claims, to the first.
func (d *decision) choose(n *node) *node {
	if len(n.claims) > 0 {
		return n.claims[0]
	}

	var turn *node

	for _, c := range n.children {
		if c.open && (turn == nil || d.lockedFor(c)) {
			turn = c
		}
	}

	return turn
}

// anyOpen tells whether a child could go, seen from the children alone.
func (n *node) anyOpen() bool {
	if n.unit.Policy.Order == Series {
		first := n.firstUnfinished()

		return first != nil && first.open
	}

	for _, c := range n.children {
		if c.open {
			return true
		}
	}

	return false
}

// firstUnfinished is the first child of a series that the later ones wait for.
func (n *node) firstUnfinished() *node {
	for _, c := range n.children {
		if !n.past(c) {
			return c
		}
	}

	return nil
}

// outOfOrder: an earlier unit of the series is not complete.
func (d *decision) outOfOrder(n *node) *cause {
	p := n.parent
	if p == nil || p.unit.Policy.Order != Series || p.turn == nil || n.index <= p.turn.index {
		return nil
	}

	return d.waitFor(n, p.turn, ReasonOrder)
}

// outOfTurn: another child has the turn, and no second one may be disrupted.
func (d *decision) outOfTurn(n *node) *cause {
	p := n.parent
	if p == nil || p.unit.Policy.Order != OneAtATime || p.turn == nil {
		return nil
	}

	on := p.turn
	if on == n && len(p.claims) > 1 {
		on = p.claims[1]
	}

	if on == n {
		return nil
	}

	c := d.waitFor(n, on, ReasonTurn)
	c.rank = rankTurn

	return c
}

// waitFor is the cause that makes a unit wait for another. It quotes what keeps
// that other one, if anything does but its own progress; if that only soaks, the
// soak is the reason.
func (d *decision) waitFor(n, on *node, reason Reason) *cause {
	c := &cause{reason: reason, on: on}

	keeps := d.keeps(on)
	if keeps == nil {
		c.said = n.waits(on.progress())

		return c
	}

	c.said, c.quoted, c.about = n.waits(keeps.sentence()), keeps.root(), keeps.about
	c.since, c.until = keeps.since, keeps.until

	if keeps.reason == ReasonSoak {
		c.reason = ReasonSoak
	}

	return c
}

// keeps is what keeps a unit that others wait for from being complete, apart from
// the leaves that are down in it.
func (d *decision) keeps(n *node) *cause {
	if n.settles() || n.updated == n.leaves || !d.closed(n) {
		return d.settling(n)
	}

	return d.firstOf(n)
}

// settles tells whether a unit is up to date but soaks or waits for a gate.
func (n *node) settles() bool {
	return n.over && !n.complete
}

// isRefusedDuring tells whether a gate during the unit has stopped it: also one that was refused
// before the first leaf was moved says that the target is bad, so that no other unit may begin.
func (n *node) isRefusedDuring() bool {
	gate := n.gate(Before)

	return gate != nil && gate.When == During && n.updated < n.leaves
}

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
			return d.untilLost(n, n.spare)
		}
	}

	if full == nil {
		return nil
	}

	full.budget.queue++

	return d.untilLost(n, n.budgetCause(full))
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
