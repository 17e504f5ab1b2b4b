package decision

import (
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// order is what a user asks of an execution by annotation: to abandon, retry or
// supersede it.
type order struct {
	UID    types.UID `json:"uid"`
	Reason string    `json:"reason,omitempty"`
	By     string    `json:"by,omitempty"`
}

func (d *decider) isAbandoned(e *v1beta1.Execution) bool {
	order := d.order(vocabulary.AbandonPlan)
	if !order.is(e) {
		return false
	}
	d.end(v1beta1.ResultAbandoned, "abandoned"+order.clause())
	d.Again = true
	return true
}

// clause says who gave the order, and why.
func (o order) clause() string {
	s := ""
	if o.By != "" {
		s = " by " + o.By
	}
	if o.Reason != "" {
		s += ": " + o.Reason
	}
	return s
}

// retries is the link of a user who retries an execution that failed.
func (d *decider) retries() bool {
	e := d.Status.Execution
	order := d.order(vocabulary.RetryPlan)
	if !order.is(e) || !isFailure(e.Result) || !choice.SameTarget(d.Instance.Namespace, &e.Spec, &d.Instance.Spec) {
		return false
	}
	if _, ok := d.Version.Spec.Plans[e.Plan]; !ok {
		return d.stalls(choice.Problem{
			Field:  "annotation " + vocabulary.RetryPlan.Native,
			Action: "OperatorVersion " + d.Version.Name + " has no plan " + e.Plan + "; remove the annotation",
		})
	}
	d.retry(e)
	return true
}

// is true of an order about this execution.
func (o order) is(e *v1beta1.Execution) bool { return e != nil && o.UID != "" && o.UID == e.UID }

// order reads an annotation; an invalid one is a problem.
func (d *decider) order(key vocabulary.Key) order {
	o, problem := orderOf(d.Instance.Annotations, key)
	if problem != nil && !slices.Contains(d.problems, *problem) {
		d.stalls(*problem)
	}
	return o
}

// orderOf reads an order. A value that is not JSON is the uid alone.
func orderOf(annotations map[string]string, key vocabulary.Key) (order, *choice.Problem) {
	value, name, ok := key.Lookup(annotations)
	value = strings.TrimSpace(value)
	switch {
	case !ok || value == "":
		return order{}, nil
	case !strings.HasPrefix(value, "{"):
		return order{UID: types.UID(value)}, nil
	}
	o := order{}
	if err := json.Unmarshal([]byte(value), &o); err != nil || o.UID == "" {
		return order{}, &choice.Problem{Field: "annotation " + name, Action: `must be the uid of an execution, or JSON such as {"uid":"...","reason":"...","by":"..."}`}
	}
	return o, nil
}

func isFailure(r v1beta1.Result) bool {
	return r == v1beta1.ResultFailed || r == v1beta1.ResultAbandoned
}

// retry begins a plan again; steps that are complete stay so.
func (d *decider) retry(e *v1beta1.Execution) {
	cause := v1beta1.CauseRetry
	if e.Cause == v1beta1.CauseDelete {
		cause = e.Cause
	}
	d.begin(beginning{
		Choice: choice.Choice{Plan: e.Plan, Cause: cause, Changed: e.Changed}, uid: d.NewUID,
		advances: e.Advances, done: d.Status.PlanStatus[e.Plan].Phases,
	})
}
