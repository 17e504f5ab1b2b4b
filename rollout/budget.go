package rollout

import (
	"cmp"
	"slices"
)

// admit lets the leaves move that nothing restrains, best first, as far as the
// budgets and rates above them allow. A leaf that is stopped by its own
// namespace does not keep those behind it from going.
func (d *decision) admit() {
	for _, n := range d.candidates() {
		n.hold = d.refuse(n)
		if n.hold == nil {
			d.take(n)
		}
	}
}

// candidates are the outdated leaves without a cause to wait, best first.
func (d *decision) candidates() []*node {
	var leaves []*node

	for _, n := range d.nodes {
		if n.isLeaf() && n.outdated && n.hold == nil {
			leaves = append(leaves, n)
		}
	}

	slices.SortStableFunc(leaves, compareLeaves)

	return leaves
}

// compareLeaves puts the higher priority first, then what is down already; the
// order of the tree is kept by sorting stably.
func compareLeaves(a, b *node) int {
	return cmp.Or(
		cmp.Compare(b.unit.Leaf.Priority, a.unit.Leaf.Priority),
		cmp.Compare(one(a.up), one(b.up)),
	)
}

// refuse is why a leaf may not move after all, nil if it may.
func (d *decision) refuse(n *node) *cause {
	if retry := n.unit.Leaf.RetryAt; !retry.IsZero() && !d.reached(retry) {
		return n.retryCause()
	}

	if full := n.tightestBudget(); full != nil {
		full.queue++

		return n.budgetCause(full)
	}

	if dry := d.slowestRate(n); dry != nil {
		dry.bucket.queue++

		return n.rateCause(dry)
	}

	return nil
}

// take counts a step in every budget and rate above it.
func (d *decision) take(n *node) {
	d.steps = append(d.steps, n)

	for a := n.parent; a != nil; a = a.parent {
		a.taken += one(n.up)

		if a.bucket != nil {
			a.bucket.take(d.now)
		}
	}
}

// tightestBudget is the unit above with the smallest budget that is used up, nil
// if none is. What is down already needs none.
func (n *node) tightestBudget() *node {
	if !n.up {
		return nil
	}

	var tightest *node

	for a := n.parent; a != nil; a = a.parent {
		if a.isFull() && (tightest == nil || a.budget() < tightest.budget()) {
			tightest = a
		}
	}

	return tightest
}

func (n *node) isFull() bool {
	return n.unit.Policy.MaxUnavailable.Set && n.down+n.taken >= n.budget()
}

// budget is how many leaves beneath may be down, where that is limited.
func (n *node) budget() int {
	return n.unit.Policy.MaxUnavailable.of(n.leaves)
}

// of is the limit as a number out of total.
func (l Limit) of(total int) int {
	switch {
	case l.Value <= 0:
		return 0
	case l.Percent:
		return max(1, total*l.Value/100)
	default:
		return l.Value
	}
}
