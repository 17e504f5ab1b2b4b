package rollout

// purpose is what the engine holds the lock for.
const purpose = "rollout"

// locked: another client holds the lock.
func (d *decision) locked(n *node) *cause {
	if !d.isLocked(n) {
		return nil
	}

	l := n.unit.Lock

	return &cause{reason: ReasonLocked, said: n.waits(l.clause()), since: l.Since}
}

func (d *decision) isLocked(n *node) bool {
	l := n.unit.Lock

	return l != nil && l.Holder != "" && l.Holder != d.self
}

// lockedFor tells whether the lock is ours for this unit.
func (d *decision) lockedFor(n *node) bool {
	return d.holdsLock() && n.parent == d.lock && d.lock.unit.Lock.Unit == n.unit.Name
}

// acquire is the lock to take for the steps of this plan, nil if there is no need.
// A lock that is ours for the whole serves every unit; one that is ours for a unit
// becomes one for the whole if steps are taken elsewhere before that unit is healthy.
func (d *decision) acquire() *Lock {
	name, needed := d.lockName()
	if !needed || d.serves(name) {
		return nil
	}

	if held := d.lockedChild(); held != nil && held.down > 0 {
		name = ""
	}

	return &Lock{Holder: d.self, Purpose: purpose, Unit: name, Since: d.now}
}

// serves tells whether the lock is ours already for a child, or for the whole.
func (d *decision) serves(name string) bool {
	return d.holdsLock() && (d.lock.unit.Lock.Unit == name || d.lock.unit.Lock.Unit == "")
}

// lockedChild is the child for which the lock is ours, nil if there is none.
func (d *decision) lockedChild() *node {
	if !d.holdsLock() {
		return nil
	}

	return d.lock.child(d.lock.unit.Lock.Unit)
}

// release tells whether the lock is ours for nothing.
func (d *decision) release() bool {
	if !d.holdsLock() || d.lock.down > 0 {
		return false
	}

	if _, needed := d.lockName(); needed {
		return false
	}

	for _, n := range d.beneath(d.lock) {
		if n.hold != nil && keepsLock(n.hold.reason) {
			return false
		}
	}

	return true
}

// holdsLock tells whether the lock of the tree is ours.
func (d *decision) holdsLock() bool {
	return d.lock != nil && d.lock.unit.Lock.Holder != "" && d.lock.unit.Lock.Holder == d.self
}

// lockName is the child that all steps beneath the lock are in, empty if they are
// in several; and whether there are any.
func (d *decision) lockName() (name string, needed bool) {
	if d.lock == nil {
		return "", false
	}

	for _, n := range d.steps {
		child := n.childOf(d.lock)

		switch {
		case child == nil:
		case needed && child.nameBelow(d.lock) != name:
			return "", true
		default:
			name, needed = child.nameBelow(d.lock), true
		}
	}

	return name, needed
}

// childOf is the child of a that n is or is beneath, or a itself if it is n; nil if n is not beneath a.
func (n *node) childOf(a *node) *node {
	for c := n; c != nil; c = c.parent {
		if c == a || c.parent == a {
			return c
		}
	}

	return nil
}

// nameBelow is the unit's name, empty for a itself.
func (n *node) nameBelow(a *node) string {
	if n == a {
		return ""
	}

	return n.unit.Name
}

// keepsLock tells whether what waits for such a reason goes on automatically.
func keepsLock(r Reason) bool {
	return r == ReasonSoak || r == ReasonRetry || r == ReasonRate
}
