package plans

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/decision"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// That no plan runs does not make an Instance complete, and that one runs does not mean
// that it moves.
func TestThePhaseOfAnInstance(t *testing.T) {
	const running = "deploy"
	for _, test := range []struct {
		name   string
		active string
		reason rollout.Reason
		steps  []v1beta1.ExecutionStatus
		paused string
		edited bool
		stall  metav1.ConditionStatus
		phase  rollout.Phase
		says   rollout.Reason
	}{
		{name: "everything is complete", reason: decision.ReasonIdle, phase: rollout.PhaseComplete, says: decision.ReasonIdle},
		{name: "a paused Instance with nothing to do", reason: decision.ReasonIdle, paused: "true", phase: rollout.PhaseComplete, says: decision.ReasonIdle},
		{name: "it was edited just now", reason: decision.ReasonIdle, edited: true, phase: PhaseUnseen, says: decision.ReasonIdle},
		{name: "no OperatorVersion", reason: decision.ReasonNoVersion, phase: rollout.PhaseWaiting, says: decision.ReasonNoVersion},
		{name: "a workload is not ready", reason: decision.ReasonUnready, phase: rollout.PhaseWaiting, says: decision.ReasonUnready},
		{name: "a parameter is wrong", reason: decision.ReasonInvalid, stall: metav1.ConditionTrue, phase: PhaseStalled, says: decision.ReasonInvalid},
		{name: "a step is in progress", active: running, reason: decision.ReasonInProgress, steps: []v1beta1.ExecutionStatus{v1beta1.InProgress}, phase: rollout.PhaseProgressing, says: decision.ReasonInProgress},
		{name: "a step fails again and again", active: running, reason: decision.ReasonInProgress, steps: []v1beta1.ExecutionStatus{v1beta1.Complete, v1beta1.Error}, phase: rollout.PhaseWaiting, says: rollout.ReasonRetry},
		{name: "one fails, and one is in progress", active: running, reason: decision.ReasonInProgress, steps: []v1beta1.ExecutionStatus{v1beta1.Error, v1beta1.InProgress}, phase: rollout.PhaseProgressing, says: decision.ReasonInProgress},
		{name: "it is paused", active: running, reason: decision.ReasonInProgress, steps: []v1beta1.ExecutionStatus{v1beta1.InProgress}, paused: "true", phase: rollout.PhasePaused, says: rollout.ReasonPaused},
		{name: "the OperatorVersion has gone meanwhile", active: running, reason: decision.ReasonNoVersion, phase: rollout.PhaseWaiting, says: decision.ReasonNoVersion},
		{name: "what the plan began with has gone", active: running, reason: decision.ReasonNoContent, stall: metav1.ConditionTrue, phase: PhaseStalled, says: decision.ReasonNoContent},
	} {
		t.Run(test.name, func(t *testing.T) {
			i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Generation: 2, Annotations: map[string]string{"spillway.dev/pause": test.paused}}}
			s := &i.Status
			if s.ObservedGeneration = 2; test.edited {
				s.ObservedGeneration = 1
			}
			s.AggregatedStatus.ActivePlan = test.active
			s.Conditions = []metav1.Condition{
				{Type: ring.ConditionReady, Status: metav1.ConditionFalse, Reason: string(test.reason)}, {Type: ring.ConditionStalled, Status: test.stall},
			}
			phase := v1beta1.PhaseStatus{Name: "one"}
			for _, status := range test.steps {
				phase.Steps = append(phase.Steps, v1beta1.StepStatus{Status: status})
			}
			s.PlanStatus = map[string]v1beta1.PlanStatus{running: {Phases: []v1beta1.PhaseStatus{phase}}}
			s.Execution = &v1beta1.Execution{Plan: running}
			if e := ExplanationOf(i); e.Phase != test.phase || e.Reason != test.says {
				t.Errorf("it is %s (%s), not %s (%s)", e.Phase, e.Reason, test.phase, test.says)
			}
		})
	}
}
