package plans

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/rollout"
)

const (
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)

// advance takes the execution as far as it goes without waiting: steps that need
// nothing are complete at once, and the next ones begin in the same pass.
func (d *decision) advance() {
	e := d.execution()
	version := d.content(e)
	if version == nil {
		d.block = &rollout.Block{Reason: ReasonNoContent, Message: "the content of OperatorVersion " + e.Spec.OperatorVersion.Name +
			" with which plan " + e.Plan + " began is gone; abandon the plan"}
		return
	}
	plan, ok := version.Spec.Plans[e.Plan]
	values, problems := Values(version.Spec, e.Spec.Parameters, d.status.ImmutableParameters)
	switch {
	case !ok:
		d.fail("OperatorVersion " + e.Spec.OperatorVersion.Name + " has no plan " + e.Plan)
	case len(problems) > 0:
		d.fail(sentences(problems))
	default:
		d.run(&run{
			o: d.o, execution: e, version: version.Spec, plan: &plan, keepsAll: version.KeepsAll, values: values,
			pipes: pipesOf(d.o.Instance.Name, e.Plan, version.Spec), status: &d.status,
		})
	}
}

func (d *decision) fail(why string) {
	d.end(v1beta1.ResultFailed, why)
	d.again = true
}

// run looks at the steps that are on their way, asks the engine, and begins those
// that it lets go, until none is left to begin.
func (d *decision) run(r *run) {
	r.own()
	for begun := true; begun; {
		r.lookAtAll()
		if d.needs = r.needs(); !d.needs.IsEmpty() {
			return
		}
		if why := r.fatal(); why != "" {
			d.fail(why)
			return
		}
		r.note()
		if r.isOver() && r.pruning == nil {
			continue
		}
		d.tree = r.tree()
		d.plan = rollout.Decide(d.tree)
		if late := d.late(); late != "" {
			d.fail(late)
			return
		}
		begun = r.begin(d.plan.Steps)
	}
	if d.plan.Phase == rollout.PhaseComplete {
		d.again = true
		d.end(v1beta1.ResultComplete, "")
		return
	}
	d.writes = r.writes(d.plan.Steps)
	if len(d.writes) > 0 {
		r.execution.Touched = true
	}
}

// late says which unit ran out of its time.
func (d *decision) late() string {
	i := slices.IndexFunc(d.plan.Holds, func(h rollout.Hold) bool {
		return h.Reason == rollout.ReasonDeadline || h.Reason == rollout.ReasonFailed
	})
	if i < 0 {
		return ""
	}
	return d.plan.Holds[i].Message
}

// stage is a step that is on its way, with how its tasks do.
type stage struct {
	phase    string
	status   *v1beta1.StepStatus
	names    []string
	findings []finding
}

// own makes the status of the plan the run's to change.
func (r *run) own() {
	p := r.status.PlanStatus[r.execution.Plan]
	r.phases = p.DeepCopy().Phases
	if len(r.phases) == 0 && len(r.plan.Phases) > 0 {
		r.phases = statusOf(r.execution.Plan, r.version, v1beta1.Pending).Phases
	}
}

// step is the status of a step.
func (r *run) step(phase, step string) *v1beta1.StepStatus { return findStep(r.phases, phase, step) }

// lookAtAll finds out how the tasks of all steps do that are on their way.
func (r *run) lookAtAll() {
	r.stages = nil
	for i := range r.plan.Phases {
		phase := &r.plan.Phases[i]
		for j := range phase.Steps {
			if s := r.step(phase.Name, phase.Steps[j].Name); s != nil && isOnItsWay(s) {
				r.stages = append(r.stages, r.lookAt(phase.Name, &phase.Steps[j], s))
			}
		}
	}
	if r.isOver() {
		r.pruning = r.prune()
	}
}

func isOnItsWay(s *v1beta1.StepStatus) bool {
	return s.Status == v1beta1.InProgress || s.Status == v1beta1.Error
}

func (r *run) lookAt(phase string, step *v1beta1.Step, s *v1beta1.StepStatus) stage {
	g := stage{phase: phase, status: s, names: taskNames(step)}
	for _, name := range g.names {
		g.findings = append(g.findings, r.look(phase, step.Name, name))
	}
	return g
}

// taskNames are the tasks of a step, each once.
func taskNames(step *v1beta1.Step) []string {
	var names []string
	for _, name := range step.Tasks {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// findings are those of all steps that are on their way, and of the pruning.
func (r *run) findings() []*finding {
	var all []*finding
	for i := range r.stages {
		for j := range r.stages[i].findings {
			all = append(all, &r.stages[i].findings[j])
		}
	}
	if r.pruning != nil {
		all = append(all, r.pruning)
	}
	return all
}

func (r *run) needs() Needs {
	all := Needs{}
	for _, f := range r.findings() {
		for _, ref := range f.needs.Objects {
			all.object(ref)
		}
		for _, gvk := range f.needs.Kinds {
			all.kind(gvk)
		}
	}
	return all
}

// fatal is why the plan fails for good, empty if it does not. A single task
// takes all with it.
func (r *run) fatal() string {
	for _, f := range r.findings() {
		if f.fatal != "" {
			return f.fatal
		}
		for _, w := range f.writes {
			if refusal := r.o.Refusals[w.Ref]; refusal.Fatal {
				return refusal.Reason
			}
		}
	}
	return ""
}

// note writes down what was found: which steps are complete, which have failed
// for the time being, and what is in the inventory.
func (r *run) note() {
	for i := range r.stages {
		r.noteStage(&r.stages[i])
	}
	for _, f := range r.findings() {
		r.noteObjects(f)
	}
	r.noteAbove()
}

func (r *run) noteStage(g *stage) {
	message, at := r.failure(g)
	switch {
	case g.isDone():
		*g.status = v1beta1.StepStatus{Name: g.status.Name, Status: v1beta1.Complete, StartedAt: g.status.StartedAt, FinishedAt: r.now()}
	case message != "":
		g.failed(message, at)
	case !g.hasWrites():
		*g.status = v1beta1.StepStatus{Name: g.status.Name, Status: v1beta1.InProgress, StartedAt: g.status.StartedAt}
	}
}

func (r *run) now() *metav1.MicroTime {
	return new(metav1.NewMicroTime(r.o.Now.Truncate(time.Microsecond)))
}

func (g *stage) isDone() bool {
	return !slices.ContainsFunc(g.findings, func(f finding) bool { return !f.isDone() })
}

func (g *stage) hasWrites() bool {
	return slices.ContainsFunc(g.findings, func(f finding) bool { return len(f.writes) > 0 })
}

// failure is what went wrong in a step, and when; never, if it is waited for.
func (r *run) failure(g *stage) (message string, at time.Time) {
	for _, f := range g.findings {
		for _, w := range f.writes {
			if refusal, ok := r.o.Refusals[w.Ref]; ok && refusal.Immutable == "" {
				return w.Ref.String() + ": " + refusal.Reason, refusal.At.Truncate(time.Microsecond)
			}
		}
		if f.failed != "" {
			return f.failed, r.tried(g)
		}
	}
	for _, f := range g.findings {
		if f.blocked != nil {
			return f.blocked.Message, time.Time{}
		}
	}
	return "", time.Time{}
}

// tried is when something was last tried that fails each time it is looked at:
// now, once it is time to try again.
func (r *run) tried(g *stage) time.Time {
	if retry := g.status.RetryAt; retry != nil && r.o.Now.Before(retry.Time) && g.status.FailedAt != nil {
		return g.status.FailedAt.Time
	}
	return r.now().Time
}

// failed notes a failure, once. One that nobody repeats has no time.
func (g *stage) failed(message string, at time.Time) {
	s := g.status
	if s.Status == v1beta1.Error && (at.IsZero() && s.Message == message || s.FailedAt != nil && !at.After(s.FailedAt.Time)) {
		return
	}
	s.Status, s.Message = v1beta1.Error, message
	s.FailedAt, s.RetryAt = nil, nil
	if at.IsZero() {
		return
	}
	s.Attempts++
	s.FailedAt = new(metav1.NewMicroTime(at))
	s.RetryAt = new(metav1.NewMicroTime(at.Add(backoff(s.Attempts))))
}

// backoff is how long to wait after so many failures.
func backoff(attempts int32) time.Duration {
	wait := firstRetry
	for range attempts - 1 {
		if wait *= 2; wait >= lastRetry {
			return lastRetry
		}
	}
	return wait
}

// noteAbove derives the states of phases and of the plan from those of the steps.
func (r *run) noteAbove() {
	p := r.status.PlanStatus[r.execution.Plan]
	if p.Status == v1beta1.Pending && r.hasBegun() {
		p.Status = v1beta1.InProgress
	}
	for i := range r.phases {
		notePhase(&r.phases[i])
	}
	p.Phases = r.phases
	r.status.PlanStatus[r.execution.Plan] = p
	r.status.AggregatedStatus.Status = p.Status
}

func (r *run) hasBegun() bool {
	return slices.ContainsFunc(r.phases, func(p v1beta1.PhaseStatus) bool { return p.StartedAt != nil })
}

func notePhase(p *v1beta1.PhaseStatus) {
	complete := !slices.ContainsFunc(p.Steps, func(s v1beta1.StepStatus) bool { return s.Status != v1beta1.Complete })
	switch {
	case complete:
		p.Status = v1beta1.Complete
	case p.StartedAt != nil:
		p.Status = v1beta1.InProgress
	}
}

// begin begins the steps that the engine lets go and that have not begun yet.
func (r *run) begin(steps []rollout.Step) bool {
	begun := false
	for _, s := range steps {
		phase, step, ok := r.at(s.Path)
		if !ok || isOnItsWay(step) {
			continue
		}
		step.Status, step.StartedAt = v1beta1.InProgress, r.now()
		if phase.StartedAt == nil {
			phase.StartedAt = r.now()
		}
		begun = true
	}
	if begun {
		r.noteAbove()
	}
	return begun
}

// writes are those of the tasks that the engine lets go.
func (r *run) writes(steps []rollout.Step) []Write {
	var writes []Write
	for _, s := range steps {
		if f := r.found(s.Path); f != nil {
			writes = append(writes, f.writes...)
		}
	}
	return writes
}
