package zones

import (
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/rollout"
)

// The ring's own reasons for a Hold.
const (
	// ReasonInvalid: something cannot be understood.
	ReasonInvalid = reasons.Invalid
	// ReasonNotObserved: a StatefulSet's status does not speak of its spec yet.
	// Action: nothing, it passes automatically; if it does not, see that the controller
	// manager of the cluster runs.
	ReasonNotObserved rollout.Reason = "StatusNotObserved"
	// ReasonStaleView: this view is older than what was decided upon last.
	// Action: nothing, it passes automatically when the watches have caught up.
	ReasonStaleView rollout.Reason = "StaleView"
	// ReasonDeleting: the StatefulSet is being deleted.
	ReasonDeleting = reasons.Deleting
	// ReasonStuck: a Pod is not ready, and the group keeps such Pods.
	// Action: make the Pod ready or delete it, or set spec.stuckPods of the group to
	// Replace.
	ReasonStuck rollout.Reason = "StuckPodKept"
	// ReasonRipening: a Pod has not been ready for long enough.
	// Action: nothing, it passes automatically; minReadySeconds says how long it takes.
	ReasonRipening rollout.Reason = "MinReadySeconds"
	// ReasonHeld: a Pod would come back at the revision that it has, because the
	// partition holds its zone.
	// Action: nothing if the turn of its zone comes; otherwise fix what the zones before
	// it wait for, or make the Pod ready at the revision that it has.
	ReasonHeld rollout.Reason = "HeldByPartition"
	// ReasonWindow: the group rolls within maintenance windows alone, and none is open.
	ReasonWindow = reasons.OutsideWindow
)

// The reasons of Events that are no Holds.
const (
	// EventZoneStarted: a zone begins to move to a revision.
	// Action: nothing, it is news.
	EventZoneStarted rollout.Reason = "ZoneStarted"
	// EventZoneDone: all Pods of a zone are up to date and available.
	// Action: nothing, it is news.
	EventZoneDone rollout.Reason = "ZoneDone"
	// EventNameless: the name of a group cannot be that of an object, so that there is
	// no RolloutGroup, and nothing of the group rolls.
	// Action: name the group in the label rollout-group of its StatefulSets as the
	// message says.
	EventNameless rollout.Reason = "InvalidRolloutGroup"
)
