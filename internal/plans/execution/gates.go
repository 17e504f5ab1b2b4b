package execution

import (
	"slices"
	"strings"
	"time"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/gates/ask"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/task"
	"github.com/spillway-dev/spillway/internal/plans/write"
	"github.com/spillway-dev/spillway/rollout"
)

// gateRetry is when a RolloutGate that the API server refused is created again.
const gateRetry = time.Minute

// question is what a gate asks in this execution. Its revision is the execution, so that
// each one is asked about again.
func (r *run) question(g *choice.Gate) ask.Question {
	i := r.Snapshot.Instance
	return ask.Question{
		Target: ask.Target{UID: i.UID, TargetReference: v1alpha1.TargetReference{
			APIVersion: v1beta1.GroupVersion.String(), Kind: "Instance", Name: i.Name,
		}},
		Stage:    strings.Join(slices.DeleteFunc([]string{g.Plan, g.Phase, g.Step}, func(name string) bool { return name == "" }), "/"),
		Revision: string(r.Execution.UID), Gate: g.GateReference, When: ask.WhenOf(g.When),
	}
}

// gates are those of the plan, of a phase or of a step, as they are now.
func (r *run) gates(phase, step string) []rollout.Gate {
	var gates []rollout.Gate
	for i := range r.Gates {
		g := &r.Gates[i]
		if g.Plan != r.Execution.Plan || g.Phase != phase || g.Step != step {
			continue
		}
		q := r.question(g)
		gate := r.Snapshot.Gates.Engine(&q)
		create := r.createGate(&q)
		if refusal, ok := r.Snapshot.Refusals.Of(&create); ok && r.Snapshot.Gates.Find(&q) == nil {
			gate.Message = "cannot create RolloutGate " + q.Name() + ": " + refusal.Reason
		}
		gates = append(gates, gate)
	}
	return gates
}

// unitOf is the path of the unit that a gate stands at.
func unitOf(g *choice.Gate) []string {
	path := []string{planUnit + g.Plan}
	if g.Phase != "" {
		path = append(path, phaseUnit+g.Phase)
	}
	if g.Step != "" {
		path = append(path, stepUnit+g.Step)
	}
	return path
}

// gateWrites create the RolloutGates that the plan has reached, say of those during a unit that it
// is over, and delete those of other executions. One that the API server refused is created
// again at wake.
func (r *run) gateWrites(plan *rollout.Plan) (writes []write.Write, wake time.Time) {
	for i := range r.Gates {
		g := &r.Gates[i]
		if g.Plan != r.Execution.Plan {
			continue
		}
		unit, q := plan.Group(unitOf(g)...), r.question(g)
		for _, g := range r.Snapshot.Gates.Ending(q.Stage, q.Revision, unit) {
			writes = append(writes, EndGate(r.Snapshot, &g, r.now))
		}
		if !ask.IsReached(q.When, unit) || r.Snapshot.Gates.Find(&q) != nil {
			continue
		}
		create := r.createGate(&q)
		if refusal, ok := r.Snapshot.Refusals.Of(&create); ok && r.now.Before(refusal.At.Add(gateRetry)) {
			wake = refusal.At.Add(gateRetry)
			continue
		}
		writes = append(writes, create)
	}
	for _, g := range r.Snapshot.Gates.Outdated(func(_, revision string) bool { return revision == string(r.Execution.UID) }) {
		writes = append(writes, write.Write{Act: write.DeleteGate, Ref: gateRef(r.Snapshot, g.Name), UID: g.UID, ResourceVersion: g.ResourceVersion})
	}
	return writes, wake
}

func (r *run) createGate(q *ask.Question) write.Write {
	return write.Write{Act: write.CreateGate, Ref: gateRef(r.Snapshot, q.Name()), Question: q, At: r.now, Execution: r.Execution.UID}
}

// EndGate says of a gate during a unit that this is over.
func EndGate(s *task.Snapshot, g *ask.Gate, now time.Time) write.Write {
	return write.Write{Act: write.EndGate, Ref: gateRef(s, g.Name), Gate: g, At: now}
}

func gateRef(s *task.Snapshot, name string) object.Ref {
	return object.Ref{GroupVersionKind: v1alpha1.GroupVersion.WithKind("RolloutGate"), Namespace: s.Instance.Namespace, Name: name}
}
