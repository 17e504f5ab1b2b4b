package rollout

import "slices"

// phase sums up the tree: the first that applies.
func (d *decision) phase(holds int) Phase {
	switch {
	case holds == 0 && len(d.steps) == 0:
		return PhaseComplete
	case d.any((*node).rollsBack):
		return PhaseRollingBack
	case len(d.steps) > 0 || d.any((*node).isOnItsWay):
		return PhaseProgressing
	case d.any((*node).needsSomebody):
		return PhaseFailed
	case d.any((*node).isPaused):
		return PhasePaused
	default:
		return PhaseWaiting
	}
}

func (d *decision) any(is func(*node) bool) bool {
	return slices.ContainsFunc(d.nodes, is)
}

// isOnItsWay tells whether a leaf has moved and is getting ready.
func (n *node) isOnItsWay() bool {
	if n.hold == nil || !n.isLeaf() || n.outdated || n.up {
		return false
	}

	return n.hold.reason == ReasonProgressing || n.hold.reason == ReasonSoak
}

func (n *node) needsSomebody() bool {
	if n.hold == nil {
		return false
	}

	switch n.hold.reason {
	case ReasonFailed, ReasonDeadline, ReasonGateRefused:
		return true
	default:
		return false
	}
}

func (n *node) isPaused() bool {
	return n.hold != nil && n.hold.reason == ReasonPaused
}
