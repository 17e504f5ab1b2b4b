package scaling

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/ring"
)

// Observed is one group, read at one moment. It does not change.
type Observed struct { //nolint:recvcheck // tables of tests build it by values
	Now  time.Time
	Name string
	// Status is that of the RolloutGroup. HasGroup is false if there is none, so that
	// there is no lock to take either.
	Status   v1alpha1.RolloutGroupStatus
	HasGroup bool
	Sets     []Set
	// Refusals are writes and calls that failed, by the name of the StatefulSet.
	Refusals ring.Refusals
}

// Set is what matters of a StatefulSet.
type Set struct { //nolint:recvcheck // tables of tests build it by values
	Name            string
	UID             types.UID
	ResourceVersion string
	Deleting        bool
	// FirstOrdinal is spec.ordinals.start.
	FirstOrdinal, Replicas int
	// ReadyReplicas is that of the status; Settled is true if the status speaks of the
	// spec.
	ReadyReplicas int
	Settled       bool
	// Down names a replica that is down, and its state; empty if none is. It is known
	// only where some set is to have fewer replicas.
	Down string
	// TakesBack is true if no node ever had the Pods that the set is to lose. It is known only
	// where it is to lose some.
	TakesBack bool
	// Unprepared says which replica a delayed downscale cannot prepare though it may have
	// data; empty if there is none.
	Unprepared string
	Settings   Settings
	// Scaled is what was noted when replicas were written last, nil if nothing was.
	Scaled *Scaled
	// Mirrored is what the mirrored object says, nil if none is mirrored.
	Mirrored *Mirrored
	// Answers are what the Pods have answered, by ordinal. They have all that is known,
	// also of Pods that are not to go any more.
	Answers map[int]Answer
}

// Mirrored is an object that is mirrored.
type Mirrored struct {
	Replicas, StatusReplicas int
	// UID and ResourceVersion are the precondition of a write.
	UID             types.UID
	ResourceVersion string
	// Problem is why nothing is known, empty if something is.
	Problem string
}

// Answer is what a Pod answered to the last call.
type Answer struct {
	// Stays is true once it knows that it stays.
	Stays bool
	// Since is since when it is prepared to go. Zero with Asked means that there was no
	// Pod that could prepare.
	Since time.Time
	// Asked is when it answered.
	Asked time.Time
	// AsOf is set where there was no Pod to call: the resourceVersion of the set. When
	// that has changed, there may be one.
	AsOf string
}

// set is the one of a name, nil if there is none.
func (o *Observed) set(name string) *Set {
	for i := range o.Sets {
		if o.Sets[i].Name == name {
			return &o.Sets[i]
		}
	}
	return nil
}
