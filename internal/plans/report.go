package plans

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/rollout"
)

// The types of the conditions.
const (
	ConditionReady       = "Ready"
	ConditionReconciling = "Reconciling"
	ConditionStalled     = "Stalled"
)

// settled is how long the status keeps its words, if nothing else changes.
const settled = 10 * time.Second

// rest is the end of the chain: nothing is to be done. It looks whether what was
// applied does well.
func (d *decision) rest() {
	w := &work{o: d.o}
	for _, entry := range d.status.Inventory {
		ref := entryRef(entry)
		if !isWorkload(ref.GroupKind()) {
			continue
		}
		live, seen := d.o.Objects[ref]
		why, unseen := d.o.Unseen[ref]
		switch {
		case unseen:
			d.unready = why
		case !seen:
			d.needs.object(ref)
		case live == nil && d.unready == "":
			d.unready = ref.String() + " is gone"
		case live != nil && d.unready == "":
			d.unready = w.judge(ref, live, &d.needs).lacks
		}
	}
}

func isWorkload(gk schema.GroupKind) bool {
	return slices.Contains([]schema.GroupKind{deploymentKind, statefulSetKind, daemonSetKind}, gk)
}

// report completes the status with what people read.
func (d *decision) report() {
	s := &d.status
	s.ObservedGeneration = d.o.Instance.Generation
	s.Place = d.place()
	reason, message := d.verdict()
	s.WaitingFor, s.Since = "", nil
	if reason != ReasonIdle {
		d.sentence = message
		s.WaitingFor, s.Since = message, d.since(message)
	}
	for _, c := range d.conditions(reason, message) {
		c.ObservedGeneration, c.LastTransitionTime = d.o.Instance.Generation, metav1.NewTime(d.o.Now)
		meta.SetStatusCondition(&s.Conditions, c)
	}
	d.stamp()
	d.hush(reason)
}

// hush leaves the words as they are, for a while, where only they have changed: a
// plan that waits and makes progress, or that goes on soon, is not written about
// each time.
func (d *decision) hush(reason rollout.Reason) {
	if d.was.Since == nil || reason != ReasonInProgress {
		return
	}
	until := d.was.Since.Add(settled)
	quiet := d.status
	quiet.WaitingFor, quiet.Since, quiet.Conditions = d.was.WaitingFor, d.was.Since, d.was.Conditions
	if d.o.Now.Before(until) && sameWord(d.status.Conditions, d.was.Conditions) && equality.Semantic.DeepEqual(quiet, *d.was) {
		if d.status.WaitingFor != d.was.WaitingFor {
			d.sooner(until)
		}
		d.status = quiet
	}
}

// sameWord compares conditions but for their messages.
func sameWord(a, b []metav1.Condition) bool {
	return slices.EqualFunc(a, b, func(x, y metav1.Condition) bool {
		return x.Type == y.Type && x.Status == y.Status && x.Reason == y.Reason && x.ObservedGeneration == y.ObservedGeneration
	})
}

// stamp notes when the state of a plan changed.
func (d *decision) stamp() {
	for name, p := range d.status.PlanStatus {
		was := d.was.PlanStatus[name]
		p.LastUpdatedTimestamp = was.LastUpdatedTimestamp
		if p.Status != v1beta1.NeverRun && !equality.Semantic.DeepEqual(p, was) {
			p.LastUpdatedTimestamp = wholeSecond(d.o.Now)
		}
		d.status.PlanStatus[name] = p
	}
}

func wholeSecond(t time.Time) *metav1.Time {
	whole := metav1.NewTime(t.Truncate(time.Second))
	return &whole
}

// since is when a sentence began to be true.
func (d *decision) since(message string) *metav1.Time {
	if d.was.WaitingFor == message && d.was.Since != nil {
		return d.was.Since
	}
	return wholeSecond(d.o.Now)
}

// place is the first step that is on its way, as PHASE/STEP.
func (d *decision) place() string {
	e := d.execution()
	if e == nil {
		return ""
	}
	for _, phase := range d.status.PlanStatus[e.Plan].Phases {
		for _, step := range phase.Steps {
			if isOnItsWay(&step) {
				return phase.Name + "/" + step.Name
			}
		}
	}
	return ""
}

// verdict is the state of the Instance as a word and a sentence.
func (d *decision) verdict() (reason rollout.Reason, message string) {
	e := d.status.Execution
	switch {
	case d.execution() != nil:
		return d.progress()
	case len(d.problems) > 0:
		return ReasonInvalid, sentences(d.problems)
	case d.block != nil:
		return d.block.Reason, d.block.Message
	case d.status.AggregatedStatus.Status == v1beta1.FatalError && e != nil:
		return ReasonFatal, fmt.Sprintf("plan %s %s: %s", e.Plan, howItEnded[e.Result], e.Message)
	case d.status.Attempted != nil:
		a := d.status.Attempted
		return ReasonFatal, fmt.Sprintf("plan %s %s: %s", a.Plan, howItEnded[a.Result], a.Message)
	case d.unready != "":
		return ReasonUnready, d.unready
	default:
		return ReasonIdle, "nothing is to be done"
	}
}

// progress is what the plan that runs waits for.
func (d *decision) progress() (reason rollout.Reason, message string) {
	answer := d.plan.At()
	switch {
	case d.block != nil:
		return d.block.Reason, d.block.Message
	case answer.Hold != nil:
		message = answer.Hold.Message
	case answer.Step != nil:
		message = d.begins(answer.Step)
	}
	if len(d.problems) > 0 {
		message += "; " + sentences(d.problems)
	}
	return ReasonInProgress, message
}

// begins is the sentence for a task that is being done. One that is tried again
// is still said to have failed, until it has not.
func (d *decision) begins(step *rollout.Step) string {
	name := step.Path[len(step.Path)-1]
	if strings.HasPrefix(d.was.WaitingFor, name+" is waiting: ") {
		return d.was.WaitingFor
	}
	return name + " begins"
}

// conditions are Ready, Reconciling and Stalled, without their times.
func (d *decision) conditions(reason rollout.Reason, message string) []metav1.Condition {
	running := d.execution() != nil && d.block == nil
	stalled := reason == ReasonInvalid || reason == ReasonFatal || reason == ReasonNoContent
	ready := kube.Truth(reason == ReasonIdle)
	if running {
		ready = metav1.ConditionUnknown
	}
	return []metav1.Condition{
		{Type: ConditionReady, Status: ready, Reason: string(reason), Message: message},
		{Type: ConditionReconciling, Status: kube.Truth(running || reason == ReasonNoVersion), Reason: string(reason), Message: message},
		{Type: ConditionStalled, Status: kube.Truth(stalled), Reason: string(reason), Message: message},
	}
}

// howItEnded are results as they follow the name of a plan.
var howItEnded = map[v1beta1.Result]string{
	v1beta1.ResultFailed: "has failed", v1beta1.ResultAbandoned: "was given up", v1beta1.ResultSuperseded: "was superseded",
}
