package config

import (
	"time"

	"github.com/spillway-dev/spillway/internal/ring"
)

// Retry is when and why a failed read or write is retried.
type Retry struct {
	At     time.Time
	Reason string
	// Write is true if it was a write that failed; otherwise it was a read.
	Write bool
}

// pending is true until the next attempt.
func (r *Retry) pending(now time.Time) bool { return r != nil && now.Before(r.At) }

// backoff is the retry of one workload. It begins anew when the workload's spec
// changes.
type backoff struct {
	next     *Retry
	attempts int
}

// fail postpones the next attempt, longer each time.
func (b *backoff) fail(now time.Time, err error, write bool) {
	b.next = &Retry{At: now.Add(ring.Refused().After(b.attempts)), Reason: err.Error(), Write: write}
	b.attempts++
}

func (b *backoff) reset() { *b = backoff{} }
