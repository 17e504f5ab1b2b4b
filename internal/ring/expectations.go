package ring

import (
	"maps"
	"slices"
	"time"

	"github.com/spillway-dev/spillway/internal/message"
)

// ShownWithin is how long a cache may not show a write that was made. After that the write is
// made again, with the preconditions that it had; nothing else is permitted by it.
const ShownWithin = 40 * time.Second

// Change identifies a write: what is done, to which object, at which version of it. Two
// writes with the same Change are the same write.
type Change struct{ Act, Object, Version string }

// Refusal is a write that the API server did not accept.
type Refusal struct {
	// At is when to try again.
	At time.Time
	// Reason is what the API server answered.
	Reason string
}

// Refusals are by the object of the write, as its [Change] names it.
type Refusals map[string]Refusal

// PutOff is true while a refused write of an object waits for its next try.
func (r Refusals) PutOff(object string, now time.Time) bool {
	refusal, ok := r[object]
	return ok && now.Before(refusal.At)
}

// Wake returns when the next refused write is tried again, zero for never.
func (r Refusals) Wake(now time.Time) time.Time {
	var wake time.Time
	for _, refusal := range r {
		if refusal.At.After(now) {
			wake = Earlier(wake, refusal.At)
		}
	}
	return wake
}

// Expectations are what is known of own writes that cannot be observed: those that a
// cache does not show yet, and those that were refused. A manager that begins without
// them decides the same, and makes some requests twice. The zero value is ready to use,
// by one pass at a time.
type Expectations struct {
	made     map[Change]time.Time
	refusals map[string]refusal
}

type refusal struct {
	Refusal

	attempts int
}

// Learn records what became of a write. One that lost a conflict is neither made nor
// refused: it is decided again.
func (e *Expectations) Learn(now time.Time, c Change, err error) {
	switch {
	case err == nil:
		e.init()
		e.made[c] = now
		delete(e.refusals, c.Object)
	case !IsConflict(err):
		e.Refuse(now, c.Object, err.Error())
	}
}

// Refuse puts off the next try of a write, longer each time.
func (e *Expectations) Refuse(now time.Time, object, reason string) {
	e.init()
	r := e.refusals[object]
	r.Refusal = Refusal{At: now.Add(Refused().After(r.attempts)), Reason: message.Sentence(reason)}
	r.attempts++
	e.refusals[object] = r
}

func (e *Expectations) init() {
	if e.made == nil {
		e.made, e.refusals = map[Change]time.Time{}, map[string]refusal{}
	}
}

// Accept forgets the refusals of an object.
func (e *Expectations) Accept(object string) { delete(e.refusals, object) }

// Observed forgets that a write was made, because a cache has shown it. If its effect is
// missing later, some client has undone it, and it is made again.
func (e *Expectations) Observed(c Change) { delete(e.made, c) }

// Refusals returns what was refused. A refusal that no pass has needed for the longest
// back-off is forgotten.
func (e *Expectations) Refusals(now time.Time) Refusals {
	e.expire(now)
	maps.DeleteFunc(e.refusals, func(_ string, r refusal) bool { return now.Sub(r.At) > Refused().Most })
	refusals := make(Refusals, len(e.refusals))
	for object, r := range e.refusals {
		refusals[object] = r.Refusal
	}
	return refusals
}

// Unmade returns the writes without those that were made already, and when the first of
// these is made again unless a cache shows it before; zero for never.
func Unmade[W any](e *Expectations, now time.Time, writes []W, change func(*W) Change) (left []W, again time.Time) {
	e.expire(now)
	left = slices.DeleteFunc(slices.Clone(writes), func(w W) bool {
		at, made := e.made[change(&w)]
		if made {
			again = Earlier(again, at.Add(ShownWithin))
		}
		return made
	})
	return left, again
}

// IsMade is true of a write that was made a moment ago, and that a cache may not show yet.
func (e *Expectations) IsMade(now time.Time, c Change) bool {
	e.expire(now)
	_, made := e.made[c]
	return made
}

// expire forgets writes that every cache shows by now.
func (e *Expectations) expire(now time.Time) {
	maps.DeleteFunc(e.made, func(_ Change, at time.Time) bool { return now.Sub(at) >= ShownWithin })
}
