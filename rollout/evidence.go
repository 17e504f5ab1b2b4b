package rollout

import (
	"slices"
	"strconv"
)

// isMute tells whether what becomes of a leaf says nothing about its target. What is to be
// removed has no target that could be bad.
func (n *node) isMute() bool {
	return n.isLeaf() && n.unit.Leaf.NoEvidence != "" && !n.isRemoval()
}

// isSpared tells whether a leaf without evidence takes no place in a budget though it is down: it
// was down before it was moved, or is not moved yet, so the rollout took nothing away.
func (n *node) isSpared() bool {
	return n.isMute() && !n.unit.Leaf.Disrupted && (n.outdated || n.unit.Leaf.Repairing)
}

// isEvident tells whether enough beneath a unit shows that the target is good.
func (n *node) isEvident() bool { return n.evident >= n.unit.Policy.MinEvidence }

// unheard is the nearest unit above a leaf without evidence in which others are to show
// first that the target is good, nil if there is none: where nothing else can, it may move.
func (n *node) unheard() *node {
	if !n.isMute() {
		return nil
	}

	for a := n.parent; a != nil; a = a.parent {
		if !a.isEvident() && a.telling > 0 {
			return a
		}
	}

	return nil
}

// unheardCause is why a leaf without evidence waits for others.
func (n *node) unheardCause(on *node) *cause {
	c := &cause{
		reason: ReasonNoEvidence,
		said:   n.waits("it is " + n.unit.Leaf.NoEvidence + ", so others" + on.within() + " show first that " + n.unit.Leaf.Target + " is good"),
	}

	if on.parent != nil {
		c.on = on
	}

	return c
}

// evidenceCause is why a unit waits in which nothing is left to wait for, and too little
// shows that the target is good.
func (d *decision) evidenceCause(n *node) *cause {
	why := share(n.evident, n.unit.Policy.MinEvidence) + " show that the target is good"
	if n.isEmpty() {
		return &cause{reason: ReasonNoEvidence, said: n.waits(why + ", nothing belongs to it")}
	}

	beneath := d.beneath(n)
	if i := slices.IndexFunc(beneath, (*node).isMute); i >= 0 {
		first := beneath[i]
		why += ", " + first.name() + " is " + first.unit.Leaf.NoEvidence
		if others := n.leaves - n.telling - 1; others > 0 {
			why += " and " + strconv.Itoa(others) + " more give no evidence"
		}
	}

	return &cause{reason: ReasonNoEvidence, said: n.waits(why)}
}
