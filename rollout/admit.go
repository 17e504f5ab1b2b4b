package rollout

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// admit lets the leaves move that nothing restrains, best first, as far as the
// budgets and rates above them allow. A leaf that is stopped by its own
// namespace does not keep those behind it from going.
func (d *decision) admit() {
	candidates := d.candidates()
	d.let(candidates)

	if d.startStuck() {
		d.let(candidates)
	}
}

func (d *decision) let(leaves []*node) {
	for _, n := range leaves {
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

// compareLeaves puts what gives no evidence last, then the higher priority first, then what is
// down already; the order of the tree is kept by sorting stably.
func compareLeaves(a, b *node) int {
	return cmp.Or(
		cmp.Compare(one(a.isMute()), one(b.isMute())),
		cmp.Compare(b.unit.Leaf.Priority, a.unit.Leaf.Priority),
		cmp.Compare(one(a.up), one(b.up)),
	)
}

// refuse is why a leaf may not move after all, nil if it may.
func (d *decision) refuse(n *node) *cause {
	if retry := n.unit.Leaf.RetryAt; !retry.IsZero() && !d.reached(retry) {
		return n.retryCause()
	}

	if on := n.unheard(); on != nil {
		return n.unheardCause(on)
	}

	if d.isKept(n) {
		n.whole.keeps = true

		return n.wholeCause()
	}

	if c := d.crowdedOut(n); c != nil {
		return c
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
		a.disrupted++
		a.budget.taken += one(n.up)
		a.budget.removing += one(n.isRemoval())

		if a.bucket != nil {
			a.bucket.take(d.now)
		}
	}
}

// budget counts what takes a place in the MaxUnavailable of a unit, or of all units
// that share it.
type budget struct {
	leaves, down int
	// spared counts the failed leaves that take no place because they are tolerated.
	spared int
	// taken counts the steps of this plan that take something down.
	taken int
	// removing counts the leaves that are being removed, by steps of this plan too.
	removing int
	// queue counts the leaves that wait for it.
	queue int
	// example is a leaf that is down, nil if none is.
	example *node
}

// share gives each unit its budget, one to all that share it.
func (d *decision) share() {
	shared := map[string]*budget{}

	for _, n := range d.nodes {
		if n.isLeaf() {
			continue
		}

		n.budget = &n.own

		if name := n.unit.Policy.Budget; name != "" {
			if shared[name] == nil {
				shared[name] = n.budget
			}

			n.budget = shared[name]
		}

		if n.down > n.spared && n.budget.example == nil {
			n.budget.example = n.firstDown
		}

		n.budget.leaves += n.leaves
		n.budget.down += n.down - n.spared
		n.budget.spared += n.spared
		n.budget.removing += n.removing
	}
}

// tightestBudget is the unit above with the smallest budget that is used up, nil
// if none is. What is down already has its place. If it is to be removed it takes one
// of as many places for removals.
func (n *node) tightestBudget() *node {
	var tightest *node

	for a := n.parent; a != nil; a = a.parent {
		if a.isFullFor(n) && (tightest == nil || a.allowed() < tightest.allowed()) {
			tightest = a
		}
	}

	return tightest
}

func (n *node) isFullFor(leaf *node) bool {
	switch {
	case !n.unit.Policy.MaxUnavailable.Set:
		return false
	case leaf.isDown():
		return leaf.needsPlace() && n.budget.down+n.budget.taken > n.allowed()
	case leaf.up:
		return n.budget.down+n.budget.taken >= n.allowed()
	default:
		return n.budget.removing >= n.allowed()
	}
}

// allowed is how many leaves beneath may be down, where that is limited.
func (n *node) allowed() int {
	return n.unit.Policy.MaxUnavailable.Of(n.budget.leaves)
}

// Of returns the limit as a number out of a total. It is the one place where
// percentages become numbers. A percentage is rounded down, but gives at least 1,
// whatever the total, unless it is 0%: that is 0, as a Value below 0 is. A number
// is itself, also beyond the total. Whether there is a limit at all says Set.
func (l Limit) Of(total int) int {
	switch {
	case l.Value <= 0:
		return 0
	case l.Percent:
		return max(1, total*l.Value/100)
	default:
		return l.Value
	}
}

// bucket is a token bucket, kept as the moment at which it will be full but for
// the time that passes: the steps so far are replayed into it.
type bucket struct {
	every time.Duration
	burst int
	// slack is how far ahead of now full may lie: what the burst allows.
	slack time.Duration
	full  time.Time
	queue int
}

// fill replays the starts of a rate, nil if there is no rate.
func (r Rate) fill() *bucket {
	if r.Every <= 0 {
		return nil
	}

	b := &bucket{every: r.Every, burst: max(1, r.Burst)}
	b.slack = time.Duration(min(int64(b.burst-1), math.MaxInt64/2/int64(r.Every))) * r.Every

	for _, start := range slices.SortedFunc(slices.Values(r.Starts), time.Time.Compare) {
		b.take(start)
	}

	return b
}

// Compact is the same rate with at most one start, which stands for all.
func (r Rate) Compact() Rate {
	if b := r.fill(); b != nil && len(r.Starts) > 0 {
		r.Starts = []time.Time{b.full.Add(-b.every)}
	}

	return r
}

// take takes a token at a moment. One that is taken too early leaves no debt:
// the bucket is then empty, not more than empty.
func (b *bucket) take(at time.Time) {
	if b.full.Before(at) {
		b.full = at
	}

	if latest := at.Add(b.slack); b.full.After(latest) {
		b.full = latest
	}

	b.full = b.full.Add(b.every)
}

// slowestRate is the unit above whose next token comes last, of those that have
// none now; nil if all have.
func (d *decision) slowestRate(n *node) *node {
	var slowest *node

	for a := n.parent; a != nil; a = a.parent {
		if a.bucket == nil || !a.bucket.next().After(d.now) {
			continue
		}

		if slowest == nil || a.bucket.next().After(slowest.bucket.next()) {
			slowest = a
		}
	}

	return slowest
}

// next is the moment from which there is a token.
func (b *bucket) next() time.Time {
	return b.full.Add(-b.slack)
}
