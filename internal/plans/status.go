package plans

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/metrics"
	"github.com/spillway-dev/spillway/internal/plans/decision"
	"github.com/spillway-dev/spillway/internal/plans/execution"
	"github.com/spillway-dev/spillway/internal/plans/write"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// reporter reports what happened: Events, metrics, log.
type reporter struct{ ring.Reporter }

func newReporter(recorder events.EventRecorder) reporter {
	return reporter{ring.Reporter{Events: recorder, Action: "RunPlan", Writes: metrics.PlansWrites}}
}

// report reports one pass. Events are sent only for what was written.
func (r *reporter) report(ctx context.Context, s *snapshot, d *decision.Decision, done *results, m *memory) {
	m.measure(s, d)
	if s.Instance == nil {
		m.Wait(metrics.RingPlans, s.Now, nil)
		return
	}
	m.Wait(metrics.RingPlans, s.Now, d.Holds)
	if done.Written() || done.Err != nil {
		r.Wrote(ctx, ring.Change{Act: "Instance", Object: s.Instance.Name}, done.Err)
	}
	if done.Written() {
		r.emitTransitions(s.Instance, &d.Status)
	}
	for i := range done.Writes {
		r.Wrote(ctx, done.Writes[i].Change, done.Writes[i].Err)
		r.emitWrite(s, d, &done.Writes[i], m)
	}
	if m.IsNew("waiting", d.Sentence) {
		log.FromContext(ctx).V(1).Info("waiting", "why", d.Sentence)
	}
}

// emitWrite says of a write what a user must know of it.
func (r *reporter) emitWrite(s *snapshot, d *decision.Decision, w *ring.Result[made], m *memory) {
	if len(w.Write.dropped) > 0 {
		r.Warning(s.Instance, decision.EventDropped, "%s: unknown fields dropped: %s", w.Change.Object, d.Hidden.In(strings.Join(w.Write.dropped, ", ")))
	}
	if w.Write.Act == write.Apply && len(w.Write.Path) == 0 && w.Err == nil {
		r.Normal(s.Instance, decision.EventCorrected, "%s: another client had changed or deleted it; applied again", w.Change.Object)
	}
	if w.Write.Unchecked != "" && w.Err == nil {
		r.Warning(s.Instance, decision.EventUnchecked, "%s: changed without knowing that objects stay valid: %s", w.Change.Object, w.Write.Unchecked)
	}
	if w.Write.refusal != nil && w.Write.IsToInstance() && m.IsNew("refused", w.Write.refusal.Reason) {
		r.Warning(s.Instance, decision.EventRefused, "cannot update Instance %s: %s", s.Instance.Name, w.Write.refusal.Reason)
	}
}

// unreadable reports what the manager has no permission to read, since the status is
// not written.
func (r *reporter) unreadable(i *v1beta1.Instance, err error) error {
	if i != nil && apierrors.IsForbidden(err) {
		r.Warning(i, decision.EventNotPermitted, "%s", err)
	}
	return err
}

// emitTransitions compares the status as it was with the one that was written.
func (r *reporter) emitTransitions(i *v1beta1.Instance, now *v1beta1.InstanceStatus) {
	was := &i.Status
	metrics.Ended(metrics.RingPlans, nil, pastOf(newlyEnded(was, now)))
	for _, past := range newlyEnded(was, now) {
		r.emitEnd(i, past)
	}
	if e := now.Execution; e != nil && (was.Execution == nil || was.Execution.UID != e.UID) {
		r.Normal(i, decision.EventStarted, "Execution of plan %s started", e.Plan)
	}
	if e := now.Execution; e != nil {
		r.emitFailures(i, was.PlanStatus[e.Plan], now.PlanStatus[e.Plan])
	}
	for _, reason := range []rollout.Reason{decision.EventStalled, rollout.ReasonGateRefused} {
		if said := newly(was, now, ring.ConditionStalled, reason); said != "" {
			r.Warning(i, reason, "%s", said)
		}
	}
	if said := newly(was, now, ring.ConditionReconciling, rollout.ReasonGate); said != "" {
		r.Normal(i, rollout.ReasonGate, "%s", said)
	}
}

// newly is the message of a condition that is true for a reason, empty if it was before.
func newly(was, now *v1beta1.InstanceStatus, condition string, reason rollout.Reason) string {
	is := apimeta.FindStatusCondition(now.Conditions, condition)
	if is == nil || is.Status != metav1.ConditionTrue || is.Reason != string(reason) {
		return ""
	}
	if before := apimeta.FindStatusCondition(was.Conditions, condition); before != nil && before.Message == is.Message {
		return ""
	}
	return is.Message
}

// newlyEnded are the executions that were added to the history.
func newlyEnded(was, now *v1beta1.InstanceStatus) []v1beta1.PastExecution {
	known := map[types.UID]bool{}
	for _, past := range was.History {
		known[past.UID] = true
	}
	var fresh []v1beta1.PastExecution
	for _, past := range now.History {
		if !known[past.UID] {
			fresh = append(fresh, past)
		}
	}
	return fresh
}

func pastOf(history []v1beta1.PastExecution) []metrics.Past {
	rollouts := make([]metrics.Past, len(history))
	for i := range history {
		e := &history[i]
		rollouts[i] = metrics.Past{ID: string(e.UID), Outcome: string(e.Result), Took: e.FinishedAt.Sub(e.StartedAt.Time)}
	}
	return rollouts
}

// emitEnd emits an Event for an execution that ended. Those of plans that start and
// succeed are KUDO's, to the letter, because tools wait for them.
func (r *reporter) emitEnd(i *v1beta1.Instance, past v1beta1.PastExecution) {
	metrics.PlansExecutions.WithLabelValues(past.Plan, string(past.Result)).Inc()
	if past.Result == v1beta1.ResultComplete {
		metrics.PlansExecutionSeconds.WithLabelValues(past.Plan).Observe(past.FinishedAt.Sub(past.StartedAt.Time).Seconds())
		r.Normal(i, decision.EventComplete, "Execution of plan %s finished with status %s", past.Plan, v1beta1.Complete)
		return
	}
	r.Warning(i, decision.EventFailed, "plan %s %s: %s", past.Plan, decision.EndedAs(past.Result), past.Message)
}

// emitFailures emits an Event for each step that failed and will be retried.
func (r *reporter) emitFailures(i *v1beta1.Instance, was, now v1beta1.PlanStatus) {
	for _, phase := range now.Phases {
		for _, step := range phase.Steps {
			before := execution.FindStep(was.Phases, phase.Name, step.Name)
			if step.Status == v1beta1.Error && (before == nil || before.Status != v1beta1.Error || before.Message != step.Message) {
				r.Warning(i, decision.EventStep, "step %s/%s failed: %s", phase.Name, step.Name, step.Message)
			}
		}
	}
}

// causeText says why an execution began.
func causeText(e *v1beta1.Execution) string {
	text := map[v1beta1.Cause]string{
		v1beta1.CauseCreate: "the Instance was created", v1beta1.CauseUpgrade: "the OperatorVersion changed", v1beta1.CauseParameters: "parameters changed",
		v1beta1.CauseRequest: "requested by a user", v1beta1.CauseRetry: "retried by a user", v1beta1.CauseDelete: "the Instance is being deleted",
	}[e.Cause]
	if e.Changed != "" {
		text += " (" + e.Changed + ")"
	}
	return text
}

// measure updates the gauge of Instances.
func (m *memory) measure(s *snapshot, d *decision.Decision) {
	state := "idle"
	switch {
	case s.Instance == nil:
		state = ""
	case d.Status.AggregatedStatus.ActivePlan != "":
		state = "running"
	case apimeta.IsStatusConditionTrue(d.Status.Conditions, ring.ConditionStalled):
		state = "stalled"
	}
	if m.state == state {
		return
	}
	if m.state != "" {
		metrics.PlansInstances.WithLabelValues(m.state).Dec()
	}
	if state != "" {
		metrics.PlansInstances.WithLabelValues(state).Inc()
	}
	m.state = state
}
