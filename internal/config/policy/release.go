package policy

import (
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/rollout"
)

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
