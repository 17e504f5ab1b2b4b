package reasons

import "github.com/spillway-dev/spillway/rollout"

// What more than one ring says, in the same word for the same thing.
const (
	// Complete: everything is where it should be, and well.
	// Action: nothing, this is how it should be.
	Complete rollout.Reason = "Complete"
	// Invalid: the object, or an annotation of it, cannot be understood or followed,
	// and nothing of it moves.
	// Action: change the field that the message names as it says.
	Invalid rollout.Reason = "InvalidInput"
	// NotPermitted: something that it depends on may not be looked at.
	// Action: share the object, add its namespace to --namespaces, or grant the
	// permission that the message names.
	NotPermitted rollout.Reason = "NotPermitted"
	// Foreign: an object of the name that is needed is there already, and is
	// somebody else's.
	// Action: rename or delete one of the two, or have it taken over as the message says.
	Foreign rollout.Reason = "ForeignObject"
	// WriteRefused: the API server does not accept what has to be written: it is not
	// permitted or not valid, there is no room in a quota, or a policy or a webhook
	// refuses it.
	// Action: change what is refused as the message says; it is tried again by itself. Where
	// a cluster knows an older version of the kind, update Spillway there.
	WriteRefused rollout.Reason = "WriteRefused"
	// Deleting: it is being deleted.
	// Action: nothing, it passes by itself; if it does not, look at the finalizers of
	// what the message names.
	Deleting rollout.Reason = "Deleting"
	// Terminating: what has the name that it needs is being deleted.
	// Action: nothing, it passes by itself; if it does not, look at the finalizers of
	// what the message names.
	Terminating rollout.Reason = "Terminating"
	// OutsideWindow: no maintenance window is open.
	// Action: wait for the window that the message names, or change the windows in the
	// spec.
	OutsideWindow rollout.Reason = "OutsideWindow"
	// Suspended: somebody has suspended it: a Module by spec.suspend, or a
	// Kustomization of Flux.
	// Action: resume it: spillway fleet resume for a Module, flux resume kustomization for
	// a Kustomization.
	Suspended rollout.Reason = "Suspended"
	// RolloutStuck: a rollout cannot go on without somebody.
	// Action: do what the message says; spillway explain has the whole of it.
	RolloutStuck rollout.Reason = "RolloutStuck"
	// RolloutPaused: a rollout stands still because somebody wants it to.
	// Action: resume it: spillway resume for a group, spillway fleet resume for a Module.
	RolloutPaused rollout.Reason = "RolloutPaused"
	// RolloutResumed: a rollout that was stuck or paused goes on.
	// Action: nothing, it is news.
	RolloutResumed rollout.Reason = "RolloutResumed"
	// Retried: somebody has given a rollout that had failed another try.
	// Action: nothing, it is news.
	Retried rollout.Reason = "Retried"
)
