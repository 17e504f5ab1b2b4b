package rollout

import "time"

// cause is why a unit, and everything beneath it, must wait.
type cause struct {
	rank   int
	reason Reason
	on     *node
	said   clause
	// quoted is the reason of the unit that is quoted, empty if none is.
	quoted       string
	about        Ref
	since, until time.Time
	position     int
}

// clause is what there is to say of a unit, in parts; see [Cause].
type clause struct {
	of        *node
	does, why string
}

// The chain: why an outdated leaf may not move, the most telling first. What
// needs a user comes before what passes automatically, and what concerns many
// before what concerns one. Down the tree the stronger cause wins; of
// two of one rank the outer one, as that is the one to end first; but of two
// failures the inner one, as that is nearer to what failed.
//
//  1. stopped: it, or too much beneath a unit above it, has failed or run out of time
//  2. refused: a gate during it was, and it has its turn in a series
//  3. paused: a user wants it to wait
//  4. blocked: a fact of the ring's own
//  5. locked: another client holds the lock
//  6. unapproved: more is to be removed than may be without approval
//  7. out of order: an earlier unit is not complete, so its gates are not read yet
//  8. gated: a gate before it has not passed
//  9. out of turn: another unit is disrupted; this alone spares what is down already
//  10. retry: its step failed a moment ago
//  11. kept whole: its unit starts as a whole, and may not now
//  12. budget: as many are down as may be
//  13. rate: steps are taken as often as they may be
//
// The first eight hold for a unit as a whole and are found here, as is the
// ninth; the last four depend on the leaf and are found while admitting it.
func chain() [rankTurn]func(*decision, *node) *cause {
	return [rankTurn]func(*decision, *node) *cause{
		(*decision).stopped,
		(*decision).refused,
		(*decision).paused,
		(*decision).blocked,
		(*decision).locked,
		(*decision).unapproved,
		(*decision).outOfOrder,
		(*decision).gated,
	}
}

// The ranks that matter: failures come first, then gates, the turn last.
const (
	rankFailure = 0
	rankRefused = 1
	rankBlocked = 3
	rankGate    = 7
	rankTurn    = 8
)

// inheritRestraint finds the strongest cause for a unit, its own or from above.
func (d *decision) inheritRestraint(n *node) {
	n.halt, n.spare = d.firstOf(n), d.outOfTurn(n)
	if n.timedOut {
		n.overdue = n
	}

	if p := n.parent; p != nil {
		n.halt = stronger(p.halt, n.halt)
		n.spare = stronger(p.spare, n.spare)

		if n.overdue == nil {
			n.overdue = p.overdue
		}
	}
}

// firstOf is the first cause of the unit's own along the chain, nil if there is none.
func (d *decision) firstOf(n *node) *cause {
	for rank, link := range chain() {
		if c := link(d, n); c != nil {
			c.rank = rank

			return c
		}
	}

	return nil
}

// stronger is the more telling of a cause from above and a unit's own.
func stronger(above, own *cause) *cause {
	switch {
	case above == nil:
		return own
	case own == nil:
		return above
	case own.rank < above.rank || own.rank == rankFailure && above.rank == rankFailure:
		return own
	default:
		return above
	}
}

// closed tells whether something of the unit's own lets nothing beneath it move.
// It is what the chain says, order apart, without the words.
func (d *decision) closed(n *node) bool {
	return n.stopped || n.unit.Pause != nil || d.isBlocked(n) || d.isLocked(n) || n.isUnapproved() || n.gate(Before) != nil
}

// stopped: too much has failed, or the time ran out.
func (d *decision) stopped(n *node) *cause {
	switch {
	case !n.stopped:
		return nil
	case n.late:
		return n.lateCause()
	case n.isLeaf():
		return n.failedCause()
	case n.timedOut:
		return n.overdueCause(n)
	default:
		return n.failureCause()
	}
}

// refused: a gate during it was refused. One that is not begun yet is not read before its turn.
func (d *decision) refused(n *node) *cause {
	if g := n.gate(Before); g != nil && g.When == During && d.outOfOrder(n) == nil {
		return n.gateCause(g)
	}

	return nil
}

// paused: a user wants it to wait.
func (d *decision) paused(n *node) *cause {
	p := n.unit.Pause
	if p == nil {
		return nil
	}

	return &cause{reason: ReasonPaused, said: n.is(p.Clause()), since: p.Since}
}

// blocked: a fact of the ring's own.
func (d *decision) blocked(n *node) *cause {
	if !d.isBlocked(n) {
		return nil
	}

	b := n.unit.Block

	return &cause{reason: b.Reason, said: n.waits(b.Message), about: b.About, since: b.Since, until: b.Until}
}

func (d *decision) isBlocked(n *node) bool {
	return n.unit.Block != nil && !d.reached(n.unit.Block.Until)
}

// gated: a gate before it has not passed.
func (d *decision) gated(n *node) *cause {
	if g := n.gate(Before); g != nil {
		return n.gateCause(g)
	}

	return nil
}

// holdOf is the cause for a unit to wait as its hold.
func (d *decision) holdOf(n *node) Hold {
	c := n.hold

	h := Hold{
		Path: d.path(n), Reason: c.reason, Cause: Cause{Does: c.said.does, Why: c.said.why, Root: c.root(), About: c.about},
		Since: c.since, Until: c.until, Position: c.position,
	}
	if c.said.of != n {
		h.Cause.Subject = c.said.of.name()
	}

	h.Message = h.Cause.Sentence(n.name(), c.position)

	if c.on != nil {
		h.On = d.pathAgain(c.on)
	}

	return h
}

// gate is the first gate at one side of a unit that does not let it through, one
// that was refused before one that is pending. There is nothing to let through
// in an empty group.
func (n *node) gate(when When) *Gate {
	if n.isEmpty() {
		return nil
	}

	var pending *Gate

	for i := range n.unit.Gates {
		g := &n.unit.Gates[i]

		switch {
		case !g.stands(when) || g.lets():
		case g.Verdict == Refused:
			return g
		case pending == nil:
			pending = g
		}
	}

	return pending
}

func (n *node) gateCause(g *Gate) *cause {
	if g.Verdict == Refused {
		return &cause{reason: ReasonGateRefused, said: clause{n, "is stopped", g.clause()}, about: Ref{Kind: KindGate, Name: g.Name}, since: g.Since}
	}

	return &cause{reason: ReasonGate, said: n.waits(g.clause()), about: Ref{Kind: KindGate, Name: g.Name}, since: g.Since}
}

// waiting is why a unit waits that has nothing to move: a leaf that has moved and
// is not available, or a unit that soaks or stands before its last gate.
func (d *decision) waiting(n *node) *cause {
	switch {
	case n.settles():
		return d.settling(n)
	case n.isLeaf() && !n.outdated && !n.up:
		return n.recovering()
	case n.isLeaf() && n.outdated:
		return d.halted(n)
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
	case !n.isEvident():
		return d.evidenceCause(n)
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
	case n.isMute() && leaf.Health != Healthy:
		return n.unhealthyCause()
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
func (d *decision) halted(n *node) *cause {
	if n.halt != nil || n.isDown() && (!n.unit.Leaf.MayRecover || n.unit.Leaf.Disrupted) {
		return n.halt
	}

	return d.untilLost(n, n.spare)
}
