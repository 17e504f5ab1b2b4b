package decision

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

const (
	// maxMoves is how many moves may be written down at a time, so that the status
	// stays small.
	maxMoves = 50
	// maxWrites bounds the other writes of a pass.
	maxWrites = 100
)

// permit is the status by which what the engine wants is permitted; false if there
// is nothing to permit.
func (d *decision) permit() (*v1alpha1.ModuleStatus, bool) {
	rollsBack := d.plan.Phase == rollout.PhaseRollingBack && d.mayRollBack()
	var news []v1alpha1.Move
	if !rollsBack { // what is given up is given up before any cluster goes back
		news = d.newMoves(maxMoves - len(d.intents.Kept()))
	}
	moves, permits := d.intents.Permit(news)
	if !permits && !rollsBack {
		return nil, false
	}
	status := d.status()
	if rollsBack {
		status.RolledBack, status.GivenUp, status.Retried = d.wanted, d.giveUp(), nil
		status.History = d.history(rollout.PhaseRollingBack, status.Stages)
		noteWhy(status.History, status.GivenUp)
	}
	status.Moves, status.Seen = moves, d.seen()
	removals := len(news) - len(d.assignments(news))
	d.noteRemovals(&status, removals)
	if r := status.Removal; r != nil { // what is permitted is taken from what was approved
		r.Left = max(0, r.Left-count32(removals))
	}
	d.start(status.Stages, d.assignments(news))
	if !rollsBack {
		status.Forecast = d.forecast(status.Stages)
	}
	return &status, true
}

// assignments are the moves that remove nothing.
func (d *decision) assignments(moves []v1alpha1.Move) []v1alpha1.Move {
	return slices.DeleteFunc(slices.Clone(moves), func(m v1alpha1.Move) bool { return m.Remove })
}

// newMoves are those for the steps of the plan, as many as fit.
func (d *decision) newMoves(most int) []v1alpha1.Move {
	if d.o.Module.IsExternal() || d.isPaused() {
		return nil
	}
	var moves []v1alpha1.Move
	for _, step := range d.plan.Steps {
		name := step.Path[len(step.Path)-1]
		if r := d.record(name); r != nil && len(moves) < most && !d.o.Foreign[name] && !d.isPutOff(name) && d.isNoted(d.known[name], step.To) {
			moves = append(moves, d.newMove(name, &step, r))
		}
	}
	return moves
}

// newMove is the one for a step.
func (d *decision) newMove(name string, step *rollout.Step, r *model.Record) v1alpha1.Move {
	move := v1alpha1.Move{
		Cluster: name, Revision: step.To, Repair: step.Repair, UID: r.UID, Generation: r.Generation, Fence: r.Fence, At: metav1.NewMicroTime(d.o.Now),
	}
	switch c := d.known[name]; {
	case step.To == rollout.Removed:
		// With a move that may still be made it counted as down, and the budget was not asked.
		move.Revision, move.Remove, move.Repair = step.From, true, !c.isUp() || c.move != nil
		move.Approved, move.AssignedAt = d.approved > 0, microOrNil(c.record.AssignedAt)
	case c != nil:
		move.Unready = c.isNew || c.unready || c.leaf.NoEvidence != ""
		move.Repair = move.Repair || len(d.budgets) > 0 && c.isDown()
	}
	d.date(&move)
	return move
}

// moves are the intents in the status of the module, as this decision sees them.
func (d *decision) moves() *ring.Intents[v1alpha1.Move] {
	return &ring.Intents[v1alpha1.Move]{
		Now: d.o.Now, Live: d.o.Live, Written: d.o.Module.Status.Moves, State: d.state,
		At:     func(m *v1alpha1.Move) *metav1.MicroTime { return &m.At },
		PutOff: func(m *v1alpha1.Move) bool { return d.isPutOff(m.Cluster) },
		Same:   func(a, b *v1alpha1.Move) bool { return a.Cluster == b.Cluster },
		Renew:  d.date,
	}
}

// date sets when a cluster is assigned what is permitted now: later than what it has, also
// where a clock that was ahead has written that. Otherwise the move would count as done
// before it was. How long it may be acted upon depends on the time of the permission alone.
func (d *decision) date(m *v1alpha1.Move) {
	if m.Remove { // it names the assignment that it removes
		return
	}
	m.AssignedAt = nil
	if r := d.record(m.Cluster); r != nil && r.Assigned {
		if at := r.AssignedAt.Add(time.Microsecond); at.After(m.At.Time) {
			m.AssignedAt = microOrNil(at)
		}
	}
}

// creates make the assemblages of clusters that have none, so that a move can name what it
// changes. Nothing is assigned by that.
func (d *decision) creates() []Write {
	var writes []Write
	if d.isPaused() || d.o.Module.IsExternal() {
		return nil
	}
	for _, m := range d.unlooked() { // of none of them it is known what it has
		if m.record == nil {
			writes = append(writes, Write{Act: CreateAssemblage, Cluster: m.Cluster})
		}
	}
	if len(writes) > 0 {
		return writes[:min(len(writes), maxWrites)]
	}
	for _, step := range d.plan.Steps {
		name := step.Path[len(step.Path)-1]
		if c := d.known[name]; c != nil && c.Cluster != nil && c.record == nil && !d.o.Foreign[name] && !d.isPutOff(name) {
			writes = append(writes, Write{Act: CreateAssemblage, Cluster: c.Cluster})
		}
	}
	return writes[:min(len(writes), maxWrites)]
}

// fences withdraw the moves that are not wanted any more.
func (d *decision) fences() []Write {
	var writes []Write
	for _, m := range d.intents.Fences() {
		c := d.find(m.Cluster)
		writes = append(writes, Write{Act: Fence, Cluster: c.Cluster, Record: c.record})
	}
	return writes
}

// state is what the assemblages show of a move. One whose assemblage says something else was
// made, or is not made any more: it is made with the resourceVersion of a view that shows
// neither another spec nor a fence, so that the API server refuses it if there is one since.
// That a cluster reports something changes the resourceVersion, and nothing of this.
func (d *decision) state(m *v1alpha1.Move) ring.State {
	switch r := d.record(m.Cluster); {
	case r == nil || r.UID != m.UID || r.Generation != m.Generation || r.Fence != m.Fence:
		return ring.Ended
	case d.wants(m):
		return ring.Wanted
	default:
		return ring.Unwanted
	}
}

// isDone is true of a move if the assemblage shows it, or something later.
func isDone(m *v1alpha1.Move, r *model.Record) bool {
	if m.Remove {
		return r == nil || !r.Assigned || !microOrNil(r.AssignedAt).Equal(m.AssignedAt)
	}
	return r != nil && r.Assigned && !r.AssignedAt.Before(assignedAt(m))
}

// assignedAt is when a cluster is assigned what a move gives it.
func assignedAt(m *v1alpha1.Move) time.Time {
	if m.AssignedAt != nil {
		return m.AssignedAt.Time
	}
	return m.At.Time
}

func microOrNil(t time.Time) *metav1.MicroTime {
	if t.IsZero() {
		return nil
	}
	at := metav1.NewMicroTime(t)
	return &at
}

// wants is true if a move is still a good idea. One to a revision of which it is
// unknown what it says is not: the view may be old, or a user has deleted the revision.
func (d *decision) wants(m *v1alpha1.Move) bool {
	if m.Remove {
		return d.wantsRemoval(m)
	}
	c := d.member(m.Cluster)
	if d.o.Revision(m.Revision) == nil || c == nil || c.stage < 0 || d.isPaused() || d.o.Module.IsExternal() || d.o.Module.Deleting || d.o.Foreign[m.Cluster] {
		return false
	}
	if m.Repair && c.isUp() || c.isEnding() || c.barred {
		return false
	}
	if c.isNew {
		return m.Revision == d.good
	}
	return m.Revision == d.target
}

// isPutOff is true while a write that was refused waits for its next try.
func (d *decision) isPutOff(cluster string) bool { return d.o.Refusals.PutOff(cluster, d.o.Now) }

// isBehind is true if some manager may have decided from a newer view than this one.
func (d *decision) isBehind() bool {
	seen := d.o.Module.Status.Seen
	return seen != nil && !d.o.Live && ring.IsBehind(d.o.AsOf, seen.Assemblages)
}

// seen is how new the views are that have been decided upon, this one included.
func (d *decision) seen() *v1alpha1.Seen {
	seen := v1alpha1.Seen{Assemblages: d.o.AsOf}
	if d.o.Module.Status.Seen != nil {
		seen.Assemblages = ring.Newer(seen.Assemblages, d.o.Module.Status.Seen.Assemblages)
	}
	if seen.Assemblages == "" {
		return nil
	}
	return &seen
}
