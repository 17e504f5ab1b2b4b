package decision

import (
	"slices"
	"time"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// State is the state of a workload.
type State string

// The states of a workload.
const (
	StateUpToDate State = "UpToDate"
	StateRolling  State = "Rolling"
	StateNext     State = "Next"
	StateWaiting  State = "Waiting"
	// StateLate is rolling for longer than it counts against the budget.
	StateLate State = "Late"
	// StateFailed has its config, and does not work with it.
	StateFailed     State = "Failed"
	StateNotTracked State = "NotTracked"
	// StateNotWatched is tracked, in a namespace that no manager watches.
	StateNotWatched State = "NotWatched"
	// StateNotObserved is as no manager has recorded it yet: it is newer than what was decided last.
	StateNotObserved State = "NotObserved"
)

// Phase is the phase of a workload that is in the state for a reason.
func (s State) Phase(reason rollout.Reason) rollout.Phase {
	switch s {
	case StateUpToDate:
		return rollout.PhaseComplete
	case StateNext, StateRolling:
		return rollout.PhaseProgressing
	case StateFailed:
		return rollout.PhaseFailed
	default:
		return ring.PhaseOf(reason)
	}
}

// urgency is the order in which workloads are listed.
var urgency = []State{StateFailed, StateLate, StateWaiting, StateNotObserved, StateRolling, StateNext, StateUpToDate}

// Urgency is the place of the state where what needs a user comes first, -1 of what is not tracked.
func (s State) Urgency() int { return slices.Index(urgency, s) }

// Laggard is why a workload is not up to date, with the objects that it is not up to date with.
type Laggard struct {
	ring.Waiting

	Name    workload.Name
	objects []content.Object
}

// places are the objects in whose records it is: that of its namespace, if it lacks the content of none. What has
// just got its first hash is in none.
func (l *Laggard) places() []content.Object {
	isFirst := l.State == string(StateNext) || l.State == string(StateRolling)
	if len(l.objects) == 0 && !isFirst {
		return []content.Object{{Namespace: l.Name.Namespace}}
	}
	return l.objects
}

// laggards are those of all workloads that are not up to date.
func (p *Plan) laggards(o *Observed) []Laggard {
	answers := p.answers()
	var all []Laggard
	for i := range p.Workloads {
		w := &p.Workloads[i]
		if answer, ok := answers[w.Name]; ok {
			all = append(all, Laggard{w.waiting(answer, o.Now), w.Name, w.behind(o)})
		}
	}
	return all
}

// answers are the answers of a plan by workload: each has one.
func (p *Plan) answers() map[workload.Name]rollout.Answer {
	answers := make(map[workload.Name]rollout.Answer, len(p.Steps)+len(p.Holds))
	for i := range p.Holds {
		if name, ok := At(p.Holds[i].Path); ok {
			answers[name] = rollout.Answer{Hold: &p.Holds[i]}
		}
	}
	for i := range p.Steps {
		if name, ok := At(p.Steps[i].Path); ok {
			answers[name] = rollout.Answer{Step: &p.Steps[i]}
		}
	}
	return answers
}

// waiting is what the engine answers, with the objects in question.
func (w *Workload) waiting(answer rollout.Answer, now time.Time) ring.Waiting {
	s := ring.Waiting{Unit: w.Kind + " " + w.Name.Name}
	if answer.Step != nil {
		s.State, s.Does, s.Why = string(StateNext), "is next to roll", "its config changed"
		switch {
		case w.back != nil:
			s.Does, s.Why = "is next to get its previous config back", w.back.why
		case w.stuck != nil:
			s.Does, s.Why = "is next to have Pod "+w.stuck.Name+" replaced", "it was never ready at its earlier revision ("+w.stuck.Reason+")"
		}
		return s
	}
	h := answer.Hold
	s.State, s.Reason, s.Cause = string(w.state(h, now)), h.Reason, h.Cause
	s.Since, s.Until, s.Position = h.Since, h.Until, h.Position
	w.refer(&s)
	if at, within := w.Records.Roll.At, workload.TimeToRoll(w.Object); s.State != string(StateWaiting) && !at.IsZero() && within > 0 {
		s.Deadline = at.Add(within)
	}
	return s
}

// state is the state of a workload that waits or rolls.
func (w *Workload) state(h *rollout.Hold, now time.Time) State {
	switch {
	case w.failure != nil:
		return StateFailed
	case w.IsLate(now):
		return StateLate
	case h.Reason == rollout.ReasonProgressing:
		return StateRolling
	default:
		return StateWaiting
	}
}

// refer names what the Block of the workload does not: the object that is paused, and the workload that failed.
func (w *Workload) refer(s *ring.Waiting) {
	switch {
	case s.Reason == rollout.ReasonPaused && w.PausedFor() != nil:
		s.About = refTo(*w.PausedFor())
	case w.stop != nil && s.About == refTo(w.stop.Release.Object):
		s.On = rollout.Ref(w.stop.On)
	case s.Reason == ReasonConfigRolledBack && s.About != (rollout.Ref{}):
		s.On = rollout.Ref(w.Name)
	}
}

// failedLast is the object that the workload has failed with last, none if that is not recorded.
func (w *Workload) failedLast() rollout.Ref {
	if len(w.Records.Failed) == 0 {
		return rollout.Ref{}
	}
	last := slices.MaxFunc(w.Records.Failed, func(a, b workload.Failed) int { return a.At.Compare(b.At) })
	return refTo(last.Object())
}

// refTo refers to an object.
func refTo(o content.Object) rollout.Ref {
	return rollout.Ref{Kind: string(o.Kind), Namespace: o.Namespace, Name: o.Name}
}

// behind are the objects whose content a workload does not run with yet, as far as they are known, and
// are of its namespace: who reads the records of another one must not learn about its workloads.
func (w *Workload) behind(o *Observed) []content.Object {
	var objects []content.Object
	add := func(of ...content.Object) {
		for _, object := range of {
			isOwn := object.Namespace == w.Namespace && (object.Kind == content.ConfigMap || object.Kind == content.Secret)
			if isOwn && !slices.Contains(objects, object) {
				objects = append(objects, object)
			}
		}
	}
	for _, m := range w.Missing {
		add(m.Object)
	}
	if w.Accepted() == "" { // it had no content before
		return objects
	}
	add(w.outdated()...)
	if len(objects) == 0 { // what changed is not known
		add(w.underway(o)...)
	}
	return objects
}

// outdated are the objects that it has failed with, waits for, or is rolled for.
func (w *Workload) outdated() []content.Object {
	var objects []content.Object
	switch {
	case w.failure != nil:
		for _, r := range w.failure.Releases {
			objects = append(objects, r.Object)
		}
	case w.IsCurrent():
		objects = w.changed(w.Records.Roll.Changed)
	default:
		if w.stop != nil {
			objects = append(objects, w.stop.Release.Object)
		}
		if w.staged != nil {
			objects = append(objects, w.staged.Release.Object)
		}
		if w.brake != nil {
			objects = append(objects, w.brake.Object)
		}
		objects = append(objects, w.changed(w.Change.Keys)...)
		if len(w.Change.Keys) == 0 { // the manager has just begun
			objects = append(objects, w.Outdated()...)
		}
	}
	return objects
}

// underway are the objects that it uses of which some content is recorded to be rolled out, or another one than they
// have now and it lacks.
func (w *Workload) underway(o *Observed) []content.Object {
	var objects, lacks []content.Object
	if !w.IsCurrent() {
		for _, r := range w.Lacks(nil) {
			lacks = append(lacks, r.Object)
		}
	}
	for i := range w.Uses {
		object := w.Uses[i].Object
		r := o.Records[object]
		if r == nil || r.Rollout == nil || w.Uses[i].Ignored {
			continue
		}
		digest, _ := w.Config.DigestOf(object)
		if r.Rollout.FinishedAt == nil || r.Rollout.Target != digest && slices.Contains(lacks, object) {
			objects = append(objects, object)
		}
	}
	return objects
}

// changed are the objects of which these keys are.
func (w *Workload) changed(keys []string) []content.Object {
	var objects []content.Object
	for i := range w.Uses {
		if u := &w.Uses[i]; !u.Ignored && u.IsAmong(w.Namespace, keys) {
			objects = append(objects, u.Object)
		}
	}
	return objects
}
