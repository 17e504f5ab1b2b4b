package plans

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// How the units of the tree are called, so that sentences say what is what.
const (
	planUnit  = "plan "
	phaseUnit = "phase "
	stepUnit  = "step "
	taskUnit  = "task "
	// pruneUnit comes after the plan.
	pruneUnit = "removal of what is no longer rendered"
)

// tree is what the engine decides upon: the tasks of the steps of the phases of
// the plan. A task is a leaf. It is outdated while there is something to write for
// it, and healthy when it is done.
func (r *run) tree() rollout.Observed {
	plan := rollout.Unit{
		Name: planUnit + r.execution.Plan, Group: true,
		Policy:    rollout.Policy{Order: orderOfUnits(r.plan.Strategy), Timeout: timeout(r.plan.Timeout)},
		StartedAt: r.execution.StartedAt.Time, Pause: r.pause(),
	}
	for i := range r.plan.Phases {
		plan.Children = append(plan.Children, r.phaseUnit(&r.plan.Phases[i]))
	}
	root := rollout.Unit{Group: true, Policy: rollout.Policy{Order: rollout.Series}, Children: []rollout.Unit{plan}}
	if r.pruning != nil {
		last := r.leaf(pruneUnit, &v1beta1.StepStatus{Status: v1beta1.InProgress}, r.pruning)
		last.Pause = r.pause()
		root.Children = append(root.Children, last)
	}
	return rollout.Observed{Now: r.o.Now, Self: string(r.execution.UID), Root: root}
}

func orderOfUnits(o v1beta1.Ordering) rollout.Order {
	if o == v1beta1.Serial {
		return rollout.Series
	}
	return rollout.Parallel
}

func timeout(d *metav1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return max(0, d.Duration)
}

// pause is a user's wish that the Instance stays as it is.
func (r *run) pause() *rollout.Pause {
	if vocabulary.Paused.Get(r.o.Instance.Annotations) != "true" {
		return nil
	}
	return &rollout.Pause{}
}

func started(t *metav1.MicroTime) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

func (r *run) phaseUnit(phase *v1beta1.Phase) rollout.Unit {
	unit := rollout.Unit{
		Name: phaseUnit + phase.Name, Group: true,
		Policy: rollout.Policy{Order: orderOfUnits(phase.Strategy), Timeout: timeout(phase.Timeout)},
	}
	for i := range r.phases {
		if r.phases[i].Name == phase.Name {
			unit.StartedAt = started(r.phases[i].StartedAt)
		}
	}
	for i := range phase.Steps {
		unit.Children = append(unit.Children, r.stepUnit(phase.Name, &phase.Steps[i]))
	}
	return unit
}

func (r *run) stepUnit(phase string, step *v1beta1.Step) rollout.Unit {
	status := r.step(phase, step.Name)
	unit := rollout.Unit{
		Name: stepUnit + step.Name, Group: true, Policy: rollout.Policy{Timeout: timeout(step.Timeout)},
		StartedAt: started(status.StartedAt),
	}
	for _, name := range taskNames(step) {
		unit.Children = append(unit.Children, r.leaf(taskUnit+name, status, r.finding(phase, step.Name, name)))
	}
	return unit
}

// finding is how a task does, nil if its step is not on its way.
func (r *run) finding(phase, step, name string) *finding {
	for i := range r.stages {
		g := &r.stages[i]
		if g.phase != phase || g.status.Name != step {
			continue
		}
		for j := range g.names {
			if g.names[j] == name {
				return &g.findings[j]
			}
		}
	}
	return nil
}

// leaf is a task as the engine sees it.
func (r *run) leaf(name string, status *v1beta1.StepStatus, f *finding) rollout.Unit {
	unit := rollout.Unit{Name: name, StartedAt: started(status.StartedAt)}
	leaf := &unit.Leaf
	leaf.Target = string(r.execution.UID)
	switch {
	case status.Status == v1beta1.Complete:
		leaf.Current, leaf.Health, leaf.Settled = leaf.Target, rollout.Healthy, true
	case f == nil:
	case f.blocked != nil:
		unit.Block = f.blocked
	case f.failed != "" || len(f.writes) > 0:
		leaf.RetryAt, leaf.RetryReason = started(status.RetryAt), status.Message
	case f.lacks != "":
		leaf.Current, leaf.Health, leaf.Reason = leaf.Target, rollout.Progressing, f.lacks
	default:
		leaf.Current, leaf.Health = leaf.Target, rollout.Healthy
	}
	return unit
}

// found is how the task at a path does, nil if there is nothing to do for it.
func (r *run) found(path rollout.Path) *finding {
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
