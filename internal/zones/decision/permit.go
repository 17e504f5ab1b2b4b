package decision

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/rollout"
)

// permit is the group after what the engine wants has been permitted; false if
// there is nothing to permit.
func (d *decision) permit() (*Observed, bool) {
	news := d.newMoves()
	moves, permits := d.intents.Permit(news)
	if !permits || d.hasOpen(d.plan.Acquire) {
		return nil, false
	}
	after := *d.o
	status := *after.Group.Status.DeepCopy()
	if a := d.plan.Acquire; a != nil {
		status.Lock = &v1alpha1.Lock{Holder: a.Holder, Purpose: v1alpha1.Purpose(a.Purpose), Zone: a.Unit, Since: metav1.NewMicroTime(a.Since)}
	}
	status.Moves = moves
	status.Seen = d.o.seen()
	status.History = d.begin(news)
	status.Zones = d.start(news)
	status.Forecast = d.forecast(status.Zones)
	after.Group.Status = status
	return &after, true
}

// hasOpen is true if some zone is open that the lock would no longer be for.
func (d *decision) hasOpen(l *rollout.Lock) bool {
	return l != nil && l.Unit != "" && slices.ContainsFunc(d.zones, func(z *zone) bool {
		return z.Name != l.Unit && (z.open() || len(z.moves) > 0 && z.moves[""] != nil)
	})
}

// newMoves are those for the steps of the plan.
func (d *decision) newMoves() []v1alpha1.Move {
	var moves []v1alpha1.Move
	opening := map[string]bool{}
	for _, step := range d.plan.Steps {
		z := d.zone(step.Path[0])
		pod := z.podNamed(step.Path[1])
		switch {
		case step.Start != rollout.StartNone && !opening[z.Name]:
			moves = append(moves, d.o.opening(z, step.Start == rollout.StartEach))
			opening[z.Name] = true
		case pod == nil || pod.Terminating || opening[z.Name] || !z.isOnUs(step):
		default:
			moves = append(moves, d.o.moveOf(z, pod, step.Repair))
		}
	}
	return moves
}

// isOnUs is true if it is not the controller that takes a step: of a zone that is
// open or will be, it replaces what is up; of one that is held, nothing does.
func (z *zone) isOnUs(step rollout.Step) bool {
	return step.Repair && z.moves[""] == nil || z.Strategy == OnDelete
}

// needsLive is true if a cache is not good enough to permit what follows, or to
// give the lock back.
func (d *decision) needsLive(after *Observed) bool {
	switch {
	case d.o.Live:
		return false
	case d.intents.Unverified():
		return true
	case d.isUndone() && (after != nil || d.phase() == rollout.PhaseComplete): // only the API server says by whom
		return true
	case after == nil && !d.isOver():
		return false
	}
	return d.o.takesOver() || slices.ContainsFunc(d.zones, func(z *zone) bool {
		return z.isOpened() && (after == nil || disrupts(after, z.Name))
	})
}

// disrupts is true if a move is permitted in another zone than this one.
func disrupts(after *Observed, zone string) bool {
	return slices.ContainsFunc(after.Group.Status.Moves, func(m v1alpha1.Move) bool { return m.Zone != zone })
}

// start notes in the rows when zones begin to move.
func (d *decision) start(moves []v1alpha1.Move) []v1alpha1.Zone {
	rows := make([]v1alpha1.Zone, len(d.zones))
	for i, z := range d.zones {
		rows[i] = z.row
		rows[i].Name, rows[i].Target, rows[i].StartedAt = z.Name, z.UpdateRevision, z.started()
		begins := slices.ContainsFunc(moves, func(m v1alpha1.Move) bool { return m.Zone == z.Name })
		opens := slices.ContainsFunc(moves, func(m v1alpha1.Move) bool { return m.Zone == z.Name && m.Pod == "" && !m.Lend })
		if begins && rows[i].StartedAt == nil {
			now := metav1.NewMicroTime(d.o.Now)
			rows[i].StartedAt = &now
		}
		rows[i].Opened = z.isOpened() || opens
	}
	return rows
}

// isOver is true if the lock is ours for nothing, as far as this view shows.
func (d *decision) isOver() bool {
	return d.plan.Release && len(d.intents.Kept()) == 0 && !slices.ContainsFunc(d.zones, func(z *zone) bool {
		return z.open() || z.stale()
	})
}
