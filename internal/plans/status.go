package plans

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/execution"
	"github.com/spillway-dev/spillway/rollout"
)

// reporter reports results: Events, metrics, log.
type reporter struct {
	events events.EventRecorder

	mu sync.Mutex
	// states are those of the Instances, sentences what they waited for when that was
	// last logged.
	states, sentences map[types.NamespacedName]string
}

func newReporter(recorder events.EventRecorder) *reporter {
	return &reporter{events: recorder, states: map[types.NamespacedName]string{}, sentences: map[types.NamespacedName]string{}}
}

// report reports one pass. Events are sent only for what was written.
func (r *reporter) report(ctx context.Context, s *snapshot, d *decision, done *results) {
	if done.written {
		statusWrites.Inc()
		r.emitTransitions(s.Instance, &d.status)
	}
	for _, w := range done.writes {
		r.reportWrite(ctx, w)
	}
	if done.err != nil && !errors.Is(done.err, errConflict) {
		log.FromContext(ctx).V(1).Info("will retry", "error", done.err.Error())
	}
	r.measure(client.ObjectKeyFromObject(s.Instance), d)
	r.logSentence(ctx, client.ObjectKeyFromObject(s.Instance), d.sentence)
}

func (r *reporter) eventf(i *v1beta1.Instance, kind string, reason rollout.Reason, format string, args ...any) {
	r.events.Eventf(i, nil, kind, string(reason), "RunPlan", "%s", fmt.Sprintf(format, args...))
}

// unreadable reports what the manager has no permission to read, since the status is
// not written.
func (r *reporter) unreadable(i *v1beta1.Instance, err error) error {
	if apierrors.IsForbidden(err) {
		r.eventf(i, corev1.EventTypeWarning, EventNotPermitted, "%s", err)
	}
	return err
}

// emitTransitions compares the status as it was with the one that was written.
func (r *reporter) emitTransitions(i *v1beta1.Instance, now *v1beta1.InstanceStatus) {
	was := &i.Status
	for _, past := range newlyEnded(was, now) {
		r.emitEnd(i, past)
	}
	if e := now.Execution; e != nil && (was.Execution == nil || was.Execution.UID != e.UID) {
		r.eventf(i, corev1.EventTypeNormal, EventStarted, "plan %s started: %s", e.Plan, causeText(e))
	}
	if e := now.Execution; e != nil {
		r.emitFailures(i, was.PlanStatus[e.Plan], now.PlanStatus[e.Plan])
	}
	stalled := apimeta.FindStatusCondition(now.Conditions, ConditionStalled)
	if before := apimeta.FindStatusCondition(was.Conditions, ConditionStalled); stalled != nil && stalled.Status == "True" &&
		stalled.Reason == string(ReasonInvalid) && (before == nil || before.Message != stalled.Message) {
		r.eventf(i, corev1.EventTypeWarning, EventStalled, "%s", stalled.Message)
	}
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

func (r *reporter) emitEnd(i *v1beta1.Instance, past v1beta1.PastExecution) {
	executions.WithLabelValues(past.Plan, string(past.Result)).Inc()
	if past.Result == v1beta1.ResultComplete {
		executionSeconds.WithLabelValues(past.Plan).Observe(past.FinishedAt.Sub(past.StartedAt.Time).Seconds())
		r.eventf(i, corev1.EventTypeNormal, EventComplete, "plan %s is complete", past.Plan)
		return
	}
	r.eventf(i, corev1.EventTypeWarning, EventFailed, "plan %s %s: %s", past.Plan, ended[past.Result], past.Message)
}

// emitFailures emits an Event for each step that failed and will be retried.
func (r *reporter) emitFailures(i *v1beta1.Instance, was, now v1beta1.PlanStatus) {
	for _, phase := range now.Phases {
		for _, step := range phase.Steps {
			before := execution.FindStep(was.Phases, phase.Name, step.Name)
			if step.Status == v1beta1.Error && (before == nil || before.Status != v1beta1.Error || before.Message != step.Message) {
				r.eventf(i, corev1.EventTypeWarning, EventStep, "step %s/%s failed: %s", phase.Name, step.Name, step.Message)
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

func (r *reporter) reportWrite(ctx context.Context, w result) {
	result := "made"
	if w.refusal != nil {
		result = "refused"
		log.FromContext(ctx).Info("refused", "act", w.write.Act, "object", w.write.Ref.String(), "why", w.refusal.Reason)
	}
	writesMade.WithLabelValues(string(w.write.Act), result).Inc()
}

// logSentence logs what an Instance waits for when that changes.
func (r *reporter) logSentence(ctx context.Context, key types.NamespacedName, sentence string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sentences[key] != sentence && sentence != "" {
		log.FromContext(ctx).V(1).Info("waiting", "instance", key.String(), "why", sentence)
	}
	r.sentences[key] = sentence
}

// measure updates the gauge of Instances.
func (r *reporter) measure(key types.NamespacedName, d *decision) {
	state := "idle"
	switch {
	case d.status.AggregatedStatus.ActivePlan != "":
		state = "running"
	case apimeta.IsStatusConditionTrue(d.status.Conditions, ConditionStalled):
		state = "stalled"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gauge(r.states[key], state)
	r.states[key] = state
}

func (r *reporter) gauge(was, now string) {
	if was == now {
		return
	}
	if was != "" {
		instances.WithLabelValues(was).Dec()
	}
	if now != "" {
		instances.WithLabelValues(now).Inc()
	}
}

// forget forgets an Instance that no longer exists.
func (r *reporter) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gauge(r.states[key], "")
	delete(r.states, key)
	delete(r.sentences, key)
}
