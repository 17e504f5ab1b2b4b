package rollout

import "time"

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

// after is a moment somewhat later, zero if the moment is unknown.
func after(t time.Time, d time.Duration) time.Time {
	if t.IsZero() {
		return t
	}

	return t.Add(d)
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

// isDue tells whether a deadline applies to a leaf: it was started, it has never
// got there, and it has moved or failed to; or it got there and was lost.
func (n *node) isDue() bool {
	leaf := &n.unit.Leaf

	switch {
	case n.deadline <= 0:
		return false
	case leaf.Settled:
		return n.isLost()
	case n.outdated:
		return !leaf.RetryAt.IsZero()
	default:
		return leaf.Health != Healthy
	}
}

// isLost tells whether a leaf that got to its target is gone, and that is a failure if it
// lasts.
func (n *node) isLost() bool {
	leaf := &n.unit.Leaf

	return leaf.Settled && !n.outdated && leaf.Health == Degraded && !leaf.LostSince.IsZero()
}

// begins is when the time of a leaf begins to run, zero if it does not.
func (n *node) begins() time.Time {
	if n.isLost() {
		return n.unit.Leaf.LostSince
	}

	return n.unit.StartedAt
}

// due is when a leaf must be healthy, zero if never.
func (n *node) due() time.Time {
	return after(n.begins(), n.deadline)
}

// timeout is when a unit must be over, zero if never.
func (n *node) timeout() time.Time {
	if n.isLeaf() || n.unit.Policy.Timeout <= 0 {
		return time.Time{}
	}

	return after(n.unit.StartedAt, n.unit.Policy.Timeout)
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
