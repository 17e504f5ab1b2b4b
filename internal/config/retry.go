package config

import (
	"time"

	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/ring"
)

// Retry is when and why a failed read or write is retried.
type Retry struct {
	At     time.Time
	Reason string
	// Write is true if it was a write that failed; otherwise it was a read.
	Write bool
}

// retryOf is the retry of a workload, nil if nothing has failed.
func retryOf(refusals ring.Refusals, w *workload.Workload) *Retry {
	write, failed := refusals[w.String()]
	read, unread := refusals[reading(w)]
	switch {
	case unread && !read.At.Before(write.At):
		return &Retry{At: read.At, Reason: read.Reason}
	case failed:
		return &Retry{At: write.At, Reason: write.Reason, Write: true}
	default:
		return nil
	}
}

// pending is true until the next attempt.
func (r *Retry) pending(now time.Time) bool { return r != nil && now.Before(r.At) }
