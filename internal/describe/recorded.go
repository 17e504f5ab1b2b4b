package describe

import (
	"slices"
	"strings"

	"github.com/spillway-dev/spillway/api/record"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// recorded adds to a unit what its record says: the numbers, and its stages with the units beneath that are not
// complete, whatever the ring; those that are in no stage come last. It is the one function that makes units
// of a record.
func (u *Unit) recorded(r *record.Rollout, stage, unit string) {
	if r == nil {
		return
	}
	u.Done, u.Total = int(r.Units.Complete), int(r.Units.Total)
	for i := range r.Stages {
		u.Units = append(u.Units, u.stage(&r.Stages[i], stage))
	}
	stages := len(u.Units)
	for i := range r.Causes {
		for k, name := range r.Causes[i].Units {
			in, own := ring.UnitOf(name)
			isOf := func(s Unit) bool { return s.Name == in }
			switch at := slices.IndexFunc(u.Units[:stages], isOf); {
			case at >= 0:
				s := &u.Units[at]
				s.Units = append(s.Units, u.waiting(&r.Causes[i], unit, own, k))
			case own != u.Name && !slices.ContainsFunc(u.Units[:stages], func(s Unit) bool { return s.Name == own }):
				u.Units = append(u.Units, u.waiting(&r.Causes[i], unit, own, k))
			}
		}
	}
	for i := range u.Units[:stages] {
		slices.SortStableFunc(u.Units[i].Units, func(a, b Unit) int { return strings.Compare(a.Name, b.Name) })
	}
}

// stage is a stage of a unit.
func (u *Unit) stage(s *record.Stage, kind string) Unit {
	stage := Unit{
		Ref: Ref{Kind: kind, Name: s.Name}, Ring: u.Ring, Phase: rollout.Phase(s.Phase), Reason: rollout.Reason(s.Reason),
		Sentence: s.Message, Since: TimeOf(s.Since), Done: int(s.Complete), Total: int(s.Total), Counted: u.Counted,
	}
	if s.WaitsFor != "" {
		stage.WaitsFor = &Ref{Kind: kind, Name: s.WaitsFor}
	}
	return stage
}

// waiting is a unit beneath that is not complete, at a place among those that wait for the same.
func (u *Unit) waiting(c *record.Cause, kind, name string, at int) Unit {
	is := ring.WaitingIn(c, name, at)
	w := Unit{
		Ref: Ref{Kind: kind, Name: name}, Ring: u.Ring, Phase: ring.PhaseOf(is.Reason), Reason: is.Reason, Why: is.Cause,
		Sentence: is.Sentence(name, is.Position), Position: is.Position,
		Since: TimeOrNil(is.Since), Until: TimeOrNil(is.Until), Deadline: TimeOrNil(is.Deadline),
	}
	if is.State == ring.StateWaiting && w.Phase == rollout.PhaseProgressing { // nothing moves
		w.Phase = rollout.PhaseWaiting
	}
	if on := c.On; on != nil && on.Name != name {
		w.WaitsFor = &Ref{Kind: on.Kind, Name: on.Name}
	}
	return w
}
