package rollout

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
		case g.When != when || g.Verdict == Passed:
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
		return &cause{reason: ReasonGateRefused, message: n.name() + " is stopped: " + g.clause(), since: g.Since}
	}

	return &cause{reason: ReasonGate, message: n.waits() + g.clause(), since: g.Since}
}
