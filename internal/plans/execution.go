package plans

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
)

// HistoryLimit is how many executions of each plan are remembered.
const HistoryLimit = 10

// beginning is what an execution begins with.
type beginning struct {
	Choice

	uid types.UID
	// advances: its success brings the spec about.
	advances bool
	// done are phases of an earlier try of which the complete steps stay so.
	done []v1beta1.PhaseStatus
}

// begin begins an execution and takes its first steps, all of it in one status.
func (d *decision) begin(b beginning) {
	s, version := &d.status, d.o.Version
	s.Execution = &v1beta1.Execution{
		UID: b.uid, Plan: b.Plan, Cause: b.Cause, Changed: b.Changed, Spec: *d.o.Instance.Spec.DeepCopy(),
		ContentHash: version.Hash, Advances: b.advances, StartedAt: *d.microNow(),
	}
	if b.Cause == v1beta1.CauseDelete {
		s.Execution.Spec.Parameters = d.lastParameters()
	}
	if !d.answers(b) {
		s.Execution.Spec.PlanExecution = v1beta1.PlanExecution{}
	}
	if b.advances {
		s.ImmutableParameters = immutables(version.Spec, d.o.Instance.Spec.Parameters, s.ImmutableParameters)
	}
	s.PlanStatus = d.planStatuses()
	fresh := statusOf(b.Plan, version.Spec, v1beta1.Pending)
	fresh.UID = b.uid
	keepDone(fresh.Phases, b.done)
	s.PlanStatus[b.Plan] = fresh
	s.AggregatedStatus = v1beta1.AggregatedStatus{Status: v1beta1.Pending, ActivePlan: b.Plan}
	d.pin = version
	d.advance()
}

// lastParameters are those with which an Instance that is deleted is cleaned up.
// They cannot be fixed any more, so if they are wrong those count that were
// applied.
func (d *decision) lastParameters() map[string]string {
	applied := d.status.LastAppliedInstanceSpec
	_, problems := Values(d.o.Version.Spec, d.o.Instance.Spec.Parameters, d.status.ImmutableParameters)
	if len(problems) == 0 || applied == nil {
		return maps.Clone(d.o.Instance.Spec.Parameters)
	}
	return maps.Clone(applied.Parameters)
}

// answers is true if the plan that begins is the one that somebody asks for. What
// an Instance that is created asks for is deploy, whatever it says.
func (d *decision) answers(b beginning) bool {
	return b.Cause == v1beta1.CauseCreate || b.Plan == d.o.Instance.Spec.PlanExecution.PlanName
}

// planStatuses has an entry for each plan of the OperatorVersion. What has run
// stays as it was; what has not is listed as it is now.
func (d *decision) planStatuses() map[string]v1beta1.PlanStatus {
	all := map[string]v1beta1.PlanStatus{}
	for name := range d.o.Version.Spec.Plans {
		was, ok := d.status.PlanStatus[name]
		if !ok || was.Status == v1beta1.NeverRun || was.Status == "" {
			was = statusOf(name, d.o.Version.Spec, v1beta1.NeverRun)
		}
		all[name] = was
	}
	return all
}

func statusOf(name string, version *v1beta1.OperatorVersionSpec, s v1beta1.ExecutionStatus) v1beta1.PlanStatus {
	plan := version.Plans[name]
	status := v1beta1.PlanStatus{Name: name, Status: s}
	for _, phase := range plan.Phases {
		ps := v1beta1.PhaseStatus{Name: phase.Name, Status: s}
		for _, step := range phase.Steps {
			ps.Steps = append(ps.Steps, v1beta1.StepStatus{Name: step.Name, Status: s})
		}
		status.Phases = append(status.Phases, ps)
	}
	return status
}

// keepDone keeps the steps that were complete.
func keepDone(phases, done []v1beta1.PhaseStatus) {
	for i := range phases {
		for j := range phases[i].Steps {
			step := &phases[i].Steps[j]
			if was := findStep(done, phases[i].Name, step.Name); was != nil && was.Status == v1beta1.Complete {
				*step = *was
			}
		}
	}
}

func findStep(phases []v1beta1.PhaseStatus, phase, step string) *v1beta1.StepStatus {
	for i := range phases {
		if phases[i].Name != phase {
			continue
		}
		for j := range phases[i].Steps {
			if phases[i].Steps[j].Name == step {
				return &phases[i].Steps[j]
			}
		}
	}
	return nil
}

// end ends the execution that runs, if one does: its plan has a state that is
// final, the snapshot moves if it succeeded, and the history has an entry.
func (d *decision) end(result v1beta1.Result, message string) {
	e := d.execution()
	if e == nil {
		return
	}
	s := &d.status
	e.FinishedAt, e.Result, e.Message = d.microNow(), result, message
	final := v1beta1.FatalError
	if result == v1beta1.ResultComplete {
		final = v1beta1.Complete
	}
	s.AggregatedStatus = v1beta1.AggregatedStatus{Status: final}
	s.PlanStatus = maps.Clone(s.PlanStatus)
	s.PlanStatus[e.Plan] = ended(s.PlanStatus[e.Plan], final, message)
	switch {
	case !e.Advances:
	case result == v1beta1.ResultComplete:
		s.LastAppliedInstanceSpec, s.Attempted = target(&e.Spec), nil
	default:
		touched := e.Touched || s.Attempted != nil && s.Attempted.Touched
		s.Attempted = &v1beta1.Attempt{Spec: *target(&e.Spec), Plan: e.Plan, Touched: touched, Result: result, Message: message}
	}
	s.History = remembered(s.History, e)
	d.writes = nil
}

// ended is a plan in its final state. What was on its way in it has failed.
func ended(p v1beta1.PlanStatus, final v1beta1.ExecutionStatus, message string) v1beta1.PlanStatus {
	p.Status, p.Message = final, message
	for i := range p.Phases {
		phase := &p.Phases[i]
		phase.Status = endedAs(phase.Status, final)
		for j := range phase.Steps {
			step := &phase.Steps[j]
			step.Status, step.RetryAt = endedAs(step.Status, final), nil
		}
	}
	return p
}

func endedAs(s, final v1beta1.ExecutionStatus) v1beta1.ExecutionStatus {
	if s == v1beta1.InProgress || s == v1beta1.Error {
		return final
	}
	return s
}

// remembered is the history with an execution that has ended.
func remembered(history []v1beta1.PastExecution, e *v1beta1.Execution) []v1beta1.PastExecution {
	past := v1beta1.PastExecution{
		UID: e.UID, Plan: e.Plan, Cause: e.Cause, Changed: e.Changed, OperatorVersion: e.Spec.OperatorVersion.Name, ContentHash: e.ContentHash,
		StartedAt: e.StartedAt, FinishedAt: *e.FinishedAt, Result: e.Result, Message: e.Message,
	}
	kept, seen := []v1beta1.PastExecution{past}, 1
	for _, old := range history {
		if old.Plan == e.Plan {
			seen++
		}
		if old.Plan != e.Plan || seen <= HistoryLimit {
			kept = append(kept, old)
		}
	}
	return kept
}

// content is what the execution began with, nil if that is gone.
func (d *decision) content(e *v1beta1.Execution) *Version {
	i := slices.IndexFunc([]*Version{d.o.Version, d.o.Pinned}, func(v *Version) bool { return v != nil && v.Hash == e.ContentHash })
	return [...]*Version{nil, d.o.Version, d.o.Pinned}[i+1]
}
