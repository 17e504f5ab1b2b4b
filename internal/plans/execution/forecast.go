package execution

import (
	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/estimate"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

const (
	// timedLimit is of how many executions of each plan the steps are kept in the history.
	timedLimit = 5
	// stepsLimit is how many steps the history has together, since it is written with each step.
	stepsLimit = 200
)

// forecast is when the plan ends, by how long its steps took in its last executions; nil where
// one of those that remain is not recorded.
func (r *run) forecast() *v1beta1.Forecast {
	whole := estimate.Part{Parallel: orderOfUnits(r.plan.Strategy) == rollout.Parallel}
	for i := range r.plan.Phases {
		phase := &r.plan.Phases[i]
		part := estimate.Part{Name: phase.Name, Done: len(phase.Steps) == 0, Parallel: orderOfUnits(phase.Strategy) == rollout.Parallel}
		for j := range phase.Steps {
			status := r.step(phase.Name, phase.Steps[j].Name)
			part.Parts = append(part.Parts, estimate.Part{
				Name: phase.Name + "/" + status.Name, Began: ring.TimeOf(status.StartedAt), Done: status.Status == v1beta1.Complete,
			})
		}
		whole.Parts = append(whole.Parts, part)
	}
	return (*v1beta1.Forecast)(estimate.Ends(r.now, &whole, r.former()))
}

// former are the executions of the plan whose steps are recorded.
func (r *run) former() []estimate.Run {
	var runs []estimate.Run
	for i := range r.status.History {
		past := &r.status.History[i]
		if past.Plan != r.Execution.Plan {
			continue
		}
		run := estimate.Run{Began: past.StartedAt.Time, Parts: map[string]estimate.Stretch{}}
		for _, s := range past.Steps {
			run.Parts[s.Name] = estimate.Stretch{Began: s.StartedAt.Time, Ended: s.FinishedAt.Time}
		}
		runs = append(runs, run)
	}
	return runs
}

// pastSteps are the steps that an execution carried out, without those that an earlier try had
// completed.
func pastSteps(e *v1beta1.Execution, phases []v1beta1.PhaseStatus) []v1beta1.PastStep {
	var past []v1beta1.PastStep
	for i := range phases {
		for j := range phases[i].Steps {
			s := &phases[i].Steps[j]
			if s.StartedAt != nil && s.FinishedAt != nil && !s.StartedAt.Before(&e.StartedAt) {
				past = append(past, v1beta1.PastStep{Name: phases[i].Name + "/" + s.Name, StartedAt: *s.StartedAt, FinishedAt: *s.FinishedAt})
			}
		}
	}
	return past
}

// limitSteps removes the steps of the oldest executions if there are too many.
func limitSteps(history []v1beta1.PastExecution) {
	all, timed := 0, map[string]int{}
	for i := range history {
		past := &history[i]
		if all+len(past.Steps) > stepsLimit || timed[past.Plan] == timedLimit {
			past.Steps = nil
		}
		if len(past.Steps) > 0 {
			all, timed[past.Plan] = all+len(past.Steps), timed[past.Plan]+1
		}
	}
}
