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
	p := &n.unit.Policy

	return p.MaxRemoved.Set && n.removals > 0 && n.removals+p.Removed > n.mayRemove() && n.removals > p.RemovalsApproved
}

// mayRemove is how many may be removed beneath without an approval, those included that were lately.
func (n *node) mayRemove() int {
	p := &n.unit.Policy

	return p.MaxRemoved.Of(n.existing + p.Removed)
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
	c := &cause{reason: ReasonRemovalApproval, said: n.waits(share(on.removals, on.existing) + on.within() +
		" are to be removed" + on.lately() + ", more than " + strconv.Itoa(on.mayRemove()) + " (maxRemoved); " + on.toApprove())}

	if on.parent != nil {
		c.on = on
	}

	return c
}

// lately says how many were removed before.
func (n *node) lately() string {
	if n.unit.Policy.Removed == 0 {
		return ""
	}

	return " after " + strconv.Itoa(n.unit.Policy.Removed) + " lately"
}

// toApprove says how the removals beneath a unit are approved.
func (n *node) toApprove() string {
	number := strconv.Itoa(n.removals)
	if with := n.unit.Policy.ApproveWith; with != "" {
		return "to approve: " + with + number
	}

	return "approve " + number + " to continue"
}
