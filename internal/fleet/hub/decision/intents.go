package decision

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/rollout"
)

const (
	// ActWithin is how long after it was written down a move may be acted upon.
	ActWithin = 20 * time.Second
	// WithdrawAfter is how long it counts, though nobody wants it any more. It is
	// longer by what a clock may be wrong and a request may take.
	WithdrawAfter = 40 * time.Second
	// maxMoves is how many moves may be written down at a time, so that the
	// status stays small.
	maxMoves = 50
	// maxWrites bounds the other writes of a pass.
	maxWrites = 100
)

// permit is the status by which what the engine wants is permitted; false if there
// is nothing to permit.
func (d *decision) permit() (*v1alpha1.ModuleStatus, bool) {
	moves, renewed := d.renewed()
	news := d.newMoves(maxMoves - len(moves))
	rollsBack := d.plan.Phase == rollout.PhaseRollingBack && d.mayRollBack()
	if len(news) == 0 && !renewed && !rollsBack {
		return nil, false
	}
	status := d.status()
	if rollsBack {
		// What is given up is given up before anything goes back.
		status.RolledBack, news = d.wanted, nil
		status.History = d.history(rollout.PhaseRollingBack)
	}
	status.Moves = replace(d.withdrawn(moves), news)
	status.Seen = d.seen()
	d.start(status.Stages, news)
	return &status, true
}

// newMoves are those for the steps of the plan, as many as fit.
func (d *decision) newMoves(most int) []v1alpha1.Move {
	if d.o.Module.IsExternal() || d.isPaused() {
		return nil
	}
	var moves []v1alpha1.Move
	for _, step := range d.plan.Steps {
		name := step.Path[len(step.Path)-1]
		if len(moves) < most && !d.o.Foreign[name] && !d.isPutOff(name) {
			moves = append(moves, v1alpha1.Move{Cluster: name, Revision: step.To, Repair: step.Repair, At: d.moment(name)})
		}
	}
	return moves
}

// moment is when a cluster is assigned something that is permitted now: later than what
// it has, also where a clock that was ahead has written that. Otherwise it would count
// as done before it was.
func (d *decision) moment(cluster string) metav1.MicroTime {
	at := d.o.Now
	if r := d.record(cluster); r != nil && r.Assigned {
		at = model.Later(at, r.AssignedAt.Add(time.Microsecond))
	}
	return metav1.NewMicroTime(at)
}

// renewed are the moves that are kept, and whether some have to be permitted anew
// because nobody has acted upon them in time.
func (d *decision) renewed() ([]v1alpha1.Move, bool) {
	moves, again := d.moves(), false
	for i := range moves {
		if m := &moves[i]; d.wants(m) && !d.inTime(m) && !d.isPutOff(m.Cluster) {
			m.At, again = d.moment(m.Cluster), true
		}
	}
	return moves, again
}

// withdrawn are the moves with those marked that are not wanted at present. What is
// permitted now is permitted because they are not made.
func (d *decision) withdrawn(moves []v1alpha1.Move) []v1alpha1.Move {
	for i := range moves {
		moves[i].Withdrawn = !d.wants(&moves[i])
	}
	return moves
}

// replace adds moves; one of a cluster that has moved before takes the place of
// that.
func replace(moves, by []v1alpha1.Move) []v1alpha1.Move {
	moves = slices.DeleteFunc(moves, func(old v1alpha1.Move) bool {
		return slices.ContainsFunc(by, func(m v1alpha1.Move) bool { return m.Cluster == old.Cluster })
	})
	return append(moves, by...)
}

// moves are those that are kept.
func (d *decision) moves() []v1alpha1.Move {
	var kept []v1alpha1.Move
	for i := range d.o.Module.Status.Moves {
		if m := &d.o.Module.Status.Moves[i]; d.keeps(m) {
			kept = append(kept, *m)
		}
	}
	return kept
}

// keeps is true if a move still says something: that the cluster may be assigned
// that revision at any moment.
func (d *decision) keeps(m *v1alpha1.Move) bool {
	return !isDone(m, d.record(m.Cluster)) && (d.wants(m) || !d.o.Live || !d.isTooLate(m))
}

// wants is true if a move is still a good idea. One to a revision of which nobody knows
// what it says is none: the view may be old, or somebody has deleted it.
func (d *decision) wants(m *v1alpha1.Move) bool {
	c := d.member(m.Cluster)
	if d.o.Revision(m.Revision) == nil || c == nil || c.stage < 0 || m.Withdrawn || d.isPaused() || d.o.Module.IsExternal() || d.o.Module.Deleting || d.o.Foreign[m.Cluster] {
		return false
	}
	if m.Repair && c.isUp() || c.isEnding() {
		return false
	}
	if c.isNew {
		return m.Revision == d.good
	}
	return m.Revision == d.target
}

// isDone is true of a move if the assemblage shows it, or something later.
func isDone(m *v1alpha1.Move, r *model.Record) bool {
	return r != nil && r.Assigned && !r.AssignedAt.Before(m.At.Time)
}

func (d *decision) isTooLate(m *v1alpha1.Move) bool { return !d.o.Now.Before(m.At.Add(WithdrawAfter)) }

func (d *decision) inTime(m *v1alpha1.Move) bool { return d.o.Now.Before(m.At.Add(ActWithin)) }

// mayWithdraw is true if there are moves that a live look may show to have come to
// nothing.
func (d *decision) mayWithdraw() bool {
	return slices.ContainsFunc(d.o.Module.Status.Moves, func(m v1alpha1.Move) bool {
		return d.isTooLate(&m) && !isDone(&m, d.record(m.Cluster)) && !d.wants(&m)
	})
}

// isPutOff is true while a write that was refused waits for its next try.
func (d *decision) isPutOff(cluster string) bool {
	r, ok := d.o.Refusals[cluster]
	return ok && d.o.Now.Before(r.At)
}

// isBehind is true if somebody may have decided from a newer view than this one.
func (d *decision) isBehind() bool {
	seen := d.o.Module.Status.Seen
	return seen != nil && !d.o.Live && model.IsOlder(d.o.AsOf, seen.Assemblages)
}

// seen is how new the views are that have been decided upon, this one included.
func (d *decision) seen() *v1alpha1.Seen {
	seen := v1alpha1.Seen{Assemblages: d.o.AsOf}
	if d.o.Module.Status.Seen != nil {
		seen.Assemblages = model.Newer(seen.Assemblages, d.o.Module.Status.Seen.Assemblages)
	}
	if seen.Assemblages == "" {
		return nil
	}
	return &seen
}
