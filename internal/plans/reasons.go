package plans

import (
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/rollout"
)

// The ring's own reasons for waiting.
const (
	// ReasonNoVersion: the OperatorVersion is not there.
	// Action: install the OperatorVersion that the message names, or name one that is.
	ReasonNoVersion rollout.Reason = "OperatorVersionMissing"
	// ReasonNoContent: what the plan began with is not there any more.
	// Action: abandon the plan: spillway plan abandon.
	ReasonNoContent rollout.Reason = "ContentMissing"
	// ReasonUnseen: something may not be looked at.
	ReasonUnseen = reasons.NotPermitted
	// ReasonForeign holds a task back: an object is there already, and is not the
	// Instance's.
	ReasonForeign = reasons.Foreign
)

// The reasons of the conditions, besides those of Holds. PlanInProgress and
// PlanInFatalError are the predecessor's words.
const (
	// ReasonInvalid: something in the Instance cannot be followed.
	ReasonInvalid = reasons.Invalid
	// ReasonInProgress: a plan runs; the message says what it waits for.
	// Action: nothing, it passes by itself; if it does not, the message says what is lacking.
	ReasonInProgress rollout.Reason = "PlanInProgress"
	// ReasonFatal: a plan has ended without being complete, and is not tried again by
	// itself.
	// Action: correct what the message says and try again by spillway plan retry, or
	// change the Instance.
	ReasonFatal rollout.Reason = "PlanInFatalError"
	// ReasonIdle: there is nothing to do, and all is well.
	ReasonIdle = reasons.Complete
	// ReasonUnready: there is nothing to do, and not all is well.
	// Action: fix the workload that the message names.
	ReasonUnready rollout.Reason = "WorkloadNotReady"
)

// The reasons of the Events.
const (
	// EventBegan: a plan has begun.
	// Action: nothing, it is news.
	EventBegan rollout.Reason = "PlanBegan"
	// EventComplete: a plan is complete.
	// Action: nothing, it is news.
	EventComplete rollout.Reason = "PlanComplete"
	// EventFailed: a plan has failed, was given up, or was superseded by another.
	// Action: nothing of a plan that was given up or superseded; otherwise correct what
	// the message says and try again by spillway plan retry.
	EventFailed rollout.Reason = "PlanFailed"
	// EventStep: a step has failed for the time being.
	// Action: correct what the message says; the step is tried again by itself.
	EventStep rollout.Reason = "StepFailed"
	// EventStalled: something in the Instance cannot be followed.
	EventStalled = reasons.Invalid
	// EventNotPermitted: something may not be looked at or watched.
	EventNotPermitted = reasons.NotPermitted
)
