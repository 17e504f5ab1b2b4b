package ring

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ActWithin is how long after it was permitted an intent is acted upon; later it is
// permitted again first, because deadlines count from then. It protects nothing: a request
// that was sent in time may arrive at any later time.
const ActWithin = 20 * time.Second

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
	// It is kept until its object has changed, which [Intents.Fences] are for.
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
}

// Unverified is true if there are intents of which only the API server itself can say
// that nothing comes of them.
func (x *Intents[I]) Unverified() bool {
	return !x.Live && slices.ContainsFunc(x.Written, func(i I) bool { return x.State(&i) == Unseen })
}

// Fences returns the intents to withdraw now: those that are not wanted. The ring changes
// their objects, so that a write that some manager has sent, or sends, finds another
// resourceVersion than it names, however late it arrives. Until then they count.
func (x *Intents[I]) Fences() []I {
	var fences []I
	for i := range x.Written {
		if in := &x.Written[i]; x.State(in) == Unwanted && !x.PutOff(in) {
			fences = append(fences, *in)
		}
	}
	return fences
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
		if in := &intents[i]; x.State(in) == Wanted && !x.isInTime(in) && !x.PutOff(in) {
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

// Wake returns when time alone changes what becomes of an intent, zero for never.
func (x *Intents[I]) Wake() time.Time {
	var wake time.Time
	for i := range x.Written {
		if in := &x.Written[i]; x.State(in) == Wanted && x.isInTime(in) {
			wake = Earlier(wake, x.until(in))
		}
	}
	return wake
}

func (x *Intents[I]) isInTime(i *I) bool { return x.Now.Before(x.until(i)) }

func (x *Intents[I]) until(i *I) time.Time { return x.At(i).Add(ActWithin) }

// Keeps is true of an intent that still says something: its object has not changed, or its
// effect is not complete. One that is unseen is over where the API server itself does not
// show its object.
func (x *Intents[I]) Keeps(i *I) bool {
	state := x.State(i)
	return state != Ended && (state != Unseen || !x.Live)
}
