package execution

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/task"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// The names of units begin with their kind, so that messages say what they are.
const (
	planUnit  = "plan "
	phaseUnit = "phase "
	stepUnit  = "step "
	taskUnit  = "task "
	// pruneUnit comes after the plan.
	pruneUnit = "pruning of objects that are no longer rendered"
)

// tree is what the engine decides on: the tasks of the steps of the phases of the
// plan. A task is a leaf. It is outdated while it has something to write, and healthy
// when it is done.
func (r *run) tree() rollout.Observed {
	plan := rollout.Unit{
		Name: planUnit + r.Execution.Plan, Group: true,
		Policy:    rollout.Policy{Order: orderOfUnits(r.plan.Strategy), Timeout: timeout(r.plan.Timeout)},
		StartedAt: r.Execution.StartedAt.Time, Pause: PauseOf(r.Snapshot.Instance), Gates: r.gates("", ""),
	}
	for i := range r.plan.Phases {
		plan.Children = append(plan.Children, r.phaseUnit(&r.plan.Phases[i]))
	}
	root := rollout.Unit{Group: true, Policy: rollout.Policy{Order: rollout.Series}, Children: []rollout.Unit{plan}}
	if r.pruning != nil {
		last := r.leaf(pruneUnit, &v1beta1.StepStatus{Status: v1beta1.InProgress}, r.pruning)
		last.Pause = PauseOf(r.Snapshot.Instance)
		root.Children = append(root.Children, last)
	}
	return rollout.Observed{Now: r.now, Self: string(r.Execution.UID), Root: root}
}

// PauseOf is a user's request to leave an Instance as it is, nil if there is none.
func PauseOf(i *v1beta1.Instance) *rollout.Pause {
	if vocabulary.Paused.Get(i.Annotations) != "true" {
		return nil
	}
	return &rollout.Pause{}
}

// found is the state of the task at a path, nil if its step is not in progress.
func (r *run) found(path rollout.Path) *task.Finding {
	if len(path) == 1 {
		return r.pruning
	}
	if len(path) != 4 {
		return nil
	}
	return r.finding(strings.TrimPrefix(path[1], phaseUnit), strings.TrimPrefix(path[2], stepUnit), strings.TrimPrefix(path[3], taskUnit))
}

// at is the step at a path of the tree.
func (r *run) at(path rollout.Path) (*v1beta1.PhaseStatus, *v1beta1.StepStatus, bool) {
	if len(path) != 4 {
		return nil, nil, false
	}
	name := strings.TrimPrefix(path[1], phaseUnit)
	for i := range r.phases {
		if r.phases[i].Name == name {
			step := r.step(name, strings.TrimPrefix(path[2], stepUnit))
			return &r.phases[i], step, step != nil
		}
	}
	return nil, nil, false
}

func (r *run) phaseUnit(phase *v1beta1.Phase) rollout.Unit {
	unit := rollout.Unit{
		Name: phaseUnit + phase.Name, Group: true,
		Policy: rollout.Policy{Order: orderOfUnits(phase.Strategy), Timeout: timeout(phase.Timeout)},
		Gates:  r.gates(phase.Name, ""),
	}
	for i := range r.phases {
		if r.phases[i].Name == phase.Name {
			unit.StartedAt = ring.TimeOf(r.phases[i].StartedAt)
		}
	}
	for i := range phase.Steps {
		unit.Children = append(unit.Children, r.stepUnit(phase.Name, &phase.Steps[i]))
	}
	return unit
}

func orderOfUnits(o v1beta1.Ordering) rollout.Order {
	if o == v1beta1.Serial {
		return rollout.Series
	}
	return rollout.Parallel
}

func (r *run) stepUnit(phase string, step *v1beta1.Step) rollout.Unit {
	status := r.step(phase, step.Name)
	unit := rollout.Unit{
		Name: stepUnit + step.Name, Group: true, Policy: rollout.Policy{Timeout: timeout(step.Timeout)},
		StartedAt: ring.TimeOf(status.StartedAt), Gates: r.gates(phase, step.Name),
	}
	for _, name := range taskNames(step) {
		unit.Children = append(unit.Children, r.leaf(taskUnit+name, status, r.finding(phase, step.Name, name)))
	}
	return unit
}

func timeout(d *metav1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return max(0, d.Duration)
}

// leaf is a task as the engine sees it.
func (r *run) leaf(name string, status *v1beta1.StepStatus, f *task.Finding) rollout.Unit {
	unit := rollout.Unit{Name: name, StartedAt: ring.TimeOf(status.StartedAt)}
	leaf := &unit.Leaf
	leaf.Target = string(r.Execution.UID)
	switch {
	case status.Status == v1beta1.Complete:
		leaf.Current, leaf.Health, leaf.Settled = leaf.Target, rollout.Healthy, true
	case f == nil:
	case f.Blocked != nil:
		unit.Block = f.Blocked
	case f.Failed != "" || len(f.Writes) > 0:
		leaf.RetryAt, leaf.RetryReason = ring.TimeOf(status.RetryAt), status.Message
		if f.Deadline > 0 {
			unit.StartedAt, unit.Policy.Deadline = ring.TimeOf(status.FailingSince), f.Deadline
		}
	case f.Lacks != "":
		leaf.Current, leaf.Health, leaf.Reason = leaf.Target, rollout.Progressing, f.Lacks
	default:
		leaf.Current, leaf.Health = leaf.Target, rollout.Healthy
	}
	return unit
}

// finding is the state of a task, nil if its step is not in progress.
func (r *run) finding(phase, step, name string) *task.Finding {
	for i := range r.active {
		a := &r.active[i]
		if a.phase != phase || a.status.Name != step {
			continue
		}
		for j := range a.names {
			if a.names[j] == name {
				return &a.findings[j]
			}
		}
	}
	return nil
}
