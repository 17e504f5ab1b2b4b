package rollout

import "strconv"

// exists tells whether there is something at a leaf that could be removed.
func (l *Leaf) exists() bool {
	if l.Current == Removed {
		return l.Health != Healthy
	}

	return l.Current != "" || l.Target == Removed
}

// exceedsRemovals tells whether more is to be removed beneath a unit than may be.
func (n *node) exceedsRemovals() bool {
	limit := n.unit.Policy.MaxRemoved

	return limit.Set && n.removals > limit.Of(n.existing) && n.removals > n.unit.Policy.RemovalsApproved
}

func (n *node) isUnapproved() bool {
	return n.unapproved != nil && n.isRemoval()
}

// isRemoval tells whether a leaf is to be removed.
func (n *node) isRemoval() bool {
	return n.unit.Leaf.Target == Removed && n.isLeaf()
}

// unapproved: more is to be removed than may be without approval.
func (d *decision) unapproved(n *node) *cause {
	if !n.isUnapproved() {
		return nil
	}

	on := n.unapproved
	c := &cause{reason: ReasonRemovalApproval, message: n.waits() + share(on.removals, on.existing) + on.within() +
		" are to be removed, more than " + strconv.Itoa(on.unit.Policy.MaxRemoved.Of(on.existing)) +
		" (maxRemoved); " + on.toApprove()}

	if on.parent != nil {
		c.on = on
	}

	return c
}

// toApprove says how the removals beneath a unit are approved.
func (n *node) toApprove() string {
	number := strconv.Itoa(n.removals)
	if with := n.unit.Policy.ApproveWith; with != "" {
		return "to approve: " + with + number
	}

	return "approve " + number + " to continue"
}
