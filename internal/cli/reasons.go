package cli

import (
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/rollout"
)

// The reasons of the Events that a person's commands leave.
const (
	// reasonPaused: somebody has paused a group.
	reasonPaused = rollout.ReasonPaused
	// reasonSuspended: somebody has suspended a module.
	reasonSuspended = reasons.Suspended
	// reasonResumed: somebody has let go on what was paused or suspended.
	// Action: nothing, it is news.
	reasonResumed rollout.Reason = "Resumed"
	// reasonRetried: somebody has given a rollout that had failed another try.
	reasonRetried = reasons.Retried
	// reasonTriggered: somebody has asked for a plan of an Instance.
	// Action: nothing, it is news.
	reasonTriggered rollout.Reason = "Triggered"
	// reasonAbandoned: somebody has given up the plan that ran.
	// Action: to go on from the step that failed: spillway plan retry.
	reasonAbandoned rollout.Reason = "Abandoned"
	// reasonHeld: somebody has pinned a cluster at its revision.
	// Action: to let it follow again: spillway fleet release.
	reasonHeld rollout.Reason = "Held"
	// reasonReleased: somebody lets a cluster follow again that was pinned.
	// Action: nothing, it is news.
	reasonReleased rollout.Reason = "Released"
	// reasonRolledBackTo: somebody has sent a module to another revision, or forward
	// again to what its template says.
	// Action: to follow the template again: spillway fleet rollback --to latest.
	reasonRolledBackTo rollout.Reason = "RolledBackTo"
)
