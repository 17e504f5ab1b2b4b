package decision

import (
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/estimate"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// begin is the history once the moves are permitted: a new rollout begins with
// the first move, and with one to another revision than the zone was moved to
// before. Templates that are edited one after the other are one rollout.
func (d *decision) begin(moves []v1alpha1.Move) []v1alpha1.Rollout {
	history := d.o.Group.Status.History
	if len(moves) == 0 {
		return history
	}
	number := int64(1)
	if len(history) > 0 {
		number = history[0].Number
		if history[0].Outcome == string(rollout.OutcomeComplete) || history[0].Outcome == string(rollout.OutcomeSuperseded) || !d.goesOn(&history[0]) {
			number++
		}
	}
	history = d.advance(history, number, rollout.PhaseProgressing)
	if len(history) > 0 {
		isNew := len(history[0].Zones) == 0
		if history[0].Zones = d.noted(history[0].Zones, moves); isNew {
			history[0].ChangedBy = d.writer(&history[0], true)
		}
	}
	if len(history) > 1 && d.isUndone() && number != d.o.Group.Status.History[0].Number {
		history[1].UndoneBy = d.writer(&history[1], false)
	}
	return history
}

// isUndone is true if the newest rollout has not been complete, and will not be: a zone has another target now. Once the group
// is complete all the same, it is too late to say by whom.
func (d *decision) isUndone() bool {
	s := &d.o.Group.Status
	return s.Phase != string(rollout.PhaseComplete) && len(s.History) > 0 && !d.goesOn(&s.History[0]) &&
		s.History[0].Outcome != string(rollout.OutcomeComplete) && s.History[0].Outcome != string(rollout.OutcomeSuperseded)
}

// writer is who gave zones of a rollout the target that they have now, of those for which it is that of the rollout, or
// another one; empty if that is not known or if there are several.
func (d *decision) writer(r *v1alpha1.Rollout, its bool) string {
	var names []string
	for _, moved := range r.Zones {
		if z := d.zone(moved.Name); z != nil && (z.UpdateRevision == moved.Revision) == its {
			names = append(names, z.Writer)
		}
	}
	if names = slices.Compact(names); len(names) != 1 {
		return ""
	}
	return names[0]
}

// noted adds the zones of moves that do not exist yet.
func (d *decision) noted(zones []v1alpha1.ZoneRevision, moves []v1alpha1.Move) []v1alpha1.ZoneRevision {
	zones = slices.Clone(zones)
	for _, m := range moves {
		if !slices.ContainsFunc(zones, func(z v1alpha1.ZoneRevision) bool { return z.Name == m.Zone }) {
			began := metav1.NewMicroTime(d.o.Now)
			zones = append(zones, v1alpha1.ZoneRevision{Name: m.Zone, Revision: d.zone(m.Zone).UpdateRevision, StartedAt: &began})
		}
	}
	return zones
}

// history is the history after the plan: it ends what has ended.
func (d *decision) history() []v1alpha1.Rollout {
	history := d.o.Group.Status.History
	if len(history) == 0 {
		return history
	}
	if d.goesOn(&history[0]) {
		history = d.advance(history, history[0].Number, d.phase())
		if len(history) > 0 {
			history[0].Zones, history[0].Message = d.finished(history[0].Zones), d.whyFailed(&history[0])
		}
		return history
	}
	if isUndone := d.isUndone(); d.phase() == rollout.PhaseComplete && (isUndone || history[0].FinishedAt == nil) {
		history = slices.Clone(history)
		if history[0].FinishedAt == nil {
			finish(&history[0], rollout.OutcomeSuperseded, d.o.Now)
		}
		if isUndone {
			history[0].UndoneBy = d.writer(&history[0], false)
		}
	}
	return history
}

// whyFailed is why a rollout has failed, empty if it has not.
func (d *decision) whyFailed(r *v1alpha1.Rollout) string {
	if r.Outcome != string(rollout.OutcomeFailed) {
		return ""
	}
	_, why := d.verdict()
	return message.Cut(why, messageLength)
}

// messageLength bounds what the history says of a rollout.
const messageLength = 1024

// goesOn is true if no zone of a rollout has another target now.
func (d *decision) goesOn(r *v1alpha1.Rollout) bool {
	return !slices.ContainsFunc(r.Zones, func(moved v1alpha1.ZoneRevision) bool {
		z := d.zone(moved.Name)
		return z != nil && !z.stale() && z.UpdateRevision != moved.Revision
	})
}

// finished notes of zones that they are done, the first time that they are.
func (d *decision) finished(zones []v1alpha1.ZoneRevision) []v1alpha1.ZoneRevision {
	zones = slices.Clone(zones)
	for i := range zones {
		if zones[i].FinishedAt == nil && zones[i].StartedAt != nil && d.isAtRest(zones[i].Name) {
			ended := metav1.NewMicroTime(d.o.Now)
			zones[i].FinishedAt = &ended
		}
	}
	return zones
}

// isAtRest is true of a zone that is where it should be, as far as anybody knows.
func (d *decision) isAtRest(name string) bool {
	z := d.zone(name)
	return z != nil && !z.stale() && d.plan.At(name) == (rollout.Answer{})
}

// advance asks the engine what becomes of the history.
func (d *decision) advance(history []v1alpha1.Rollout, number int64, phase rollout.Phase) []v1alpha1.Rollout {
	limit := historyLimit(&d.o.Group.Spec)
	if limit == 0 {
		return nil
	}
	entries := make([]rollout.Entry, len(history))
	for i := range history {
		entries[i] = entryOf(&history[i])
	}
	entries = rollout.Advance(entries, strconv.FormatInt(number, 10), phase, d.o.Now, limit)
	advanced := make([]v1alpha1.Rollout, 0, len(entries))
	for _, e := range entries {
		advanced = append(advanced, updated(e, history))
	}
	return advanced
}

func entryOf(r *v1alpha1.Rollout) rollout.Entry {
	e := rollout.Entry{Revision: strconv.FormatInt(r.Number, 10), StartedAt: r.StartedAt.Time, Outcome: rollout.Outcome(r.Outcome)}
	if r.FinishedAt != nil {
		e.EndedAt = r.FinishedAt.Time
	}
	return e
}

// updated is an entry with the zones that it had before.
func updated(e rollout.Entry, history []v1alpha1.Rollout) v1alpha1.Rollout {
	number, _ := strconv.ParseInt(e.Revision, 10, 64) // it was formatted here
	r := v1alpha1.Rollout{Number: number, StartedAt: metav1.NewMicroTime(e.StartedAt), Outcome: string(e.Outcome)}
	if i := slices.IndexFunc(history, func(old v1alpha1.Rollout) bool { return old.Number == number }); i >= 0 {
		r.Zones, r.Message, r.ChangedBy, r.UndoneBy = history[i].Zones, history[i].Message, history[i].ChangedBy, history[i].UndoneBy
	}
	if !e.EndedAt.IsZero() {
		finish(&r, e.Outcome, e.EndedAt)
	}
	return r
}

func finish(r *v1alpha1.Rollout, outcome rollout.Outcome, at time.Time) {
	end := metav1.NewMicroTime(at)
	r.Outcome, r.FinishedAt = string(outcome), &end
	r.Duration = at.Sub(r.StartedAt.Time).Round(time.Second).String()
}

// forecast is when the rollout ends, by how long the zones took in the last ones; nil where
// none is recorded. Rows are the zones once the present step is taken.
func (d *decision) forecast(rows []v1alpha1.Zone) *v1alpha1.Forecast {
	var whole estimate.Part
	for i, z := range d.zones {
		whole.Parts = append(whole.Parts, estimate.Part{Name: z.Name, Began: ring.TimeOf(rows[i].StartedAt), Done: d.isDone(z)})
	}
	return (*v1alpha1.Forecast)(estimate.Ends(d.o.Now, &whole, runsOf(d.o.Group.Status.History)))
}

// runsOf are when the zones rolled in the rollouts that completed.
func runsOf(history []v1alpha1.Rollout) []estimate.Run {
	var runs []estimate.Run
	for i := range history {
		if history[i].Outcome != string(rollout.OutcomeComplete) {
			continue
		}
		run := estimate.Run{Began: history[i].StartedAt.Time, Parts: map[string]estimate.Stretch{}}
		for _, z := range history[i].Zones {
			if z.StartedAt != nil && z.FinishedAt != nil {
				run.Parts[z.Name] = estimate.Stretch{Began: z.StartedAt.Time, Ended: z.FinishedAt.Time}
			}
		}
		runs = append(runs, run)
	}
	return runs
}
