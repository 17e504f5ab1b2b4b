package decision

import (
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/rollout"
)

// summary counts the clusters.
func (d *decision) summary() *v1alpha1.Summary {
	s := v1alpha1.Summary{Total: count32(len(d.members))}
	for _, m := range d.members {
		s.Updated += count32(one(m.leaf.Current == d.target))
		s.Waiting += count32(one(m.leaf.Current != d.target))
		s.Held += count32(one(m.isHeld()))
		s.Unreachable += count32(one(m.isUnreachable()))
		s.Skipped += count32(one(m.skip != nil && m.stage >= 0))
		switch {
		case m.leaf.Current == "":
		case m.hasFailed():
			s.Failed++
		case m.leaf.Health == rollout.Healthy:
			s.Succeeded++
		default:
			s.Updating++
		}
	}
	return &s
}

// ready is how many clusters are where they should be.
func (d *decision) ready() int {
	n := 0
	for _, m := range d.members {
		n += one(d.isReady(m))
	}
	return n
}

// start notes in the rows when stages begin to move. One into which a cluster is moved is not
// finished (any more).
func (d *decision) start(rows []v1alpha1.StageStatus, moves []v1alpha1.Move) {
	now := metav1.NewMicroTime(d.o.Now)
	for _, m := range moves {
		c := d.member(m.Cluster)
		if c == nil || c.stage < 0 || c.isNew {
			continue
		}
		row := &rows[c.stage]
		if row.FinishedAt = nil; row.StartedAt == nil {
			row.StartedAt = &now
		}
	}
}

// place is the first stage that is not done, of how many.
func (d *decision) place(rows []v1alpha1.StageStatus) string {
	for i := range rows {
		if rows[i].State != StateComplete {
			return rows[i].Name + " " + share(i+1, len(rows))
		}
	}
	return ""
}

// rows has one for each stage.
func (d *decision) rows() []v1alpha1.StageStatus {
	rows := make([]v1alpha1.StageStatus, len(d.stages))
	for i := range d.stages {
		rows[i] = d.row(i)
	}
	return rows
}

func (d *decision) row(i int) v1alpha1.StageStatus {
	s := &d.stages[i]
	row := v1alpha1.StageStatus{Name: s.name, State: StateComplete, Total: count32(len(s.members))}
	row.StartedAt, row.FinishedAt = d.former(s.name)
	for _, m := range s.members {
		at := m.leaf.Current == d.target
		row.Updated += count32(one(at))
		row.Ready += count32(one(d.isReady(m)))
		row.Failed += count32(one(at && m.hasFailed()))
	}
	answer := d.stagePlans[i].At()
	row.Message = model.Short(answer.Message(), model.SaidLength+model.SaidLength)
	switch {
	case answer.Step != nil:
		row.State = StateUpdating
	case answer.Hold != nil:
		row.State = string(answer.Hold.Reason)
	case row.StartedAt != nil && row.FinishedAt == nil:
		row.FinishedAt = new(metav1.NewMicroTime(d.o.Now))
	}
	return row
}

func (d *decision) isReady(m *member) bool {
	return m.leaf.Current == d.target && m.leaf.Health == rollout.Healthy && m.hold == nil
}

// former is when a stage was first moved to the target, and when it was complete there;
// nil as long as it was not.
func (d *decision) former(name string) (started, finished *metav1.MicroTime) {
	if d.o.Module.Status.TargetRevision != d.target {
		return nil, nil
	}
	for i := range d.o.Module.Status.Stages {
		if s := &d.o.Module.Status.Stages[i]; s.Name == name {
			return s.StartedAt, s.FinishedAt
		}
	}
	return nil, nil
}

// failing are examples of clusters that have failed, and whether there are more.
func (d *decision) failing() (examples []v1alpha1.FailingCluster, more bool) {
	for _, m := range d.members {
		if m.leaf.Current == "" || !m.hasFailed() {
			continue
		}
		if len(examples) == failingShown {
			return examples, true
		}
		examples = append(examples, m.failure())
	}
	return examples, false
}

func (m *member) failure() v1alpha1.FailingCluster {
	f := v1alpha1.FailingCluster{Name: m.Name, Revision: m.revision(), Reason: string(rollout.ReasonFailed)}
	if m.record != nil && m.record.Reason != "" {
		f.Reason = string(m.record.Reason)
	}
	switch {
	case m.isUnreachable():
		f.Message = model.Short(m.leaf.Reason, model.SaidLength+model.SaidLength)
	case m.record != nil && m.record.Message != "":
		f.Message = model.Short(m.record.Message, model.SaidLength)
	case m.hold != nil:
		f.Message = model.Short(m.hold.Message, model.SaidLength)
	}
	return f
}

// isComplete is true once the target has got everywhere: all is where it should
// be, but for as many failures as maxFailures tolerates. Where no cluster has run it, it has not
// got anywhere.
func (d *decision) isComplete() bool {
	if len(d.problems) > 0 || d.isStopped() || d.o.Revision(d.target) == nil || d.o.Module.Spec.Selector == nil {
		return false
	}
	ran := slices.ContainsFunc(d.members, func(m *member) bool { return m.stage >= 0 && !m.isNew })
	for i := range d.stages {
		if g := d.plan.Group(unitStages, d.stages[i].name); !g.Complete || g.Failing {
			return false
		}
	}
	return ran
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func share(part, whole int) string { return strconv.Itoa(part) + "/" + strconv.Itoa(whole) }

// count32 is a number of clusters; there are never as many as an int32 can count.
func count32(n int) int32 { return int32(n) } //nolint:gosec // bounded by what an API server can hold
