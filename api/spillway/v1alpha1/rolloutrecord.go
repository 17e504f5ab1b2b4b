package v1alpha1

import "github.com/spillway-dev/spillway/api/record"

// These are the types of a record of a rollout, which the kinds of all groups share.
type (
	// RolloutRecord is a record.
	RolloutRecord = record.Rollout
	// RolloutCounts are its numbers of units.
	RolloutCounts = record.Counts
	// RolloutCause is why units of it are not complete.
	RolloutCause = record.Cause
	// RolloutReference refers to an object.
	RolloutReference = record.Reference
	// PastRolloutRecord is a rollout that is over.
	PastRolloutRecord = record.Past
)
