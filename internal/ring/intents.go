package ring

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// ActWithin is how long after it was permitted an intent may be acted upon.
	ActWithin = 20 * time.Second
	// WithdrawAfter is how long an intent counts that is not wanted any more. It is
	// longer than [ActWithin] by what a clock may be wrong and a request may take.
	WithdrawAfter = 40 * time.Second
)

// State is what a snapshot shows of an intent.
type State int

const (
	// Ended says that its object has changed in a way that makes the write fail, or its effect
	// is complete. It is dropped.
	Ended State = iota
	// Underway says that it was acted upon, and its effect is not complete. It is kept.
	Underway
	// Wanted says that its object has not changed since, and the write is still right. It is
	// kept, acted upon while there is time, and permitted again afterwards.
	Wanted
	// Unwanted says that its object has not changed since, but the write is not right any more.
	// It is kept for as long as some manager may still act upon it.
	Unwanted
	// Unseen says that this view does not show its object. The API server itself says whether
	// there is something to wait for.
	Unseen
)

// Intents are the writes that the status of a ring's object permits, as one decision
// sees them. I is the ring's own type; everything that the protocol has to know of it
// is answered by the functions.
type Intents[I any] struct {
	// Now is the time of the snapshot.
	Now time.Time
	// Live is true if the objects of the intents were read from the API server itself.
	Live bool
	// Written are the intents in the status that was read.
	Written []I
	// At returns the field that notes when an intent was permitted.
	At func(*I) *metav1.MicroTime
	// State returns what the snapshot shows of an intent.
	State func(*I) State
	// PutOff is true while a write that was refused waits for its next try.
	PutOff func(*I) bool
	// Same is true if two intents are about the same object, so that only one of them
	// may be written.
	Same func(a, b *I) bool
	// Renew is called with an intent that is permitted again, after At was set. Nil if there is
	// nothing else to change in it.
	Renew func(*I)
	// Withdraw marks an intent that is not wanted, so that no manager acts upon it
	// later. Nil if the preconditions of the write make that impossible anyway.
	Withdraw func(*I)
}

// Unverified is true if there are intents of which only the API server itself can say
// that nothing came of them.
func (x *Intents[I]) Unverified() bool {
	return !x.Live && slices.ContainsFunc(x.Written, func(i I) bool {
		state := x.State(&i)
		return state == Unseen || state == Unwanted && x.isOver(&i)
	})
}

// Due returns the intents to act upon now. They are in the status that was read, so
// every other manager knows of them.
func (x *Intents[I]) Due() []I {
	var due []I
	for i := range x.Written {
		if in := &x.Written[i]; x.State(in) == Wanted && x.isInTime(in) && !x.PutOff(in) {
			due = append(due, *in)
		}
	}
	return due
}

// Permit returns the intents to write, with new ones and those that are kept, and
// whether some of that permits something. One that was not acted upon in time is
// permitted again, but not while its write is put off.
func (x *Intents[I]) Permit(news []I) (intents []I, permits bool) {
	intents = x.Kept()
	permits = len(news) > 0
	for i := range intents {
		switch in := &intents[i]; {
		case x.State(in) != Wanted:
			if x.Withdraw != nil {
				x.Withdraw(in)
			}
		case !x.isInTime(in) && !x.PutOff(in):
			*x.At(in), permits = metav1.NewMicroTime(x.Now), true
			if x.Renew != nil {
				x.Renew(in)
			}
		}
	}
	intents = slices.DeleteFunc(intents, func(old I) bool {
		return slices.ContainsFunc(news, func(n I) bool { return x.Same(&old, &n) })
	})
	return append(intents, news...), permits
}

// Kept returns the intents that still say something. What they are about counts as
// done in every decision.
func (x *Intents[I]) Kept() []I {
	var kept []I
	for i := range x.Written {
		if x.Keeps(&x.Written[i]) {
			kept = append(kept, x.Written[i])
		}
	}
	return kept
}

func (x *Intents[I]) isInTime(i *I) bool { return x.Now.Before(Until(*x.At(i))) }

// Wake returns when time alone changes what becomes of an intent, zero for never.
func (x *Intents[I]) Wake() time.Time {
	var wake time.Time
	for i := range x.Written {
		in := &x.Written[i]
		if state := x.State(in); state == Ended || state == Underway || !x.Keeps(in) {
			continue
		}
		for _, at := range []time.Time{Until(*x.At(in)), x.At(in).Add(WithdrawAfter)} {
			if at.After(x.Now) {
				wake = Earlier(wake, at)
			}
		}
	}
	return wake
}

// Until returns when it is too late to act upon an intent that was permitted at some
// time.
func Until(at metav1.MicroTime) time.Time { return at.Add(ActWithin) }

// Keeps is true of an intent that still says something.
func (x *Intents[I]) Keeps(i *I) bool {
	switch x.State(i) {
	case Underway, Wanted:
		return true
	case Unwanted, Unseen:
		return x.mayBeActedUpon(i)
	default:
		return false
	}
}

// mayBeActedUpon is true until it is certain that nothing comes of an intent: its time
// is over, and the API server itself shows that its object has not changed. A cache may
// just not show the write yet.
func (x *Intents[I]) mayBeActedUpon(i *I) bool { return !x.Live || !x.isOver(i) }

func (x *Intents[I]) isOver(i *I) bool { return !x.Now.Before(x.At(i).Add(WithdrawAfter)) }
