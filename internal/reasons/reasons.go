package reasons

import "github.com/spillway-dev/spillway/rollout"

// The reasons that more than one ring gives, in the same word for the same thing.
const (
	// Complete: everything is at its revision, and healthy.
	// Action: nothing, this is the desired state.
	Complete rollout.Reason = "Complete"
	// Invalid: the object, or an annotation of it, is invalid, and nothing of it is
	// updated.
	// Action: correct the field or annotation that the message names.
	Invalid rollout.Reason = "InvalidInput"
	// NotPermitted: the object depends on something that Spillway may not read.
	// Action: share the object, add its namespace to --namespaces, or grant the permission
	// that the message names.
	NotPermitted rollout.Reason = "NotPermitted"
	// Foreign: an object with the required name exists already, and has another owner.
	// Action: rename or delete one of the two, or let it be adopted as the message says.
	Foreign rollout.Reason = "ForeignObject"
	// WriteRefused: the API server refuses a write: it is not permitted or not valid, a
	// quota is exhausted, or a policy or a webhook refuses it.
	// Action: change what is refused as the message says; the write is retried
	// automatically. If a cluster has an older version of the kind, update Spillway there.
	WriteRefused rollout.Reason = "WriteRefused"
	// Deleting: the object is being deleted.
	// Action: nothing, deletion normally completes without help; if it does not, check the
	// finalizers of the object that the message names.
	Deleting rollout.Reason = "Deleting"
	// Terminating: an object with the required name is being deleted.
	// Action: nothing, deletion normally completes without help; if it does not, check the
	// finalizers of the object that the message names.
	Terminating rollout.Reason = "Terminating"
	// NotObserved: a controller has not observed the present state of an object.
	// Action: check that the controller runs.
	NotObserved rollout.Reason = "NotObserved"
	// OutsideWindow: no maintenance window is open.
	// Action: wait for the window that the message names, or change the windows in the
	// spec.
	OutsideWindow rollout.Reason = "OutsideWindow"
	// Suspended: a user has suspended the object, such as a Kustomization of Flux.
	// Action: resume it; for a Kustomization: flux resume kustomization.
	Suspended rollout.Reason = "Suspended"
	// RolloutStuck: a rollout cannot continue until a user acts.
	// Action: do what the message says; spillway explain shows the root cause.
	RolloutStuck rollout.Reason = "RolloutStuck"
	// RolloutPaused: a user has paused a rollout.
	// Action: resume it: spillway resume.
	RolloutPaused rollout.Reason = "RolloutPaused"
	// RolloutResumed: a rollout that was stuck or paused continues.
	// Action: nothing, for information only.
	RolloutResumed rollout.Reason = "RolloutResumed"
	// Approved: a user has approved a gate.
	// Action: nothing, for information only; spillway refuse reverts it while the rollout is
	// at the gate.
	Approved rollout.Reason = "Approved"
	// Refused: a user has refused a gate, and the rollout stops there.
	// Action: to approve it after all: spillway approve.
	Refused rollout.Reason = "Refused"
	// Retried: a user has retried a rollout that had failed.
	// Action: nothing, for information only.
	Retried rollout.Reason = "Retried"
)
