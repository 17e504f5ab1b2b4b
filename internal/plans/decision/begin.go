package decision

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/execution"
	"github.com/spillway-dev/spillway/internal/plans/task"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// beginning is what an execution begins with.
type beginning struct {
	choice.Choice

	uid types.UID
	// advances: when the execution succeeds, its spec is the one last applied.
	advances bool
	// done are phases of an earlier try; their complete steps stay so.
	done []v1beta1.PhaseStatus
}

// begin begins an execution and starts its first steps, all in one status.
func (d *decider) begin(b beginning) {
	s, version := &d.Status, d.Version
	s.History = d.undone(b.Cause)
	by := d.changedBy(b.Cause)
	s.Execution = &v1beta1.Execution{
		UID: b.uid, Plan: b.Plan, Cause: b.Cause, Changed: b.Changed, Spec: *d.Instance.Spec.DeepCopy(),
		ContentHash: version.Hash, Advances: b.advances, StartedAt: d.stamp(), ChangedBy: by,
	}
	if b.Cause == v1beta1.CauseDelete {
		s.Execution.Spec.Parameters = choice.CleanupParameters(d.Instance, &d.Status, d.Version)
	}
	if !d.answers(b) {
		s.Execution.Spec.PlanExecution = v1beta1.PlanExecution{}
	}
	if b.advances {
		s.ImmutableParameters = choice.Immutables(version.Spec, d.Instance.Spec.Parameters, s.ImmutableParameters)
	}
	s.PlanStatus = d.planStatuses()
	fresh := execution.PlanStatus(b.Plan, version.Spec, v1beta1.Pending)
	fresh.UID = b.uid
	execution.KeepComplete(fresh.Phases, b.done)
	s.PlanStatus[b.Plan] = fresh
	s.AggregatedStatus = v1beta1.AggregatedStatus{Status: v1beta1.Pending, ActivePlan: b.Plan}
	d.Pin = version
	d.advance()
}

// undone is the history once an execution begins: who has written what is applied next ends what was not complete.
func (d *decider) undone(next v1beta1.Cause) []v1beta1.PastExecution {
	history := d.Status.History
	isChange := next == v1beta1.CauseCreate || next == v1beta1.CauseParameters || next == v1beta1.CauseUpgrade
	if len(history) == 0 || history[0].Result == v1beta1.ResultComplete || !history[0].Advances || !isChange {
		return history
	}
	history = slices.Clone(history)
	history[0].UndoneBy = d.changedBy(next)
	return history
}

// changedBy is who makes an execution begin, while the status has the one before; empty if that is not known.
func (d *decider) changedBy(cause v1beta1.Cause) string {
	switch cause {
	case v1beta1.CauseCreate, v1beta1.CauseParameters, v1beta1.CauseUpgrade:
		_, by := kube.LastWrite(d.Instance, applied()...)
		return by
	case v1beta1.CauseRetry:
		return message.Cut(d.order(vocabulary.RetryPlan).By, ring.NameLength)
	default:
		return ""
	}
}

// applied are the fields of an Instance of which a change is applied.
func applied() []string { return []string{"parameters", "operatorVersion"} }

// Attribute leaves of who has written an Instance what the history tells.
func Attribute(obj client.Object) { obj.SetManagedFields(kube.FullAttribution(obj, applied()...)) }

// answers is true if the execution answers the request of the user. A new Instance is
// deployed, whatever it requests.
func (d *decider) answers(b beginning) bool {
	return b.Cause == v1beta1.CauseCreate || b.Plan == d.Instance.Spec.PlanExecution.PlanName
}

// planStatuses has an entry for each plan of the OperatorVersion. A plan that has run
// keeps its status; one that has not is listed as it is now.
func (d *decider) planStatuses() map[string]v1beta1.PlanStatus {
	all := map[string]v1beta1.PlanStatus{}
	for name := range d.Version.Spec.Plans {
		status, ok := d.Status.PlanStatus[name]
		if !ok || status.Status == v1beta1.NeverRun || status.Status == "" {
			status = execution.PlanStatus(name, d.Version.Spec, v1beta1.NeverRun)
		}
		all[name] = status
	}
	return all
}

// advance takes the running execution as far as it goes without waiting.
func (d *decider) advance() {
	e := d.Status.Running()
	version := d.content(e)
	if version == nil {
		d.block = &rollout.Block{Reason: ReasonNoContent, Message: "the content of OperatorVersion " + e.Spec.OperatorVersion.Name +
			" that plan " + e.Plan + " began with no longer exists; abandon the plan"}
		return
	}
	if is := d.Instance.Spec.ServiceAccountName; e.Spec.ServiceAccountName != is {
		e.Spec.ServiceAccountName = is // another account is answered something else: what was refused is tried immediately
		execution.TryNow(d.Status.PlanStatus[e.Plan].Phases)
	}
	gates, wrong := choice.Gates(d.Instance, version, d.Version)
	if problem := d.accountProblem(); problem != nil {
		wrong = append(wrong, *problem)
	}
	if wrong = append(wrong, d.lacking...); len(wrong) > 0 {
		d.block = &rollout.Block{Reason: ReasonInvalid, Message: choice.Sentences(wrong)}
		return
	}
	d.Rules = task.NewRules(version.Spec.Health)
	_, ok := version.Spec.Plans[e.Plan]
	values, problems := d.values(version, e.Spec.Parameters)
	switch {
	case !ok:
		d.fail("OperatorVersion " + e.Spec.OperatorVersion.Name + " has no plan " + e.Plan)
	case len(problems) > 0:
		d.fail(choice.Sentences(problems))
	default:
		d.follow(execution.Advance(d.Now, &task.Run{Snapshot: &d.Snapshot.Snapshot, Execution: e, Version: version, Values: values, Gates: gates}, &d.Status))
	}
}

// content is what the execution began with, nil if that no longer exists.
func (d *decider) content(e *v1beta1.Execution) *choice.Version {
	for _, v := range []*choice.Version{d.Version, d.Pinned} {
		if v != nil && v.Hash == e.ContentHash {
			return v
		}
	}
	return nil
}

// follow makes the outcome of an execution part of the decision.
func (d *decider) follow(out execution.Outcome) {
	d.Needs, d.Plan, d.Writes = out.Needs, out.Plan, out.Writes
	d.wakeBy(out.Wake)
	switch {
	case out.Failed != "":
		d.fail(out.Failed)
	case out.Plan.Phase == rollout.PhaseComplete:
		d.end(v1beta1.ResultComplete, out.Kept)
		d.Again = true
	}
}

func (d *decider) fail(why string) {
	d.end(v1beta1.ResultFailed, why)
	d.Again = true
}

// end ends the execution that is running, if there is one: its plan gets a final state,
// the snapshot of what was last applied moves if it succeeded, and the history gets an
// entry.
func (d *decider) end(result v1beta1.Result, why string) {
	s := &d.Status
	e := s.Running()
	if e == nil {
		return
	}
	why = message.Sentence(why)
	e.FinishedAt, e.Result, e.Message = new(d.stamp()), result, why
	final := v1beta1.FatalError
	if result == v1beta1.ResultComplete {
		final = v1beta1.Complete
	}
	s.AggregatedStatus = v1beta1.AggregatedStatus{Status: final}
	s.PlanStatus = maps.Clone(s.PlanStatus)
	s.PlanStatus[e.Plan] = execution.Ended(s.PlanStatus[e.Plan], final, why)
	switch {
	case !e.Advances:
	case result == v1beta1.ResultComplete:
		s.LastAppliedInstanceSpec, s.LastAppliedContentHash, s.Attempted = choice.Target(&e.Spec), e.ContentHash, nil
	default:
		touched := e.Touched || s.Attempted != nil && s.Attempted.Touched
		s.Attempted = &v1beta1.Attempt{Spec: *choice.Target(&e.Spec), ContentHash: e.ContentHash, Plan: e.Plan, Touched: touched, Result: result, Message: why}
	}
	s.History = execution.Record(s.History, e, s.PlanStatus[e.Plan].Phases)
	s.Forecast, d.Writes = nil, nil
}
