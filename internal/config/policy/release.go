package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/ring"
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
	// Reason is the main reason why it is not complete, and Waits the same as a sentence, which Cause has in parts.
	Reason rollout.Reason
	Waits  string
	Cause  rollout.Cause
	// Since is since when it is under way, and Until when what it waits for ends; zero if that is not known.
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
	if r.Cause.Subject == UnitOf(r.Stages[i].Name) {
		return rollout.Cause{Does: r.Cause.Does, Why: r.Cause.Why}.Sentence(stage, 0)
	}
	return stage + ": " + r.Waits
}

// UnitOf is what a stage is called among units.
func UnitOf(stage string) string { return "stage " + stage }

// Explanation is the state of a policy, and of its releases that are under way, as its status says.
type Explanation struct {
	// Kind, Namespace and Name identify it, as in [Policy].
	Kind, Namespace, Name string
	// Problem is why it is not valid, empty if it is.
	Problem string
	// Pause is the wish of a user that nothing is rolled, nil if there is none.
	Pause *rollout.Pause
	// Unobserved is true if the manager has not observed it as it is.
	Unobserved bool
	Releases   []Release
}

// Explain returns the state of each policy, in the order in which they count.
func (s Set) Explain() []Explanation {
	all := make([]Explanation, 0, len(s))
	for _, p := range s {
		e := Explanation{Kind: p.Kind, Namespace: p.Namespace, Name: p.Name, Problem: p.Problem, Pause: p.Pause}
		status := p.status()
		e.Unobserved = status.ObservedGeneration != p.object.GetGeneration()
		for i := range status.Releases {
			e.Releases = append(e.Releases, recorded(&status.Releases[i]))
		}
		all = append(all, e)
	}
	return all
}

// recorded is a release as a status has it.
func recorded(row *v1alpha1.ConfigRelease) Release {
	r := Release{
		Release: content.ReleaseNamed(row.Object, row.Namespace), Namespace: row.Namespace, Progress: progressIn(row.Phase, row.Updated),
		Waits: row.WaitingFor, RolledBack: int(row.RolledBack), Since: ring.TimeOf(row.StartedAt),
	}
	if c := row.Cause; c != nil {
		r.Reason, r.Cause, r.Until = rollout.Reason(c.Reason), ring.CauseOf(c), ring.TimeOf(c.Until)
	}
	for i := range row.Stages {
		s := &row.Stages[i]
		r.Stages = append(r.Stages, StageProgress{s.Name, progressIn(s.Phase, s.Updated)})
	}
	return r
}

// progressIn is how far a row has come: "1/5".
func progressIn(phase, updated string) Progress {
	p := Progress{Phase: rollout.Phase(phase)}
	if _, err := fmt.Sscanf(updated, "%d/%d", &p.Updated, &p.Of); err != nil {
		p.Updated, p.Of = 0, 0
	}
	return p
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
