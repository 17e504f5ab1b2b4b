package history

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/tracing/identity"
	"github.com/spillway-dev/spillway/rollout"
)

// ofInstance are the executions of plans. Of the last one of each plan it is known how
// long its steps took.
func (h *historian) ofInstance(ctx context.Context) ([]Entry, error) {
	i := &v1beta1.Instance{}
	if err := h.get(ctx, i); err != nil {
		return nil, err
	}
	past := i.Status.History
	var episodes []Entry
	if x := i.Status.Execution; x != nil && x.FinishedAt == nil {
		e := h.execution(x.UID, x.Plan, x.Cause, x.Changed, x.StartedAt.Time)
		e.Outcome, e.Message, e.To, e.By = string(rollout.OutcomeRunning), i.Status.WaitingFor, x.Spec.OperatorVersion.Name, x.ChangedBy
		e.Units, e.Trace = stepsOf(i, x.UID), identity.Trace(i.UID, x.Plan, x.StartedAt.Time)
		episodes = append(episodes, e)
	}
	for j := range past {
		e := h.execution(past[j].UID, past[j].Plan, past[j].Cause, past[j].Changed, past[j].StartedAt.Time)
		e.Ended, e.Outcome, e.Message, e.To = &past[j].FinishedAt.Time, string(past[j].Result), past[j].Message, past[j].OperatorVersion
		e.By, e.UndoneBy = past[j].ChangedBy, past[j].UndoneBy
		e.Units, e.Trace = stepsOf(i, past[j].UID), identity.Trace(i.UID, past[j].Plan, past[j].StartedAt.Time)
		episodes = append(episodes, e)
	}
	return episodes, nil
}

func (h *historian) execution(uid types.UID, plan string, cause v1beta1.Cause, changed string, started time.Time) Entry {
	e := h.episode(describe.Plans, "plan "+plan)
	e.UID, e.Started, e.Change = string(uid), &started, strings.ToLower(string(cause))
	if changed != "" {
		e.Change += ": " + changed
	}
	return e
}

// stepsOf are the phases and steps of an execution, none if another one has taken its
// place since.
func stepsOf(i *v1beta1.Instance, uid types.UID) []Part {
	for _, plan := range i.Status.PlanStatus {
		if plan.UID == uid {
			return phasesOf(&plan)
		}
	}
	return nil
}

func phasesOf(plan *v1beta1.PlanStatus) []Part {
	phases := make([]Part, len(plan.Phases))
	for j := range plan.Phases {
		p := &plan.Phases[j]
		phases[j] = Part{
			Ref: describe.Ref{Kind: "Phase", Name: p.Name}, Started: describe.TimeOf(p.StartedAt), Ended: phaseEnded(p),
			Outcome: string(p.Status), Message: p.Message,
		}
		for k := range p.Steps {
			s := &p.Steps[k]
			phases[j].Units = append(phases[j].Units, Part{
				Ref: describe.Ref{Kind: "Step", Name: s.Name}, Started: describe.TimeOf(s.StartedAt), Ended: describe.TimeOf(s.FinishedAt),
				Outcome: string(s.Status), Message: s.Message,
			})
		}
	}
	return phases
}

// phaseEnded is when the last step of a phase that is complete was.
func phaseEnded(p *v1beta1.PhaseStatus) *time.Time {
	var last *time.Time
	for i := range p.Steps {
		at := describe.TimeOf(p.Steps[i].FinishedAt)
		if at != nil && (last == nil || last.Before(*at)) {
			last = at
		}
	}
	if p.Status != v1beta1.Complete {
		return nil
	}
	return last
}
