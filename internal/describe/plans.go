package describe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/describe/snapshot"
	"github.com/spillway-dev/spillway/internal/estimate"
	"github.com/spillway-dev/spillway/internal/plans"
	"github.com/spillway-dev/spillway/rollout"
)

// describePlans is how the Instances stand: the plan that runs or has failed, and its steps.
// They are as the manager has written, whatever the time is.
func describePlans(ctx context.Context, o *Options, s *snapshot.Snapshot) (described, error) {
	list := &v1beta1.InstanceList{}
	if err := s.List(ctx, list, client.InNamespace(o.Namespace)); err != nil {
		return described{}, fmt.Errorf("list Instances: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b v1beta1.Instance) int { // what is watched has no order
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	units := make([]Unit, len(list.Items))
	for i := range list.Items {
		e := plans.ExplanationOf(&list.Items[i])
		units[i] = Instance(&e)
	}
	return described{units: units}, nil
}

// Instance is an Instance with the plan that runs or has failed, and its steps.
func Instance(e *plans.Explanation) Unit {
	u := Unit{
		Ref:  Ref{Kind: "Instance", Namespace: e.Namespace, Name: e.Name},
		Ring: Plans, Phase: e.Phase, Sentence: e.Sentence, Since: e.Since,
	}
	if u.IsComplete() {
		u.pausedBy(e.Pause)
		return u
	}
	u.Reason = e.Reason
	u.endsBy((*estimate.Forecast)(e.Forecast))
	if e.Plan != "" && e.Status != v1beta1.Complete {
		p := plan(e)
		u.Done, u.Total, u.Counted, u.Units = p.Done, p.Total, p.Counted, []Unit{p}
	}
	return u
}

func plan(e *plans.Explanation) Unit {
	u := Unit{Ref: Ref{Kind: "Plan", Name: e.Plan}, Ring: Plans, Counted: "steps", Phase: phaseOfExecution(e.Status, e), Sentence: e.Cause, Since: e.Started}
	for i := range e.Phases {
		for j := range e.Phases[i].Steps {
			s := step(e, &e.Phases[i], &e.Phases[i].Steps[j])
			u.Units, u.Total = append(u.Units, s), u.Total+1
			if s.IsComplete() {
				u.Done++
			}
		}
	}
	return u
}

// step is one of a plan, by the name that users of KUDO know: phase and step.
func step(e *plans.Explanation, p *v1beta1.PhaseStatus, s *v1beta1.StepStatus) Unit {
	u := Unit{
		Ref: Ref{Kind: "Step", Name: p.Name + "/" + s.Name}, Ring: Plans,
		Phase: phaseOfExecution(s.Status, e), Sentence: s.Message, Since: TimeOf(s.StartedAt), Until: TimeOf(s.RetryAt),
	}
	if u.IsComplete() {
		u.Sentence = ""
	}
	return u
}

// phaseOfExecution is the phase of the plan of an Instance, or of a step of it. What runs
// has the phase of the Instance.
func phaseOfExecution(s v1beta1.ExecutionStatus, e *plans.Explanation) rollout.Phase {
	switch s {
	case v1beta1.Complete:
		return rollout.PhaseComplete
	case v1beta1.FatalError:
		return rollout.PhaseFailed
	case v1beta1.InProgress, v1beta1.Error:
		if e.Phase == rollout.PhaseProgressing && s == v1beta1.Error {
			return rollout.PhaseWaiting // others move
		}
		return e.Phase
	default:
		return rollout.PhaseWaiting
	}
}
