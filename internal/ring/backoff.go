package ring

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Backoff is how long to wait before something is tried again: First, then twice as
// long with each attempt, up to Most. It reads no clock.
type Backoff struct{ First, Most time.Duration }

// Refused is the back-off of a write that the API server did not accept.
func Refused() Backoff { return Backoff{First: 500 * time.Millisecond, Most: 2 * time.Minute} }

// Streak counts the passes in a row that lost a conflict. The zero value is ready to use.
type Streak int

// Again returns when to observe again after a pass that lost a conflict or not, zero for
// never.
func (s *Streak) Again(now time.Time, conflict bool) time.Time {
	if !conflict {
		*s = 0
		return time.Time{}
	}
	*s++
	return now.Add(Conflicts().After(int(*s) - 1))
}

// Conflicts is the back-off of a pass that lost a conflict: it is decided again once
// the cache shows why, or after this time.
func Conflicts() Backoff { return Backoff{First: 10 * time.Millisecond, Most: 5 * time.Second} }

// Passes is the back-off of a pass that could not observe at all.
func Passes() Backoff { return Backoff{First: 500 * time.Millisecond, Most: 15 * time.Second} }

// After is how long to wait after so many attempts before this one.
func (b Backoff) After(attempts int) time.Duration {
	wait := b.First
	for range attempts {
		if wait >= b.Most {
			break
		}
		wait *= 2
	}
	return min(wait, b.Most)
}

// RateLimiter is the same back-off for the queue of a controller.
func (b Backoff) RateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](b.First, b.Most)
}

// Earlier is the earlier of two times, of which zero means never.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Later is the later of two times.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// FalseFirst orders what is not true before what is.
func FalseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// Soonest returns the first of some moments that lies ahead, zero if none does.
func Soonest(now time.Time, moments ...time.Time) time.Time {
	var next time.Time
	for _, at := range moments {
		if at.After(now) {
			next = Earlier(next, at)
		}
	}
	return next
}
