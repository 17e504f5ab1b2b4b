package config

import "time"

// A failed read or write is retried after retryFirst, then after twice as long, up
// to retryMost; or immediately, when the workload's spec changes.
const (
	retryFirst     = 500 * time.Millisecond
	retryDoublings = 9
	retryMost      = 2 * time.Minute
	// retryPass is the longest wait after a pass that could not observe.
	retryPass = 15 * time.Second
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

// backoff is the retry of one workload.
type backoff struct {
	next     *Retry
	attempts int
}

// fail postpones the next attempt, longer each time.
func (b *backoff) fail(now time.Time, err error, write bool) {
	delay := min(retryFirst<<min(b.attempts, retryDoublings), retryMost)
	b.attempts++
	b.next = &Retry{At: now.Add(delay), Reason: err.Error(), Write: write}
}

func (b *backoff) reset() { *b = backoff{} }

// earlier is the earlier of two times, of which zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
