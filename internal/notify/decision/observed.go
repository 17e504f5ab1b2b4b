package decision

import (
	"time"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
)

// State is how a rollout goes.
type State int

// The states.
const (
	Running State = iota
	// Stopped rollouts do not continue until a user acts.
	Stopped
	// Ended rollouts are complete, or nothing more is done for them.
	Ended
	// Returned rollouts have failed, and what was before is rolled out again.
	Returned
)

// The outcomes of rollouts of which no status says anything any more.
const (
	OutcomeDeleted    = "Deleted"
	OutcomeComplete   = "Complete"
	OutcomeSuperseded = "Superseded"
	// outcomeUnknown is that of a rollout that no history has any more.
	outcomeUnknown = "Unknown"
)

// Rollout is a rollout, as the status of its object says.
type Rollout struct {
	// ID tells it from the others of its object, together with StartedAt: a number, a
	// revision, a plan.
	ID string
	// StartedAt and EndedAt are zero if they are not known.
	StartedAt, EndedAt time.Time
	State              State
	// Reason is the reason in the status, or how the rollout ended.
	Reason string
	// Sentence is why, as the status says.
	Sentence string
	// At is since when it is stopped, zero if that is not known.
	At time.Time
	// Trace is the id of its trace, empty if it has none.
	Trace string
}

// Subject is an object with rollouts.
type Subject struct {
	// Key identifies it for as long as it exists.
	Key string
	// Ring, Kind and Name are those in messages.
	Ring, Kind, Name string
	// Rollouts are the last ones, the oldest first.
	Rollouts []Rollout
}

// Gone is a subject of which only the record is left.
type Gone struct {
	// Ring and Kind are those in messages.
	Ring, Kind string
	// Outcome is how its rollout has ended.
	Outcome string
}

// Observed is what is decided from.
type Observed struct {
	Now      time.Time
	Notifier *v1alpha1.Notifier
	Subjects []Subject
	// Down are the StatefulSets that are down on purpose, in order; DownUntil is when that
	// changes automatically, zero for never.
	Down      []string
	DownUntil time.Time
	// Missing says what became of a subject that is not among these, by its key; nil if that
	// is not known.
	Missing func(key string) *Gone
}
