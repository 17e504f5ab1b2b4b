package command

import (
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/rollout"
)

// The reasons of the Events that a person's commands leave.
const (
	// ReasonPaused: somebody has paused a group.
	ReasonPaused = rollout.ReasonPaused
	// ReasonSuspended: somebody has suspended a module.
	ReasonSuspended = reasons.Suspended
	// ReasonResumed: somebody has let go on what was paused or suspended.
	// Action: nothing, it is news.
	ReasonResumed rollout.Reason = "Resumed"
	// ReasonRetried: somebody has given a rollout that had failed another try.
	ReasonRetried = reasons.Retried
	// ReasonTriggered: somebody has asked for a plan of an Instance.
	// Action: nothing, it is news.
	ReasonTriggered rollout.Reason = "Triggered"
	// ReasonAbandoned: somebody has given up the plan that ran.
	// Action: to go on from the step that failed: spillway plan retry.
	ReasonAbandoned rollout.Reason = "Abandoned"
	// ReasonHeld: somebody has pinned a cluster at its revision.
	// Action: to let it follow again: spillway fleet release.
	ReasonHeld rollout.Reason = "Held"
	// ReasonReleased: somebody lets a cluster follow again that was pinned.
	// Action: nothing, it is news.
	ReasonReleased rollout.Reason = "Released"
	// ReasonRolledBackTo: somebody has sent a module to another revision, or forward
	// again to what its template says.
	// Action: to follow the template again: spillway fleet rollback --to latest.
	ReasonRolledBackTo rollout.Reason = "RolledBackTo"
)
