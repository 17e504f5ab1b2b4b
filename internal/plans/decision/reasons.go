package decision

import (
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/rollout"
)

// The ring's own reasons for waiting.
const (
	// ReasonNoVersion: the OperatorVersion does not exist, or is of another namespace that does not share it.
	// Action: install the OperatorVersion that the message names, or name one that exists.
	ReasonNoVersion rollout.Reason = "OperatorVersionNotFound"
	// ReasonNoContent: the content that the plan began with no longer exists.
	// Action: abandon the plan: spillway plan abandon.
	ReasonNoContent rollout.Reason = "ContentNotFound"
)

// The reasons of the conditions, besides those of Holds. PlanInProgress and
// PlanInFatalError are those of KUDO.
const (
	// ReasonInvalid: a field or an annotation of the Instance is invalid.
	ReasonInvalid = reasons.Invalid
	// ReasonInProgress: a plan is running; the message says what it waits for.
	// Action: nothing, it continues automatically; if it does not, fix what the message names.
	ReasonInProgress rollout.Reason = "PlanInProgress"
	// ReasonFatal: a plan failed or was stopped, and is not retried automatically.
	// Action: fix what the message names and run spillway plan retry, or change the
	// Instance.
	ReasonFatal rollout.Reason = "PlanInFatalError"
	// ReasonIdle: no plan is running and all workloads are ready.
	ReasonIdle = reasons.Complete
	// ReasonDeleting: the Instance is being deleted, and no plan is running.
	ReasonDeleting = reasons.Deleting
	// ReasonDrifted: other clients have changed or deleted objects that plans have applied.
	// Action: run spillway package diff instance/NAME to see the difference, and run the plan
	// again with spillway plan trigger to undo it, set spec.drift to Correct, or change the
	// parameters; where it is corrected and changed again, stop the client that the message names.
	ReasonDrifted rollout.Reason = "ObjectsDiffer"
	// ReasonUnready: no plan is running and a workload is not ready.
	// Action: fix the workload that the message names.
	ReasonUnready rollout.Reason = "WorkloadNotReady"
)

// The reasons of the Events.
const (
	// EventStarted: a plan has started, in the words of KUDO.
	// Action: nothing, for information only.
	EventStarted rollout.Reason = "PlanStarted"
	// EventComplete: a plan is complete, in the words of KUDO.
	// Action: nothing, for information only.
	EventComplete rollout.Reason = "PlanFinished"
	// EventFailed: a plan failed, was abandoned, or was superseded by another.
	// Action: nothing if the plan was abandoned or superseded; otherwise fix what the
	// message names and run spillway plan retry.
	EventFailed rollout.Reason = "PlanFailed"
	// EventStep: a step failed and will be retried.
	// Action: fix what the message names; the step is retried automatically.
	EventStep rollout.Reason = "StepFailed"
	// EventStalled: a field or an annotation of the Instance is invalid.
	EventStalled = reasons.Invalid
	// EventCorrected: an object that another client had changed or deleted was applied again, as
	// spec.drift of the Instance says.
	// Action: nothing, for information only; find out who changes it if that happens often.
	EventCorrected rollout.Reason = "DriftCorrected"
	// EventDropped: an object was applied without fields that its kind does not have.
	// Action: fix the name or the place of the fields in the template; spillway lint finds them.
	EventDropped rollout.Reason = "UnknownFields"
	// EventUnchecked: a CustomResourceDefinition was changed, and the manager could not check all
	// objects of the kind by its new schema.
	// Action: let the manager list the kind, by a ClusterRole with the label that the page on plans
	// names, or have the Instance act as an account that may.
	EventUnchecked rollout.Reason = "ObjectsUnchecked"
	// EventRefused: the API server does not accept a write to the Instance itself, such as
	// that of its finalizer.
	EventRefused = reasons.WriteRefused
	// EventNotPermitted: the manager has no permission to read or watch an object.
	EventNotPermitted = reasons.NotPermitted
)
