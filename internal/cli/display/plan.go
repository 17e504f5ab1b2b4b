package display

import (
	"fmt"
	"io"
	"time"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/plans"
)

// Plan writes one sentence, then the tree of phases and steps.
func Plan(w io.Writer, s Style, e plans.Explanation, now time.Time) {
	PlanTree(w, s, e, now, EveryPhase)
}

// EveryPhase unfolds all phases.
func EveryPhase(*v1beta1.PhaseStatus) bool { return true }

// PlanTree is writePlan, with the steps of those phases alone that are unfolded.
func PlanTree(w io.Writer, s Style, e plans.Explanation, now time.Time, unfolded func(*v1beta1.PhaseStatus) bool) {
	_, _ = fmt.Fprintf(w, "%s.\n\n", s.Fold(e.Sentence, 0))
	f := NewFacts(w, s)
	writeSteps(f, &e, now, unfolded)
	f.Write()
}

// writeSteps writes the tree alone.
func writeSteps(f *Facts, e *plans.Explanation, now time.Time, unfolded func(*v1beta1.PhaseStatus) bool) {
	if e.Plan == "" {
		f.Line("No plan has run yet.")
		return
	}
	f.Line("plan "+e.Plan, string(e.Status), planTook(e, now), causeWithEnd(e, now))
	for i := range e.Phases {
		phase := &e.Phases[i]
		f.Line("  phase "+phase.Name, string(phase.Status), phaseTook(phase, now), "")
		for j := range phase.Steps {
			if !unfolded(phase) {
				break
			}
			step := &phase.Steps[j]
			f.Line("    step "+step.Name, string(step.Status), StepTook(step, now), step.Message)
		}
	}
}

// causeWithEnd is why the plan runs, and when it ends if its status says that.
func causeWithEnd(e *plans.Explanation, now time.Time) string {
	u := describe.Instance(e)
	return WithEnd(e.Cause, &u, now)
}

func planTook(e *plans.Explanation, now time.Time) string {
	if e.Started == nil {
		return ""
	}
	return elapsed(*e.Started, e.Ended, now)
}

// phaseTook is how long a phase took: until its last step was complete.
func phaseTook(p *v1beta1.PhaseStatus, now time.Time) string {
	if p.StartedAt == nil {
		return ""
	}
	if p.Status.IsRunning() {
		return elapsed(p.StartedAt.Time, nil, now)
	}
	var last *time.Time
	for i := range p.Steps {
		if at := p.Steps[i].FinishedAt; at != nil && (last == nil || last.Before(at.Time)) {
			last = &at.Time
		}
	}
	if last == nil || p.Status != v1beta1.Complete {
		return ""
	}
	return elapsed(p.StartedAt.Time, last, now)
}

// StepTook is how long a step took, or has taken so far; empty if that is not known.
func StepTook(s *v1beta1.StepStatus, now time.Time) string {
	switch {
	case s.StartedAt == nil:
		return ""
	case s.FinishedAt != nil:
		return elapsed(s.StartedAt.Time, &s.FinishedAt.Time, now)
	case s.Status.IsRunning():
		return elapsed(s.StartedAt.Time, nil, now)
	default:
		return ""
	}
}
