package act

import (
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/rollout"
)

// The reasons of the Events that commands record.
const (
	// ReasonPaused: a user has paused a rollout.
	ReasonPaused = rollout.ReasonPaused
	// ReasonResumed: a user has resumed a paused rollout.
	// Action: nothing, for information only.
	ReasonResumed rollout.Reason = "Resumed"
	// ReasonRetried: a user has retried a rollout that had failed.
	ReasonRetried = reasons.Retried
	// ReasonTriggered: a user has triggered a plan of an Instance.
	// Action: nothing, for information only.
	ReasonTriggered rollout.Reason = "Triggered"
	// ReasonAbandoned: a user has abandoned the plan that was running.
	// Action: to continue from the step that failed: spillway plan retry.
	ReasonAbandoned rollout.Reason = "Abandoned"
	// ReasonPinned: a user has pinned a cluster at its revision.
	// Action: to let it follow the rollout again: spillway fleet unpin.
	ReasonPinned rollout.Reason = "Pinned"
	// ReasonUnpinned: a user lets a pinned cluster follow the rollout again.
	// Action: nothing, for information only.
	ReasonUnpinned rollout.Reason = "Unpinned"
	// ReasonRolledBackTo: a user has set the revision of a module or a workload, or returned to
	// the revision of the template of a module, or an Instance to an earlier execution.
	// Action: to follow the template of a module again: spillway fleet rollback --to latest; to
	// roll a workload for the present config: spillway retry for the object.
	ReasonRolledBackTo rollout.Reason = "RolledBackTo"
)
