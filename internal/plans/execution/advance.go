package execution

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/task"
	"github.com/spillway-dev/spillway/internal/plans/write"
	"github.com/spillway-dev/spillway/internal/replay"
	"github.com/spillway-dev/spillway/rollout"
)

// Outcome is how far an execution came in one pass.
type Outcome struct {
	// Needs must be read first; the rest is empty while it is not.
	Needs task.Needs
	// Failed is why the execution failed for good, empty if it did not.
	Failed string
	// Kept says what is not deleted though it may be outdated, empty if nothing is.
	Kept string
	// Plan is the engine's decision.
	Plan rollout.Plan
	// Writes are those that the engine lets tasks make now, and those of gates.
	Writes []write.Write
	// Wake is when a write that was refused is made again, zero for never.
	Wake time.Time
}

// Advance takes an execution as far as it goes without waiting: steps that need
// nothing are complete immediately, and the next ones start in the same pass. It
// records the progress in the status of the Instance.
func Advance(now time.Time, tasks *task.Run, status *v1beta1.InstanceStatus) Outcome {
	plan := tasks.Version.Spec.Plans[tasks.Execution.Plan]
	r := &run{Run: tasks, now: now, plan: &plan, status: status}
	r.own()
	return r.advance()
}

// run is an execution being advanced.
type run struct {
	*task.Run

	now    time.Time
	plan   *v1beta1.Plan
	status *v1beta1.InstanceStatus
	// phases are the new status of the plan's phases.
	phases []v1beta1.PhaseStatus
	// active are the steps in progress; pruning is what follows the last step.
	active  []activeStep
	pruning *task.Finding
}

// activeStep is a step in progress, with the findings of its tasks.
type activeStep struct {
	phase    string
	status   *v1beta1.StepStatus
	names    []string
	findings []task.Finding
}

// own copies the status of the plan, so that the run may change it.
func (r *run) own() {
	p := r.status.PlanStatus[r.Execution.Plan]
	r.phases = p.DeepCopy().Phases
	if len(r.phases) == 0 && len(r.plan.Phases) > 0 {
		r.phases = PlanStatus(r.Execution.Plan, r.Version.Spec, v1beta1.Pending).Phases
	}
	r.StartedAt = func(phase, step string) *metav1.MicroTime {
		if s := r.step(phase, step); s != nil {
			return s.StartedAt
		}
		return nil
	}
}

// advance assesses the steps in progress, asks the engine, and starts the steps that
// it permits, until none is left to start.
func (r *run) advance() (out Outcome) {
	begins := false
	for started := true; started; {
		r.assess()
		if needs := r.needs(); !needs.IsEmpty() {
			return Outcome{Needs: needs}
		}
		if why := r.fatal(); why != "" {
			out.Failed = why
			return out
		}
		r.record()
		if r.isOver() && r.pruning == nil {
			continue
		}
		out.Plan = replay.Decide("Instance "+r.Snapshot.Instance.Namespace+"/"+r.Snapshot.Instance.Name, r.tree())
		if out.Failed = failure(&out.Plan); out.Failed != "" {
			return out
		}
		started = r.start(out.Plan.Steps)
		begins = begins || started
	}
	if begins {
		r.status.Forecast = r.forecast()
	}
	if out.Plan.Phase == rollout.PhaseComplete {
		out.Kept = r.left()
		return out
	}
	out.Writes = r.writes(out.Plan.Steps)
	if len(out.Writes) > 0 {
		r.Execution.Touched = true
	}
	gates, wake := r.gateWrites(&out.Plan)
	out.Writes, out.Wake = append(out.Writes, gates...), wake
	return out
}

// left is what the plan does not prune, and why.
func (r *run) left() string {
	if r.pruning == nil {
		return ""
	}
	return strings.Join(r.pruning.Left, "; ")
}

// assess finds out the state of the tasks of all steps in progress.
func (r *run) assess() {
	r.active = nil
	for i := range r.plan.Phases {
		phase := &r.plan.Phases[i]
		for j := range phase.Steps {
			if s := r.step(phase.Name, phase.Steps[j].Name); s != nil && IsInProgress(s) {
				r.active = append(r.active, r.assessStep(phase.Name, &phase.Steps[j], s))
			}
		}
	}
	if r.isOver() {
		pruning := r.Prune(r.status.Inventory)
		r.pruning = &pruning
	}
}

func (r *run) assessStep(phase string, step *v1beta1.Step, s *v1beta1.StepStatus) activeStep {
	a := activeStep{phase: phase, status: s, names: taskNames(step)}
	for _, name := range a.names {
		a.findings = append(a.findings, r.Assess(phase, step.Name, name))
	}
	return a
}

func (r *run) needs() task.Needs {
	all := task.Needs{}
	for _, f := range r.findings() {
		all.Add(f.Needs)
	}
	return all
}

// fatal is why the plan fails for good, empty if it does not. A single task fails the
// whole plan.
func (r *run) fatal() string {
	if n := r.objects(); n > task.MaxObjects {
		return fmt.Sprintf("the Instance would have %d objects; it may have %d", n, task.MaxObjects)
	}
	for _, f := range r.findings() {
		if f.Fatal != "" {
			return f.Fatal
		}
		for _, w := range f.Writes {
			if refusal, _ := r.Snapshot.Refusals.Of(&w); refusal.Fatal {
				return refusal.Reason
			}
		}
	}
	return ""
}

// objects is how many objects are in the inventory, with those that are about to be
// applied.
func (r *run) objects() int {
	known := map[string]bool{}
	name := func(ref object.Ref) string { return ref.GroupKind().String() + " " + ref.Namespace + "/" + ref.Name }
	for _, entry := range r.status.Inventory {
		known[name(object.EntryRef(entry))] = true
	}
	for _, f := range r.findings() {
		for _, ref := range f.Applies {
			known[name(ref)] = true
		}
	}
	return len(known)
}

// findings are those of all steps in progress, and of the pruning.
func (r *run) findings() []*task.Finding {
	var all []*task.Finding
	for i := range r.active {
		for j := range r.active[i].findings {
			all = append(all, &r.active[i].findings[j])
		}
	}
	if r.pruning != nil {
		all = append(all, r.pruning)
	}
	return all
}

// failure says which unit exceeded its timeout or failed.
func failure(p *rollout.Plan) string {
	i := slices.IndexFunc(p.Holds, func(h rollout.Hold) bool {
		return h.Reason == rollout.ReasonDeadline || h.Reason == rollout.ReasonFailed
	})
	if i < 0 {
		return ""
	}
	return p.Holds[i].Message
}

// start starts the steps that the engine permits and that have not started yet.
func (r *run) start(steps []rollout.Step) bool {
	started := false
	for _, s := range steps {
		phase, step, ok := r.at(s.Path)
		if !ok || IsInProgress(step) {
			continue
		}
		step.Status, step.StartedAt = v1beta1.InProgress, r.stamp()
		if phase.StartedAt == nil {
			phase.StartedAt = r.stamp()
		}
		started = true
	}
	if started {
		r.recordAbove()
	}
	return started
}

// writes are those of the tasks that the engine permits.
func (r *run) writes(steps []rollout.Step) []write.Write {
	var writes []write.Write
	for _, s := range steps {
		if f := r.found(s.Path); f != nil {
			writes = append(writes, f.Writes...)
		}
	}
	return writes
}

// isOver is true once all steps are complete.
func (r *run) isOver() bool {
	return !slices.ContainsFunc(r.phases, func(p v1beta1.PhaseStatus) bool {
		return slices.ContainsFunc(p.Steps, func(s v1beta1.StepStatus) bool { return s.Status != v1beta1.Complete })
	})
}
