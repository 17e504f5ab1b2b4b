package decision

import (
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/rollout"
)

// The ring's own reasons for a Hold.
const (
	// ReasonInvalid: something cannot be understood.
	ReasonInvalid = reasons.Invalid
	// ReasonNotObserved: the status of a StatefulSet does not reflect its spec yet.
	// Action: nothing, the wait ends automatically; if it does not, check that
	// kube-controller-manager runs.
	ReasonNotObserved rollout.Reason = "StatusNotObserved"
	// ReasonStaleView: the cache of the manager is older than its last decision.
	// Action: nothing, the wait ends automatically when the watches have caught up.
	ReasonStaleView rollout.Reason = "StaleView"
	// ReasonDeleting: the StatefulSet is being deleted.
	ReasonDeleting = reasons.Deleting
	// ReasonStuck: a Pod is not ready, and spec.stuckPods of the group is Keep.
	// Action: make the Pod ready or delete it, or set spec.stuckPods of the group to
	// Replace.
	ReasonStuck rollout.Reason = "StuckPodKept"
	// ReasonRipening: a Pod has not been ready for minReadySeconds yet.
	// Action: nothing, the wait ends automatically.
	ReasonRipening rollout.Reason = "MinReadySeconds"
	// ReasonHeld: a Pod would be recreated at its present revision, because the partition
	// holds its zone.
	// Action: nothing if the turn of its zone comes; otherwise fix what the zones before
	// it wait for, or make the Pod ready at its present revision.
	ReasonHeld rollout.Reason = "HeldByPartition"
	// ReasonWindow: the group rolls within maintenance windows alone, and none is open.
	ReasonWindow = reasons.OutsideWindow
)
