package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

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
	// Since is since when it waits, and Until when that ends; zero if that is not known.
	Since, Until time.Time
	Stages       []StageProgress
	// RolledBack is how many workloads have their previous config back.
	RolledBack int
}

// Text says which stage the release has come to, and why it is not complete: "stage 1 of 2
// (first): deployment/app1 is next to roll".
func (r *Release) Text() string {
	i := slices.IndexFunc(r.Stages, func(s StageProgress) bool { return s.Phase != rollout.PhaseComplete })
	if i < 0 {
		return r.Waits
	}
	stage := fmt.Sprintf("stage %d of %d (%s)", i+1, len(r.Stages), r.Stages[i].Name)
	if what, isOfStage := strings.CutPrefix(r.Waits, "stage "+r.Stages[i].Name+" is "); isOfStage {
		return stage + " is " + what
	}
	return stage + ": " + r.Waits
}

// Explanation is the state of a policy, and of its releases that are under way.
type Explanation struct {
	// Kind, Namespace and Name identify it, as in [Policy].
	Kind, Namespace, Name string
	// Problem is why it is not valid, empty if it is.
	Problem string
	// Pause is the wish of a user that nothing is rolled, nil if there is none.
	Pause *rollout.Pause
	Report
}

// Explain returns the state of each policy, in the order in which they count.
func (s Set) Explain(reports map[*Policy]*Report) []Explanation {
	all := make([]Explanation, 0, len(s))
	for _, p := range s {
		e := Explanation{Kind: p.Kind, Namespace: p.Namespace, Name: p.Name, Problem: p.Problem, Pause: p.Pause}
		if report := reports[p]; report != nil {
			e.Report = *report
		}
		all = append(all, e)
	}
	return all
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
