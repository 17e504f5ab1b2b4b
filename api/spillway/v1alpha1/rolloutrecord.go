package v1alpha1

import "github.com/spillway-dev/spillway/api/record"

// The record of a rollout is shared by the kinds of all groups.
type (
	RolloutRecord     = record.Rollout
	RolloutCounts     = record.Counts
	RolloutCause      = record.Cause
	RolloutReference  = record.Reference
	PastRolloutRecord = record.Past
)
