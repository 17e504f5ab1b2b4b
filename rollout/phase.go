package rollout

import "slices"

// Group sums up what a plan says of a unit with others beneath it.
type Group struct {
	Path Path
	// Phase is that of the unit and everything beneath it.
	Phase Phase
	// Counts are those of the leaves beneath.
	Counts Counts
	// Steps is how many of the plan's steps are beneath, Holds are those of its holds
	// that are of the unit or beneath it.
	Steps int
	Holds []Hold
	// Complete is true if nothing more is to be waited for: all is where it should
	// be, has soaked and passed its gates, but for failures that are tolerated.
	Complete bool
	// Failing is true if more leaves have failed than MaxFailures allows, whatever
	// OnFailure says.
	Failing bool
	// Free is true if no leaf beneath that is outdated waits for anything but a
	// budget, a rate, a retry or its own Block.
	Free bool
	// AtGateBefore is true if nothing but gates keeps the unit from starting, and
	// AtGateAfter if nothing but gates keeps it from being complete. From then on there
	// is something for them to measure.
	AtGateBefore, AtGateAfter bool
	// AtGateDuring is true from the first step beneath the unit until it is complete.
	AtGateDuring bool
}

// PhaseOf is the phase of the unit at a path. Of a leaf it follows from its step or
// hold: it is Complete if it has neither.
func (p Plan) PhaseOf(path ...string) Phase {
	if g := p.Group(path...); g.Phase != "" {
		return g.Phase
	}

	answer := p.At(path...)
	s := sum{steps: one(answer.Step != nil), holds: one(answer.Hold != nil)}

	if h := answer.Hold; h != nil {
		s.moving = h.On == nil && moves(h.Reason)
		s.failed, s.paused = needsUser(h.Reason), h.Reason == ReasonPaused
	}

	return s.phase()
}

// sum is what the plan says of a unit and everything beneath it.
type sum struct {
	steps, holds                      int
	rollsBack, moving, failed, paused bool
	// waits is true if an outdated leaf waits for more than its place.
	waits bool
}

// groups sums up the units, from the leaves up.
func (d *decision) groups(holds []Hold) []Group {
	d.sums = make([]sum, len(d.nodes))
	for _, n := range d.steps {
		d.sums[n.index].steps++
	}

	groups := 0

	for _, n := range slices.Backward(d.nodes) {
		s := &d.sums[n.index]
		d.sumUp(n, s)
		groups += one(!n.isLeaf())

		if n.parent != nil {
			d.sums[n.parent.index].add(s)
		}
	}

	list := make([]Group, 0, groups)

	for _, n := range d.nodes {
		if !n.isLeaf() {
			list = append(list, d.group(n, holds))
		}
	}

	return list
}

func (s *sum) add(other *sum) {
	s.steps += other.steps
	s.holds += other.holds
	s.rollsBack = s.rollsBack || other.rollsBack
	s.moving = s.moving || other.moving
	s.failed = s.failed || other.failed
	s.paused = s.paused || other.paused
	s.waits = s.waits || other.waits
}

// sumUp adds what the plan says of the unit itself.
func (d *decision) sumUp(n *node, s *sum) {
	s.rollsBack = s.rollsBack || n.rollsBack() || d.isRefusedForGood(n)
	if n.hold == nil {
		return
	}

	s.holds++
	s.moving = s.moving || n.isUpdating()
	s.failed = s.failed || needsUser(n.hold.reason)
	s.paused = s.paused || n.hold.reason == ReasonPaused
	s.waits = s.waits || n.outdated && !queues(n.hold.reason) && !d.isOwnBlock(n, n.hold)
}

func (d *decision) group(n *node, holds []Hold) Group {
	s := &d.sums[n.index]
	return Group{
		Path: d.path(n), Phase: s.phase(), Counts: n.counts(), Steps: s.steps,
		Complete: n.complete, Failing: n.tooMany(), Free: !s.waits,
		AtGateBefore: d.isAtGateBefore(n), AtGateAfter: n.isAtGateAfter(),
		AtGateDuring: d.isAtGateDuring(n, s.steps),
		Holds:        holds[n.held : n.held+s.holds : n.held+s.holds],
	}
}

// isAtGateBefore tells whether a gate before the unit is what keeps some leaf beneath. That
// is read from the holds, so that it changes only when these do.
func (d *decision) isAtGateBefore(n *node) bool {
	if n.gate(Before) == nil || n.halt == nil || !n.halt.isGate() || n.parent != nil && n.parent.halt == n.halt {
		return false
	}

	return slices.ContainsFunc(d.beneath(n), func(below *node) bool { return below.hold == n.halt })
}

// isGate tells whether a gate before a unit, or one during it, is the cause.
func (c *cause) isGate() bool { return c.rank == rankGate || c.rank == rankRefused }

// isAtGateAfter tells whether a gate after the unit is what keeps it.
func (n *node) isAtGateAfter() bool {
	return n.settles() && n.hold != nil && n.hold.reason.IsGate()
}

// isAtGateDuring tells whether the unit rolls: something beneath is moved now or has been, it is
// not complete, and no earlier one of a series is to be complete first.
func (d *decision) isAtGateDuring(n *node, steps int) bool {
	if n.complete || n.isEmpty() || steps == 0 && n.updated == 0 {
		return false
	}

	for a := n; a != nil; a = a.parent {
		if d.outOfOrder(a) != nil {
			return false
		}
	}

	return true
}

// isRefusedForGood tells whether a gate keeps the unit whose refusal wants the former revision
// back.
func (d *decision) isRefusedForGood(n *node) bool {
	return d.isAtGateBefore(n) && n.gate(Before).returns() || n.isAtGateAfter() && n.gate(After).returns()
}

// Group returns what the plan says of the unit at a path as a whole; the zero Group
// if there is no such unit, or nothing can be beneath it.
func (p Plan) Group(path ...string) Group {
	for i := range p.Groups {
		if slices.Equal(p.Groups[i].Path, path) {
			return p.Groups[i]
		}
	}

	return Group{}
}

// phase is the first that applies.
func (s *sum) phase() Phase {
	switch {
	case s.holds == 0 && s.steps == 0:
		return PhaseComplete
	case s.rollsBack:
		return PhaseRollingBack
	case s.steps > 0 || s.moving:
		return PhaseProgressing
	case s.failed:
		return PhaseFailed
	case s.paused:
		return PhasePaused
	default:
		return PhaseWaiting
	}
}

func (d *decision) any(is func(*node) bool) bool {
	return slices.ContainsFunc(d.nodes, is)
}

// isUpdating tells whether a leaf has moved and is getting ready.
func (n *node) isUpdating() bool {
	return n.hold != nil && n.isLeaf() && !n.outdated && !n.up && (moves(n.hold.reason) || n.hasCause() && n.isMoving())
}

// hasCause tells whether the reason of a leaf's Hold is the one that the ring has given.
func (n *node) hasCause() bool {
	return n.unit.Leaf.Cause != "" && n.hold.reason == n.unit.Leaf.Cause
}

// moves tells whether what waits for such a reason of its own is getting ready.
func moves(r Reason) bool {
	return r == ReasonProgressing || r == ReasonSoak
}

// needsUser tells whether such a reason does not pass automatically.
func needsUser(r Reason) bool {
	return r == ReasonFailed || r == ReasonDeadline || r == ReasonGateRefused
}

// queues tells whether what waits for such a reason waits for its place alone.
func queues(r Reason) bool {
	return r == ReasonBudget || r == ReasonRate || r == ReasonRetry
}
