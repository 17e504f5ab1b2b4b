package decision

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/execution"
	"github.com/spillway-dev/spillway/internal/plans/task"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// quietFor is how long the status keeps its messages if nothing else changes.
const quietFor = 10 * time.Second

// ConditionDrifted is true while objects differ from what plans have applied.
const ConditionDrifted = "Drifted"

// IdleSentence is the message of an Instance with nothing to do.
const IdleSentence = "no plan is running, and all workloads are ready"

// describe completes the status with what users read.
func (d *decider) describe() {
	s := &d.Status
	s.ObservedGeneration = d.Instance.Generation
	s.Place = d.place()
	reason, sentence := d.summary()
	sentence = message.Sentence(sentence)
	s.WaitingFor, s.Since = "", nil
	if reason != ReasonIdle {
		d.Sentence = sentence
		s.WaitingFor, s.Since = sentence, d.since(sentence)
	}
	for _, c := range d.conditions(reason, sentence) {
		c.ObservedGeneration, c.LastTransitionTime = d.Instance.Generation, metav1.NewTime(d.Now)
		meta.SetStatusCondition(&s.Conditions, c)
	}
	d.stampPlans()
	s.Rollout = d.record(reason, sentence)
	d.keepQuiet(reason)
}

// keepQuiet keeps the messages for a while if nothing else has changed: a plan that
// waits and makes progress, or that soon continues, does not cause a write each time.
func (d *decider) keepQuiet(reason rollout.Reason) {
	if d.before.Since == nil || reason != ReasonInProgress || d.Status.Running() == nil {
		return
	}
	until := d.before.Since.Add(quietFor)
	quiet := d.Status
	quiet.WaitingFor, quiet.Since, quiet.Conditions, quiet.Rollout = d.before.WaitingFor, d.before.Since, d.before.Conditions, d.before.Rollout
	if d.Now.Before(until) && sameReasons(d.Status.Conditions, d.before.Conditions) && equality.Semantic.DeepEqual(quiet, *d.before) {
		if d.Status.WaitingFor != d.before.WaitingFor {
			d.wakeBy(until)
		}
		d.Status = quiet
	}
}

// sameReasons compares conditions without their messages.
func sameReasons(a, b []metav1.Condition) bool {
	return slices.EqualFunc(a, b, func(x, y metav1.Condition) bool {
		return x.Type == y.Type && x.Status == y.Status && x.Reason == y.Reason && x.ObservedGeneration == y.ObservedGeneration
	})
}

// stampPlans notes when the state of a plan changed.
func (d *decider) stampPlans() {
	for name, p := range d.Status.PlanStatus {
		before := d.before.PlanStatus[name]
		p.LastUpdatedTimestamp = before.LastUpdatedTimestamp
		if p.Status != v1beta1.NeverRun && !equality.Semantic.DeepEqual(p, before) {
			p.LastUpdatedTimestamp = wholeSecond(d.Now)
		}
		d.Status.PlanStatus[name] = p
	}
}

// since is when a message began to be true.
func (d *decider) since(message string) *metav1.Time {
	if d.before.WaitingFor == message && d.before.Since != nil {
		return d.before.Since
	}
	return wholeSecond(d.Now)
}

func wholeSecond(t time.Time) *metav1.Time {
	whole := metav1.NewTime(t.Truncate(time.Second))
	return &whole
}

// place is the first step in progress, as PHASE/STEP.
func (d *decider) place() string {
	e := d.Status.Running()
	if e == nil {
		return ""
	}
	for _, phase := range d.Status.PlanStatus[e.Plan].Phases {
		for _, step := range phase.Steps {
			if execution.IsInProgress(&step) {
				return phase.Name + "/" + step.Name
			}
		}
	}
	return ""
}

// summary is the state of the Instance as a reason and a message.
func (d *decider) summary() (reason rollout.Reason, message string) {
	e := d.Status.Execution
	switch {
	case d.Status.Running() != nil:
		return d.progress()
	case len(d.problems) > 0:
		return ReasonInvalid, choice.Sentences(d.problems)
	case d.block != nil:
		return d.block.Reason, d.block.Message
	case d.Status.AggregatedStatus.Status == v1beta1.FatalError && e != nil:
		return ReasonFatal, fmt.Sprintf("plan %s %s: %s", e.Plan, EndedAs(e.Result), e.Message)
	case d.Status.Attempted != nil:
		a := d.Status.Attempted
		return ReasonFatal, fmt.Sprintf("plan %s %s: %s", a.Plan, EndedAs(a.Result), a.Message)
	case d.Instance.DeletionTimestamp != nil:
		return ReasonDeleting, "Instance " + d.Instance.Name + " is being deleted"
	case d.next != "":
		return ReasonInProgress, d.beginning()
	case d.corrects:
		return ReasonDrifted, d.correcting()
	case d.unready != "":
		return ReasonUnready, d.unready
	default:
		return ReasonIdle, Idle(d.Status.Drift)
	}
}

// Idle is the message of an Instance with nothing to do, with what differs from what was applied.
func Idle(d *v1beta1.Drift) string {
	if d == nil {
		return IdleSentence
	}
	return IdleSentence + "; " + task.DriftSentence(d)
}

// progress is what the running plan waits for.
func (d *decider) progress() (reason rollout.Reason, message string) {
	answer := d.At()
	switch {
	case d.block != nil:
		return d.block.Reason, d.block.Message
	case answer.Hold != nil:
		message = answer.Hold.Message
		if r := answer.Hold.Reason; r.IsGate() && len(d.problems) == 0 {
			return r, message
		}
	case answer.Step != nil:
		message = d.starting(answer.Step)
	}
	if len(d.problems) > 0 {
		message += "; " + choice.Sentences(d.problems)
	}
	return ReasonInProgress, message
}

// starting is the message of a task that makes its writes. While a task is retried, the
// message of its failure stays.
func (d *decider) starting(step *rollout.Step) string {
	name := step.Path[len(step.Path)-1]
	if strings.HasPrefix(d.before.WaitingFor, name+" ") {
		return d.before.WaitingFor
	}
	return name + " is starting"
}

// beginning is the message of an Instance whose next plan begins in the next pass.
func (d *decider) beginning() string {
	if len(d.Writes) > 0 {
		if refusal, ok := d.Refusals.Of(&d.Writes[0]); ok {
			return "plan " + d.next + " is waiting: cannot update Instance " + d.Instance.Name + ": " + refusal.Reason
		}
	}
	return "plan " + d.next + " is starting"
}

// conditions are Ready, Reconciling and Stalled, without their times.
func (d *decider) conditions(reason rollout.Reason, message string) []metav1.Condition {
	stuck := reason == ReasonDrifted && d.helpless
	running := reason == ReasonInProgress || d.Status.Running() != nil && d.block == nil && reason != rollout.ReasonGateRefused
	stalled := slices.Contains([]rollout.Reason{ReasonInvalid, ReasonFatal, ReasonNoContent, rollout.ReasonGateRefused}, reason) || stuck
	ready := kube.Truth(reason == ReasonIdle)
	if running {
		ready = metav1.ConditionUnknown
	}
	conditions := []metav1.Condition{
		{Type: ring.ConditionReady, Status: ready, Reason: string(reason), Message: message},
		{Type: ring.ConditionReconciling, Status: kube.Truth(running || reason == ReasonNoVersion || reason == ReasonDeleting || reason == ReasonDrifted && !stuck), Reason: string(reason), Message: message},
		{Type: ring.ConditionStalled, Status: kube.Truth(stalled), Reason: string(reason), Message: message},
	}
	return append(conditions, d.drifted()...)
}

// drifted is a condition from when an object differs for the first time.
func (d *decider) drifted() []metav1.Condition {
	switch {
	case d.Status.Drift != nil:
		said := task.DriftSentence(d.Status.Drift)
		if d.corrects {
			said = d.correcting()
		}
		return []metav1.Condition{{Type: ConditionDrifted, Status: metav1.ConditionTrue, Reason: string(ReasonDrifted), Message: message.Sentence(said)}}
	case meta.FindStatusCondition(d.before.Conditions, ConditionDrifted) != nil:
		return []metav1.Condition{{Type: ConditionDrifted, Status: metav1.ConditionFalse, Reason: string(ReasonIdle), Message: "all objects are as they were applied"}}
	default:
		return nil
	}
}

// EndedAs is the state of a plan that ended without being complete.
func EndedAs(r v1beta1.Result) string {
	if r == v1beta1.ResultFailed {
		return "failed"
	}
	return "is stopped"
}
