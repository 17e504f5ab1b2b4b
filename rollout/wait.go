package rollout

// waiting is why a unit waits that has nothing to move: a leaf that has moved and
// is not available, or a unit that soaks or stands before its last gate.
func (d *decision) waiting(n *node) *cause {
	switch {
	case n.settles():
		return d.settling(n)
	case n.isLeaf() && !n.outdated && !n.up:
		return n.recovering()
	case n.isLeaf() && n.outdated:
		return n.halted()
	default:
		return nil
	}
}

// settling is what keeps a unit from being complete that is over, nil if nothing
// does: a refusal, then the soak, then a gate that is pending.
func (d *decision) settling(n *node) *cause {
	if !n.settles() {
		return nil
	}

	gate := n.gate(After)

	switch {
	case gate != nil && gate.Verdict == Refused:
		return n.gateCause(gate)
	case !n.soaked(d):
		return n.soakCause()
	default:
		return n.gateCause(gate)
	}
}

// recovering is why a leaf at its target is not available, the most telling
// first: it failed, it is late, a unit above ran out of time, it is healthy but
// not for long enough, it is updating, or it broke without a step.
func (n *node) recovering() *cause {
	leaf := &n.unit.Leaf

	switch {
	case leaf.Health == Failed:
		return n.failedCause()
	case n.late:
		return n.lateCause()
	case n.overdue != nil && !leaf.Settled:
		return n.overdueCause(n.overdue)
	case leaf.Health == Healthy:
		return n.minReadyCause()
	case n.isMoving():
		return n.movingCause()
	default:
		return n.unhealthyCause()
	}
}

// isMoving tells whether a leaf at its target is becoming healthy for the first time,
// because it was moved or because it says so, or is being removed.
func (n *node) isMoving() bool {
	leaf := &n.unit.Leaf

	return n.isRemoval() || !leaf.Settled && !n.unit.StartedAt.IsZero() || leaf.Health == Progressing
}

// halted is why an outdated leaf may not even queue, nil if it may. What is down
// for good does not wait for its turn, unless it is to be removed.
func (n *node) halted() *cause {
	if n.halt != nil || n.isDown() && (!n.unit.Leaf.MayRecover || n.unit.Leaf.Disrupted) {
		return n.halt
	}

	return n.spare
}
