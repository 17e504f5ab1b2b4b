package decision

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/api/record"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// PhaseStalled is the phase of an Instance that a user must fix first.
const PhaseStalled rollout.Phase = "Stalled"

// PhaseOf is the phase of an Instance, as its status says. It may be other than Complete although no plan
// is running.
func PhaseOf(s *v1beta1.InstanceStatus, isPaused bool) rollout.Phase {
	reason := rollout.Reason("")
	if ready := apimeta.FindStatusCondition(s.Conditions, ring.ConditionReady); ready != nil {
		reason = rollout.Reason(ready.Reason)
	}
	switch isActive := s.AggregatedStatus.ActivePlan != ""; {
	case apimeta.IsStatusConditionTrue(s.Conditions, ring.ConditionStalled):
		return PhaseStalled
	case !isActive && reason == ReasonIdle:
		return rollout.PhaseComplete
	case isActive && isPaused:
		return rollout.PhasePaused
	case reason != ReasonInProgress, isActive && isRetrying(s):
		return rollout.PhaseWaiting
	default:
		return rollout.PhaseProgressing
	}
}

// isRetrying is true if a step failed and will be retried, and no other is in progress.
func isRetrying(s *v1beta1.InstanceStatus) bool {
	failed := false
	for _, phase := range s.PlanStatus[s.AggregatedStatus.ActivePlan].Phases {
		for i := range phase.Steps {
			switch phase.Steps[i].Status {
			case v1beta1.InProgress:
				return false
			case v1beta1.Error:
				failed = true
			case v1beta1.NeverRun, v1beta1.Pending, v1beta1.Complete, v1beta1.FatalError:
			}
		}
	}
	return failed
}

// record is the record of the plan that is running, or of the last one that ran.
func (d *decider) record(reason rollout.Reason, sentence string) *record.Rollout {
	s := &d.Status
	r := ring.Decided{
		By:        d.By,
		Namespace: d.Instance.Namespace, Target: target("", &d.Instance.Spec), Reason: reason, Sentence: sentence,
		Phase: PhaseOf(s, vocabulary.Paused.Get(d.Instance.Annotations) == "true"),
	}
	if hold := d.At().Hold; hold != nil {
		r.Telling = telling(hold)
	}
	if e := s.Execution; e != nil {
		r.Target, r.StartedAt, r.ChangedBy = target(e.Plan, &e.Spec), e.StartedAt.Time, e.ChangedBy
		if e.FinishedAt != nil {
			r.FinishedAt = e.FinishedAt.Time
		}
		for i := range s.PlanStatus[e.Plan].Phases {
			d.recordPhase(&r, &s.PlanStatus[e.Plan].Phases[i])
		}
	}
	return r.Record(d.before.Rollout, d.Now)
}

// target is a plan, an OperatorVersion and a digest of the parameters.
func target(plan string, spec *v1beta1.InstanceSpec) string {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(spec.Parameters)) {
		_, _ = fmt.Fprintf(sum, "%q=%q ", name, spec.Parameters[name])
	}
	name := message.Cut(spec.OperatorVersion.Name, targetLength)
	return fmt.Sprintf("%s %s %.6x", cmp.Or(plan, v1beta1.DeployPlan), name, sum.Sum(nil))
}

// targetLength bounds the name of the OperatorVersion in the target of a record.
const targetLength = 150

// recordPhase adds a phase with its steps.
func (d *decider) recordPhase(r *ring.Decided, p *v1beta1.PhaseStatus) {
	complete := 0
	for i := range p.Steps {
		step := &p.Steps[i]
		if step.Status == v1beta1.Complete {
			complete++
			continue
		}
		r.Units = append(r.Units, d.waitingStep(p.Name, step))
	}
	stage := ring.StageOf(&d.Plan, p.Name, len(p.Steps), complete, p.Name)
	if complete < len(p.Steps) && stage.Phase == string(rollout.PhaseComplete) { // no plan is running
		stage.Phase = string(rollout.PhaseWaiting)
		if p.Status == v1beta1.FatalError {
			stage.Phase, stage.Reason, stage.Message = string(rollout.PhaseFailed), string(rollout.ReasonFailed), message.Cut(p.Message, 256)
		}
	}
	r.Stages = append(r.Stages, stage)
	r.Total += len(p.Steps)
}

// waitingStep is why a step is not complete: what its task waits for that tells most, or what its status says.
func (d *decider) waitingStep(phase string, step *v1beta1.StepStatus) ring.Waiting {
	u := ring.Waiting{Unit: phase + "/" + step.Name, State: ring.StateWaiting, Reason: rollout.ReasonOrder, Cause: rollout.Cause{Does: "is waiting", Why: step.Message}}
	switch step.Status {
	case v1beta1.FatalError:
		u.State, u.Reason, u.Does = ring.StateFailed, rollout.ReasonFailed, "failed"
	case v1beta1.Error:
		u.Reason, u.Does, u.Until = rollout.ReasonRetry, "is being retried", ring.TimeOf(step.RetryAt)
	case v1beta1.InProgress:
		u.State, u.Reason, u.Does = ring.StateRolling, rollout.ReasonProgressing, "is running"
	case v1beta1.NeverRun, v1beta1.Pending, v1beta1.Complete:
	}
	if hold := d.At(phase, step.Name).Hold; hold != nil && u.State != ring.StateFailed {
		u.Cause, u.Reason, u.Until = telling(hold), hold.Reason, hold.Until
	}
	u.Since = ring.TimeOf(step.StartedAt)
	return u
}

// telling is what a hold of a task says of its step.
func telling(h *rollout.Hold) rollout.Cause {
	c := h.Cause
	if c.Subject == "" && len(h.Path) > 2 {
		c.Subject = h.Path[len(h.Path)-1]
	}
	return c
}
