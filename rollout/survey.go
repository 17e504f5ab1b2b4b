package rollout

import (
	"cmp"
	"slices"
	"time"
)

// node is a unit with what Decide finds out about it. It points into the tree
// that was observed and never writes there.
type node struct {
	unit     *Unit
	parent   *node
	children []*node
	// index is the place in decision.nodes, end that after its last descendant.
	index, end int
	// existing counts the leaves that exist, removals those of them to be removed.
	existing, removals int
	// minReady and deadline are the unit's own or inherited.
	minReady, deadline time.Duration

	tally
	verdict

	// turn is the child that may go, where the order leaves but one; claims are
	// the children that are disrupted or not settled.
	turn   *node
	claims []*node
	// halt is the strongest cause that lets nothing beneath move, spare one that
	// spares what is down already.
	halt, spare *cause
	// overdue is the nearest unit above (or this one) that ran out of time.
	overdue *node
	// budget counts against MaxUnavailable; it is its own, or shared.
	budget *budget
	own    budget
	// whole is the nearest unit above that starts as a whole; of such a unit, mayStart
	// is true if it may, keeps once a leaf is kept for it, each if it is started leaf
	// by leaf.
	whole                 *node
	mayStart, keeps, each bool
	// unapproved is the outermost unit above (or this one) beneath which more are to
	// be removed than may be.
	unapproved *node
	// repairs is the nearest unit above that bounds repairs; repaired counts the steps of
	// this plan that are bounded by it.
	repairs  *node
	repaired int
	// bucket is the rate, nil if there is none.
	bucket *bucket
	// hold is why the unit waits, nil if it does not; held is how many do before it.
	hold *cause
	held int
}

// tally counts the leaves beneath a unit, as seen from it.
type tally struct {
	leaves, updated, available, ready int
	// down are the unavailable leaves that count against a budget, downFailed
	// those of them that have failed.
	down, downFailed int
	// removing are those that are being removed, removingFailed those of them that
	// have failed.
	removing, removingFailed int
	// spared are those of downFailed that take no place in a budget because they are tolerated.
	spared int
	// failed are all that have failed, untolerated those that no unit beneath tolerates.
	failed, untolerated int
	// unfinished are those that a timeout would fail, unfinishedDown and unfinishedRemoving
	// those of them that are down and that are being removed. What got to its target and is
	// down again is not among them: it has not failed, so no tolerance is for it.
	unfinished, unfinishedDown, unfinishedRemoving int
	// moving are those at their target that may become available by waiting.
	moving int
	// evident are those that show that the target is good, telling those that do or may
	// come to do so.
	evident, telling int
	// disrupted are those that were moved and have not been available since,
	// repairing those of them that were down already.
	disrupted, repairing int
	// healthySince is when the last of them became healthy; undated is true if
	// that is not known of some.
	healthySince time.Time
	undated      bool
	// firstDown and firstFailed are examples to name in a sentence; of what is
	// down rather one that has not failed.
	firstDown, firstFailed *node
}

// verdict is what follows from the tally.
type verdict struct {
	// up is true of a leaf that is available.
	up bool
	// outdated is true of a leaf that is not at its target.
	outdated bool
	// late is true of a leaf that failed by its deadline.
	late bool
	// skipped is true of a leaf without evidence that has a Block of its own.
	skipped bool
	// stopped is true once too much has failed here, or the time ran out.
	stopped bool
	// timedOut is true if it was the time.
	timedOut bool
	// tolerates is true while failures beneath do not stop the unit.
	tolerates bool
	// over is true once every child is complete or given up.
	over bool
	// complete is true once it is over, soaked, and the gates have passed.
	complete bool
	// open is true if some leaf beneath is outdated and nothing of its own, nor
	// of the units between, keeps it from moving.
	open bool
}

// survey builds the nodes of the tree and finds out, from the leaves up, what is
// true of each.
func survey(o Observed) *decision {
	d := &decision{now: o.Now, self: o.Self}
	size := count(&o.Root)
	d.nodes = make([]*node, 0, size)
	d.build(&o.Root, nil, make([]node, size))

	for _, n := range d.nodes {
		n.inherit()
	}

	for _, n := range slices.Backward(d.nodes) {
		d.learn(n)
	}

	return d
}

func count(u *Unit) int {
	size := 1
	for i := range u.Children {
		size += count(&u.Children[i])
	}

	return size
}

// build lists the unit and everything beneath it in d.nodes, out of one block of memory.
func (d *decision) build(u *Unit, parent *node, memory []node) *node {
	n := &memory[len(d.nodes)]
	*n = node{unit: u, parent: parent, index: len(d.nodes)}
	n.minReady, n.deadline = u.Policy.MinReady, u.Policy.Deadline
	n.bucket = u.Policy.Rate.fill()
	d.nodes = append(d.nodes, n)

	if d.lock == nil && u.Lock != nil {
		d.lock = n
	}

	if len(u.Children) > 0 {
		n.children = make([]*node, 0, len(u.Children))
	}

	for i := range u.Children {
		c := d.build(&u.Children[i], n, memory)
		n.children = append(n.children, c)
		n.existing += c.existing
		n.removals += c.removals
	}

	if n.isLeaf() {
		n.existing, n.removals = one(u.Leaf.exists()), one(u.Leaf.exists() && n.isRemoval())
	}

	n.end = len(d.nodes)

	return n
}

// inherit finds out what a unit has from those above it.
func (n *node) inherit() {
	if n.exceedsRemovals() {
		n.unapproved = n
	}

	p := n.parent
	if p == nil {
		return
	}

	n.minReady = cmp.Or(n.minReady, p.minReady)
	n.deadline = cmp.Or(n.deadline, p.deadline)
	n.unapproved = cmp.Or(p.unapproved, n.unapproved)

	n.repairs = p.repairs
	if p.unit.Policy.Repairs.Set {
		n.repairs = p
	}

	n.whole = p.whole
	if p.unit.Whole != nil {
		n.whole = p
	}
}

// learn finds out what is true of a unit whose children are known already.
func (d *decision) learn(n *node) {
	if n.isLeaf() {
		d.learnLeaf(n)
	} else {
		d.learnGroup(n)
	}

	n.complete = n.over && n.isEvident() && n.soaked(d) && n.gate(After) == nil
	n.open = n.open && !d.closed(n)
}

func (d *decision) learnLeaf(n *node) {
	leaf := &n.unit.Leaf
	n.outdated = leaf.Current != leaf.Target
	n.up = d.available(n)
	n.late = d.late(n)
	n.stopped = n.late || leaf.Health == Failed && !n.outdated && !n.isMute()
	n.skipped = n.isMute() && n.outdated && n.unit.Block != nil
	n.over = n.up && !n.outdated
	n.open = n.outdated
	n.tally = n.countLeaf()
}

func (n *node) countLeaf() tally {
	leaf := &n.unit.Leaf
	t := tally{leaves: 1}
	t.updated = one(!n.outdated)
	t.available = one(n.up)
	t.ready = one(n.over)
	t.down = one(!n.up && !n.isSpared())
	t.failed = one(n.stopped)
	t.untolerated = t.failed
	t.downFailed = one(!n.up && n.stopped)
	t.unfinished = one(!n.over && !n.stopped && !leaf.Settled && !n.isMute())
	t.moving = one(!n.outdated && !n.up && !n.stopped && !n.isMute())
	t.evident = one(n.over && !n.isMute())
	t.telling = one(!n.stopped && !n.isMute())
	t.removing = one(n.isRemoval() && !n.outdated && !n.up)
	t.removingFailed = one(t.removing > 0 && n.stopped)
	t.unfinishedDown = t.unfinished * t.down
	t.unfinishedRemoving = t.unfinished * t.removing
	t.disrupted = one(!n.up && (leaf.Disrupted || !n.outdated && n.isMoving()))
	t.repairing = one(n.isBeingRepaired())

	if n.over {
		t.healthySince, t.undated = leaf.HealthySince, leaf.HealthySince.IsZero()
	}

	if t.down > 0 {
		t.firstDown = n
	}

	if n.stopped {
		t.firstFailed = n
	}

	return t
}

func one(yes bool) int {
	if yes {
		return 1
	}

	return 0
}

func (d *decision) learnGroup(n *node) {
	for _, c := range n.children {
		n.add(&c.tally)
	}

	n.judge()
	n.waive()
	n.over = n.allOver()
	n.open = n.anyOpen()
	d.clock(n)
}

// add counts a child's leaves too.
func (t *tally) add(c *tally) {
	t.leaves += c.leaves
	t.updated += c.updated
	t.available += c.available
	t.ready += c.ready
	t.down += c.down
	t.downFailed += c.downFailed
	t.removing += c.removing
	t.removingFailed += c.removingFailed
	t.spared += c.spared
	t.failed += c.failed
	t.untolerated += c.untolerated
	t.unfinished += c.unfinished
	t.unfinishedDown += c.unfinishedDown
	t.unfinishedRemoving += c.unfinishedRemoving
	t.moving += c.moving
	t.evident += c.evident
	t.telling += c.telling
	t.disrupted += c.disrupted
	t.repairing += c.repairing
	t.undated = t.undated || c.undated

	if c.healthySince.After(t.healthySince) {
		t.healthySince = c.healthySince
	}

	if t.firstDown == nil || t.firstDown.stopped && c.firstDown != nil {
		t.firstDown = c.firstDown
	}

	if t.firstFailed == nil {
		t.firstFailed = c.firstFailed
	}
}

func (n *node) allOver() bool {
	for _, c := range n.children {
		if !n.past(c) {
			return false
		}
	}

	return true
}

// past tells whether nothing more is to be waited for in a child: it is
// complete, or skipped, or gives no evidence where others have given it, or what has failed
// in it is tolerated and nothing in it moves.
func (n *node) past(c *node) bool {
	return c.complete || c.skipped || c.isMute() && n.isEvident() || n.tolerates && c.stopped && c.moving == 0
}

func (n *node) isLeaf() bool {
	return len(n.unit.Children) == 0 && !n.unit.Group
}

// isEmpty tells whether there is no leaf beneath.
func (n *node) isEmpty() bool {
	return n.leaves == 0
}

// namesParallel is for how many names of paths there is memory at a time.
const namesParallel = 512

// pathAgain is the path of a unit that others wait for, as many of them do.
func (d *decision) pathAgain(n *node) Path {
	if d.last != n {
		d.last, d.lastPath = n, d.path(n)
	}

	return d.lastPath
}

// path are the names from below the root down to the unit.
func (d *decision) path(n *node) Path {
	depth := 0
	for a := n; a.parent != nil; a = a.parent {
		depth++
	}

	if cap(d.names)-len(d.names) < depth {
		d.names = make([]string, 0, max(namesParallel, depth))
	}

	size := len(d.names) + depth
	path := Path(d.names[len(d.names):size:size])
	d.names = d.names[:size]

	for a := n; a.parent != nil; a = a.parent {
		depth--
		path[depth] = a.unit.Name
	}

	return path
}

// beneath are the nodes of the unit and of everything beneath it.
func (d *decision) beneath(n *node) []*node {
	return d.nodes[n.index:n.end]
}
