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
	"github.com/spillway-dev/spillway/rollout"
)

// reporter tells what happened: Events, metrics, log.
type reporter struct {
	events events.EventRecorder

	mu sync.Mutex
	// states are those of the Instances, sentences what they waited for when that
	// was last logged.
	states, sentences map[types.NamespacedName]string
}

func newReporter(recorder events.EventRecorder) *reporter {
	return &reporter{events: recorder, states: map[types.NamespacedName]string{}, sentences: map[types.NamespacedName]string{}}
}

// report tells of one pass. Events are sent only for what was written.
func (r *reporter) report(ctx context.Context, o *Observed, p *Plan, d *deeds) {
	if d.written {
		statusWrites.Inc()
		r.tellTransitions(o, p)
	}
	for _, out := range d.outcomes {
		r.tellOutcome(ctx, out)
	}
	if d.err != nil && !errors.Is(d.err, errOvertaken) {
		log.FromContext(ctx).V(1).Info("trying again later", "error", d.err.Error())
	}
	r.measure(client.ObjectKeyFromObject(o.Instance), p)
	r.logSentence(ctx, client.ObjectKeyFromObject(o.Instance), p.Sentence)
}

func (r *reporter) eventf(i *v1beta1.Instance, kind string, reason rollout.Reason, format string, args ...any) {
	r.events.Eventf(i, nil, kind, string(reason), "RunPlan", "%s", fmt.Sprintf(format, args...))
}

// cannotLook tells of what may not be looked at, since no status can.
func (r *reporter) cannotLook(i *v1beta1.Instance, err error) error {
	if apierrors.IsForbidden(err) {
		r.eventf(i, corev1.EventTypeWarning, EventNotPermitted, "%s", err)
	}
	return err
}

// tellTransitions compares the status as it was with what was written.
func (r *reporter) tellTransitions(o *Observed, p *Plan) {
	was, now := &o.Instance.Status, &p.Status
	for _, past := range newlyEnded(was, now) {
		r.tellEnd(o.Instance, past)
	}
	if e := now.Execution; e != nil && (was.Execution == nil || was.Execution.UID != e.UID) {
		r.eventf(o.Instance, corev1.EventTypeNormal, EventBegan, "plan %s begins: %s", e.Plan, causeText(e))
	}
	if e := now.Execution; e != nil {
		r.tellFailures(o.Instance, was.PlanStatus[e.Plan], now.PlanStatus[e.Plan])
	}
	stalled := apimeta.FindStatusCondition(now.Conditions, ConditionStalled)
	if before := apimeta.FindStatusCondition(was.Conditions, ConditionStalled); stalled != nil && stalled.Status == "True" &&
		stalled.Reason == string(ReasonInvalid) && (before == nil || before.Message != stalled.Message) {
		r.eventf(o.Instance, corev1.EventTypeWarning, EventStalled, "%s", stalled.Message)
	}
}

// newlyEnded are the executions that are in the history now, and were not.
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

func (r *reporter) tellEnd(i *v1beta1.Instance, past v1beta1.PastExecution) {
	executions.WithLabelValues(past.Plan, string(past.Result)).Inc()
	if past.Result == v1beta1.ResultComplete {
		executionSeconds.WithLabelValues(past.Plan).Observe(past.FinishedAt.Sub(past.StartedAt.Time).Seconds())
		r.eventf(i, corev1.EventTypeNormal, EventComplete, "plan %s is complete", past.Plan)
		return
	}
	r.eventf(i, corev1.EventTypeWarning, EventFailed, "plan %s %s: %s", past.Plan, howItEnded[past.Result], past.Message)
}

// tellFailures tells of steps that failed for the time being.
func (r *reporter) tellFailures(i *v1beta1.Instance, was, now v1beta1.PlanStatus) {
	for _, phase := range now.Phases {
		for _, step := range phase.Steps {
			before := findStep(was.Phases, phase.Name, step.Name)
			if step.Status == v1beta1.Error && (before == nil || before.Status != v1beta1.Error || before.Message != step.Message) {
				r.eventf(i, corev1.EventTypeWarning, EventStep, "step %s/%s: %s", phase.Name, step.Name, step.Message)
			}
		}
	}
}

// causeText says why an execution began.
func causeText(e *v1beta1.Execution) string {
	text := map[v1beta1.Cause]string{
		v1beta1.CauseCreate: "the Instance is new", v1beta1.CauseUpgrade: "another OperatorVersion is wanted", v1beta1.CauseParameters: "parameters changed",
		v1beta1.CauseRequest: "somebody asked for it", v1beta1.CauseRetry: "somebody asked to try again", v1beta1.CauseDelete: "the Instance is deleted",
	}[e.Cause]
	if e.Changed != "" {
		text += " (" + e.Changed + ")"
	}
	return text
}

func (r *reporter) tellOutcome(ctx context.Context, out outcome) {
	result := "made"
	if out.refusal != nil {
		result = "refused"
		log.FromContext(ctx).Info("refused", "act", out.write.Act, "object", out.write.Ref.String(), "why", out.refusal.Reason)
	}
	writesMade.WithLabelValues(string(out.write.Act), result).Inc()
}

// logSentence logs what is waited for when that begins, or when it changes.
func (r *reporter) logSentence(ctx context.Context, key types.NamespacedName, sentence string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sentences[key] != sentence && sentence != "" {
		log.FromContext(ctx).V(1).Info("waits", "instance", key.String(), "why", sentence)
	}
	r.sentences[key] = sentence
}

// measure brings the gauge up to date.
func (r *reporter) measure(key types.NamespacedName, p *Plan) {
	state := "idle"
	switch {
	case p.Status.AggregatedStatus.ActivePlan != "":
		state = "running"
	case apimeta.IsStatusConditionTrue(p.Status.Conditions, ConditionStalled):
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

// forget forgets an Instance that is gone.
func (r *reporter) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gauge(r.states[key], "")
	delete(r.states, key)
	delete(r.sentences, key)
}
