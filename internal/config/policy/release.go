package policy

import (
	"fmt"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/rollout"
)

// Report is what there is to say of a policy.
type Report struct {
	// Releases are those that it is for and that are not complete.
	Releases []Release
	// Unpinned are workloads that it wants to have pins, or to return, and that have none.
	Unpinned Unpinned
}

// Unpinned are workloads without pins on which a part of a policy has no effect.
type Unpinned struct {
	Workloads int
	// First is one of them, and Why what has no effect on it, as a sentence.
	First, Why string
}

// Add adds a workload.
func (u *Unpinned) Add(workload, why string) {
	if u.Workloads++; u.Workloads == 1 {
		u.First, u.Why = workload, why
	}
}

func (u *Unpinned) text() string {
	text := u.First + ": " + u.Why
	if u.Workloads > 1 {
		text += fmt.Sprintf("; and %d more", u.Workloads-1)
	}
	return text
}

// Release is how far a release has come that a policy is for, in one namespace.
type Release struct {
	content.Release

	Namespace string
	Progress
	// Reason is the main reason why it is not complete, and Waits the same as a sentence.
	Reason rollout.Reason
	Waits  string
	Stages []StageProgress
}

// Progress is how far some workloads have come. A group of zones is one of them.
type Progress struct {
	Phase rollout.Phase
	// Updated is how many have the content and are ready, of how many.
	Updated, Of int
}

// StageProgress is how far a stage has come.
type StageProgress struct {
	Name string
	Progress
}
