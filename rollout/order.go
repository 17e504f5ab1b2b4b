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

// claimants are the children that are disrupted, or up to date but not settled:
// each of them claims the turn.
func (n *node) claimants() []*node {
	var claims []*node

	for _, c := range n.children {
		if c.disrupts() || c.settles() {
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
	c := &cause{reason: reason, on: on, message: n.waits()}

	keeps := d.keeps(on)
	if keeps == nil {
		c.message += on.progress()

		return c
	}

	c.message += keeps.message
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
