package record

import (
	"time"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
)

// told is what one write of the status of an Instance tells.
type told struct {
	*Recorder

	at       time.Duration
	instance *v1beta1.Instance
}

func (t told) tell(unit, does string) {
	t.step(Step{
		At: Offset(t.at), Ring: RingPlans, Namespace: t.instance.Namespace, Object: Reference("Instance", t.instance.Name), Unit: unit, Does: does,
	})
}

// instance sees how the plan of an Instance goes. What one write of the status says
// is one decision.
func (r *Recorder) instance(at time.Duration, before, after *v1beta1.Instance) {
	if before == nil || after == nil || after.Status.Execution == nil {
		return
	}
	r.Begin()
	t := told{r, at, after}
	plan := after.Status.Execution.Plan
	was, is := v1beta1.PlanStatus{}, after.Status.PlanStatus[plan]
	if e := before.Status.Execution; e != nil && e.UID == after.Status.Execution.UID {
		was = before.Status.PlanStatus[plan]
	}
	unit := "plan " + plan
	t.begins(unit, was.Status, is.Status)
	for i := range is.Phases {
		phase := &is.Phases[i]
		for j := range phase.Steps {
			step := phase.Name + "/" + phase.Steps[j].Name
			t.begins("step "+step, stepBefore(was, i, j), phase.Steps[j].Status)
			t.ends("step "+step, stepBefore(was, i, j), phase.Steps[j].Status)
		}
	}
	t.ends(unit, was.Status, is.Status)
}

// stepBefore is the state that a step had.
func stepBefore(was v1beta1.PlanStatus, phase, step int) v1beta1.ExecutionStatus {
	if phase >= len(was.Phases) || step >= len(was.Phases[phase].Steps) {
		return ""
	}
	return was.Phases[phase].Steps[step].Status
}

// begins tells of what has left the state in which it waits. A plan that is there is
// one that has begun.
func (t told) begins(unit string, was, is v1beta1.ExecutionStatus) {
	if !hasBegun(was) && hasBegun(is) {
		t.tell(unit, "begins")
	}
}

func hasBegun(s v1beta1.ExecutionStatus) bool {
	return s != "" && s != v1beta1.NeverRun && s != v1beta1.Pending
}

func (t told) ends(unit string, was, is v1beta1.ExecutionStatus) {
	switch {
	case was == is:
	case is == v1beta1.Complete:
		t.tell(unit, "is complete")
	case is == v1beta1.FatalError:
		t.tell(unit, "has failed")
	}
}
