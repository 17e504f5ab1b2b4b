package execution

import (
	"encoding/json"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/choice"
)

const (
	// HistoryLimit is how many executions of each plan are kept in the history.
	HistoryLimit = 10
	// SpecsLimit is how many bytes the specs in the history have together, as JSON. The
	// status is written with each step, and the API server accepts no object of more than
	// 1.5 MiB.
	SpecsLimit = 64 << 10
)

// KeepComplete copies the steps that are complete in done.
func KeepComplete(phases, done []v1beta1.PhaseStatus) {
	for i := range phases {
		for j := range phases[i].Steps {
			step := &phases[i].Steps[j]
			if before := FindStep(done, phases[i].Name, step.Name); before != nil && before.Status == v1beta1.Complete {
				*step = *before
			}
		}
	}
}

// TryNow has steps that failed tried again without waiting.
func TryNow(phases []v1beta1.PhaseStatus) {
	for i := range phases {
		for j := range phases[i].Steps {
			s := &phases[i].Steps[j]
			s.Attempts, s.FailingSince, s.FailedAt, s.RetryAt = 0, nil, nil, nil
		}
	}
}

// IsInProgress is true of a step that has started and is not complete.
func IsInProgress(s *v1beta1.StepStatus) bool {
	return s.Status == v1beta1.InProgress || s.Status == v1beta1.Error
}

// LastStart is when the newest of the steps in progress began, zero if none is.
func LastStart(phases []v1beta1.PhaseStatus) (last time.Time) {
	for i := range phases {
		for j := range phases[i].Steps {
			if s := &phases[i].Steps[j]; IsInProgress(s) && s.StartedAt != nil && s.StartedAt.After(last) {
				last = s.StartedAt.Time
			}
		}
	}
	return last
}

// Ended is the status of a plan in its final state. Steps in progress get that state.
func Ended(p v1beta1.PlanStatus, final v1beta1.ExecutionStatus, message string) v1beta1.PlanStatus {
	p.Status, p.Message = final, message
	for i := range p.Phases {
		phase := &p.Phases[i]
		phase.Status = endedAs(phase.Status, final)
		for j := range phase.Steps {
			step := &phase.Steps[j]
			step.Status, step.RetryAt = endedAs(step.Status, final), nil
		}
	}
	return p
}

// PlanStatus is the status of a plan all of whose phases and steps are in one state.
func PlanStatus(name string, version *v1beta1.OperatorVersionSpec, s v1beta1.ExecutionStatus) v1beta1.PlanStatus {
	plan := version.Plans[name]
	status := v1beta1.PlanStatus{Name: name, Status: s}
	for _, phase := range plan.Phases {
		ps := v1beta1.PhaseStatus{Name: phase.Name, Status: s}
		for _, step := range phase.Steps {
			ps.Steps = append(ps.Steps, v1beta1.StepStatus{Name: step.Name, Status: s})
		}
		status.Phases = append(status.Phases, ps)
	}
	return status
}

func endedAs(s, final v1beta1.ExecutionStatus) v1beta1.ExecutionStatus {
	if s == v1beta1.InProgress || s == v1beta1.Error {
		return final
	}
	return s
}

// Record adds an execution that has ended to the history; phases are those of its plan.
func Record(history []v1beta1.PastExecution, e *v1beta1.Execution, phases []v1beta1.PhaseStatus) []v1beta1.PastExecution {
	past := v1beta1.PastExecution{
		UID: e.UID, Plan: e.Plan, Cause: e.Cause, Changed: e.Changed, OperatorVersion: e.Spec.OperatorVersion.Name, ContentHash: e.ContentHash,
		ChangedBy: e.ChangedBy, Advances: e.Advances, StartedAt: e.StartedAt, FinishedAt: *e.FinishedAt, Result: e.Result, Message: e.Message,
	}
	if e.Advances {
		past.Spec = choice.Target(&e.Spec)
	}
	if e.Result == v1beta1.ResultComplete {
		past.Steps = pastSteps(e, phases)
	}
	kept, seen := []v1beta1.PastExecution{past}, 1
	for _, old := range history {
		if old.Plan == e.Plan {
			seen++
		}
		if old.Plan != e.Plan || seen <= HistoryLimit {
			kept = append(kept, old)
		}
	}
	limitSpecs(kept)
	limitSteps(kept)
	return kept
}

// limitSpecs removes the specs of the oldest executions if all together are too long. None
// is left that is older than one that is removed, so that what came before is known or is
// known to be missing.
func limitSpecs(history []v1beta1.PastExecution) {
	size := 0
	for i := range history {
		past := &history[i]
		if past.Spec == nil {
			continue
		}
		raw, err := json.Marshal(past.Spec)
		if size += len(raw); err != nil || size > SpecsLimit {
			size, past.Spec = SpecsLimit, nil
		}
	}
}

// taskNames are the tasks of a step, each once.
func taskNames(step *v1beta1.Step) []string {
	var names []string
	for _, name := range step.Tasks {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// step is the status of a step.
func (r *run) step(phase, step string) *v1beta1.StepStatus { return FindStep(r.phases, phase, step) }

// FindStep is the status of a step, nil if there is none.
func FindStep(phases []v1beta1.PhaseStatus, phase, step string) *v1beta1.StepStatus {
	for i := range phases {
		if phases[i].Name != phase {
			continue
		}
		for j := range phases[i].Steps {
			if phases[i].Steps[j].Name == step {
				return &phases[i].Steps[j]
			}
		}
	}
	return nil
}

// stamp is the present with the precision that the API keeps.
func (r *run) stamp() *metav1.MicroTime {
	return new(metav1.NewMicroTime(r.now.Truncate(time.Microsecond)))
}
