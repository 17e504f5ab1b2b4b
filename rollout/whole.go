package rollout

import "slices"

// isKept tells whether a leaf is kept because its unit starts as a whole and may
// not now. One that is down at a revision of its own may be moved alone.
func (d *decision) isKept(n *node) bool {
	if n.whole == nil || n.whole.each || n.whole.mayStart {
		return false
	}

	return n.up || n.unit.Leaf.Current == n.whole.unit.Whole.Revision
}

// canStart tells whether nothing keeps what is to move beneath a unit but a budget, a
// rate, a retry or the Block of a leaf. What keeps the unit keeps that as well.
func (d *decision) canStart(n *node) bool {
	return !slices.ContainsFunc(d.beneath(n), func(m *node) bool {
		return m.isLeaf() && m.outdated && (m.spare != nil || m.halt != nil && !d.isOwnBlock(m, m.halt))
	})
}

// isOwnBlock tells whether a leaf waits for nothing but its own Block.
func (d *decision) isOwnBlock(n *node, c *cause) bool {
	return c.rank == rankBlocked && d.isBlocked(n) && (n.parent == nil || c != n.parent.halt)
}

// startStuck lets one of several units that start as a whole be started leaf by leaf, if
// they wait for nothing but each other: the first, but rather the one that is disrupted. Of
// one such unit it does so if what cannot recover elsewhere waits for it.
func (d *decision) startStuck() bool {
	var first *node

	kept := 0

	for _, n := range d.nodes {
		if n.keeps && (first == nil || d.goesFirst(n)) {
			first = n
		}

		kept += one(n.keeps)
	}

	if kept == 0 || len(d.steps) > 0 || d.any((*node).isUpdating) || kept == 1 && !d.isAwaited(first) {
		return false
	}

	first.each = true

	for _, n := range d.nodes {
		n.own.queue = 0
		if n.bucket != nil {
			n.bucket.queue = 0
		}
	}

	return true
}

// goesFirst tells whether a unit is the one that is disrupted, so that what is down elsewhere
// must wait for it.
func (d *decision) goesFirst(n *node) bool {
	return n.parent != nil && n.parent.unit.Policy.Order == OneAtATime && d.firstDisrupted(n.parent) == n
}

// isAwaited tells whether a leaf elsewhere would be repaired, but for what is disrupted
// beneath a unit.
func (d *decision) isAwaited(n *node) bool {
	return d.goesFirst(n) && slices.ContainsFunc(d.nodes, func(l *node) bool {
		waits := l.hold != nil && l.hold == l.spare && l.isDown() && !l.unit.Leaf.MayRecover

		return waits && l.childOf(n.parent) != n
	})
}

// starts says what the step of a leaf does for its unit, and where it leads.
func (d *decision) starts(n *node) (Start, string) {
	target := n.unit.Leaf.Target

	switch {
	case n.whole == nil:
		return StartNone, target
	case n.whole.each:
		return StartEach, target
	case n.whole.mayStart:
		return StartWhole, target
	default:
		return StartNone, n.whole.unit.Whole.Revision
	}
}

// wholeCause is why a leaf waits that its unit keeps.
func (n *node) wholeCause() *cause {
	whole := n.whole.unit.Whole

	why := whole.Message
	if !n.up {
		why = n.condition() + "; " + why
	}

	return &cause{reason: whole.Reason, said: n.waits(why)}
}
