package ring

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/record"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/rollout"
)

// Decided is what a ring has decided about an object whose units it gives to the engine.
type Decided struct {
	Namespace, Target string
	Phase             rollout.Phase
	// Reason and Sentence are why it is not complete; Telling is what the sentence is made of, the zero Cause
	// if that is no unit.
	Reason   rollout.Reason
	Sentence string
	Telling  rollout.Cause
	// Units are those that are not complete, Total is how many there are in all.
	Units []Waiting
	Total int
	// Stages are those that roll as a whole, Notes are worth knowing.
	Stages []record.Stage
	Notes  []string
	// StartedAt and FinishedAt are when the rollout began and ended, zero if only what was recorded says that.
	StartedAt, FinishedAt time.Time
	// By is the manager that has decided it, ChangedBy who has made the change, empty if that is not known.
	By, ChangedBy string
}

// WaitingOf are the units that a plan moves or holds. Name is how a record names a unit, and what kind of
// thing it is.
func WaitingOf(p *rollout.Plan, name func(rollout.Path) (unit string, whole bool), refer func(rollout.Path) rollout.Ref) []Waiting {
	units := make([]Waiting, 0, len(p.Steps)+len(p.Holds))
	for i := range p.Steps {
		unit, whole := name(p.Steps[i].Path)
		units = append(units, Waiting{Cause: p.Steps[i].Cause(), Unit: unit, State: StateNext, Whole: whole, Removed: p.Steps[i].To == rollout.Removed})
	}
	for i := range p.Holds {
		h := &p.Holds[i]
		u := Held(h)
		if u.Unit, u.Whole = name(h.Path); len(h.On) > 0 {
			u.On = refer(h.On)
		}
		units = append(units, u)
	}
	return units
}

// Held is a unit that a plan holds, without its name.
func Held(h *rollout.Hold) Waiting {
	return Waiting{Cause: h.Cause, State: stateOf(h), Reason: h.Reason, Since: h.Since, Until: h.Until, Position: h.Position}
}

// stateOf is the state of what waits. A unit has failed itself only if no other is in its way.
func stateOf(h *rollout.Hold) string {
	switch phase := PhaseOf(h.Reason); {
	case phase == rollout.PhaseProgressing:
		return StateRolling
	case phase == rollout.PhaseFailed && h.Reason != rollout.ReasonGateRefused && h.Cause.Subject == "":
		return StateFailed
	default:
		return StateWaiting
	}
}

// StageOf is what a plan says of a stage of which so many units are complete.
func StageOf(p *rollout.Plan, name string, total, complete int, path ...string) record.Stage {
	s := record.Stage{Name: name, Phase: string(rollout.PhaseComplete), Total: int32(total), Complete: int32(complete)} //nolint:gosec // bounded by what an API server can hold
	answer := p.At(path...)
	s.Message = message.Cut(answer.Message(), stageLength)
	switch h := answer.Hold; {
	case answer.Step != nil:
		s.Phase = string(rollout.PhaseProgressing)
	case h != nil:
		s.Phase, s.Reason, s.Since = string(PhaseOf(h.Reason)), string(h.Reason), momentOf(h.Since.Truncate(time.Second))
	}
	return s
}

// stageLength bounds the sentence about a stage, mostStages how many there are; the others bound the notes.
const (
	stageLength = 256
	mostStages  = 100
	mostNotes   = 10
	noteLength  = 512
	// NameLength bounds the name of who makes or undoes a change.
	NameLength = 128
)

// Record is the record of what was decided, after the one before; just that if nothing else is decided. It
// is the only function that makes records of these rings.
func (d *Decided) Record(before *record.Rollout, now time.Time) *record.Rollout {
	at := metav1.NewMicroTime(now.UTC().Truncate(time.Microsecond))
	r := &record.Rollout{
		Target: d.Target, ChangedBy: message.Cut(d.ChangedBy, NameLength), Phase: string(d.Phase), StartedAt: at, DecidedAt: at, DecidedBy: d.By, Units: d.counts(),
		Stages: d.Stages[:min(len(d.Stages), mostStages)], Causes: Causes(d.Units, d.Namespace),
	}
	for _, note := range d.Notes[:min(len(d.Notes), mostNotes)] {
		r.Notes = append(r.Notes, message.Cut(note, noteLength))
	}
	isComplete := d.Phase == rollout.PhaseComplete
	if !isComplete {
		r.Reason, r.WaitingFor = string(d.Reason), message.Sentence(d.Sentence)
	}
	tells := func(c record.Cause) bool {
		return c.Subject == d.Telling.Subject && c.Does == message.Sentence(d.Telling.Does) && c.Why == message.Sentence(d.Telling.Why)
	}
	if i := slices.IndexFunc(r.Causes, tells); i > 0 {
		first := r.Causes[i]
		r.Causes = slices.Insert(slices.Delete(r.Causes, i, i+1), 0, first)
	}
	if isComplete {
		r.FinishedAt = &at
	}
	if before != nil && before.Target == d.Target && (before.FinishedAt == nil || isComplete) { // it goes on
		r.StartedAt, r.MovedAt, r.ChangedBy = before.StartedAt, before.MovedAt, cmp.Or(before.ChangedBy, r.ChangedBy)
		if before.FinishedAt != nil {
			r.FinishedAt = before.FinishedAt
		}
		keepSince(r.Causes, before.Causes)
	}
	d.date(r, at)
	return quiet(before, r)
}

// counts counts the units.
func (d *Decided) counts() record.Counts {
	c := record.Counts{Total: int32(d.Total)} //nolint:gosec // bounded by what an API server can hold
	for i := range d.Units {
		switch u := &d.Units[i]; {
		case u.Whole:
		case u.State == StateNext, u.State == StateRolling:
			c.Moving++
		case u.State == StateFailed:
			c.Failed++
		default:
			c.Waiting++
		}
	}
	c.Total = max(c.Total, c.Moving+c.Failed+c.Waiting)
	c.Complete = c.Total - c.Moving - c.Failed - c.Waiting
	return c
}

// date sets the times that the ring itself knows, and since when a unit has the target or is updating to it.
func (d *Decided) date(r *record.Rollout, at metav1.MicroTime) {
	if !d.StartedAt.IsZero() {
		r.StartedAt = *momentOf(d.StartedAt)
	}
	if finished := momentOf(d.FinishedAt); finished != nil && r.FinishedAt != nil {
		r.FinishedAt = finished
	}
	if r.MovedAt == nil && r.FinishedAt == nil && r.Units.Moving+r.Units.Failed > 0 {
		r.MovedAt = &at
	}
}

// quiet is the record before if the other one says the same.
func quiet(before, r *record.Rollout) *record.Rollout {
	if SaysTheSame(before, r) {
		return before
	}
	return r
}

// SaysTheSame is true of two records that differ in nothing but when they were decided, and by which manager. Either may be nil.
func SaysTheSame(a, b *record.Rollout) bool {
	if a == nil || b == nil {
		return a == b
	}
	same := *b
	same.DecidedAt, same.DecidedBy = a.DecidedAt, a.DecidedBy
	return equality.Semantic.DeepEqual(a, &same)
}
