package config

import (
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/ring"
)

// accept forgets what failed for a workload.
func (o *observer) accept(w *workload.Workload) {
	o.retries.Accept(w.String())
	o.retries.Accept(reading(w))
	o.retries.Accept(decision.Disowning(w))
}

// isPutOff is true until what failed for a workload is tried again.
func (p *pass) isPutOff(e *entry) bool {
	return p.refusals.PutOff(e.workload.String(), p.now) || p.refusals.PutOff(reading(&e.workload), p.now)
}

// retryOf is the retry of a workload, nil if nothing has failed.
func retryOf(refusals ring.Refusals, w *workload.Workload) *decision.Retry {
	write, failed := refusals[w.String()]
	read, unread := refusals[reading(w)]
	switch {
	case unread && !read.At.Before(write.At):
		return &decision.Retry{At: read.At, Reason: read.Reason}
	case failed:
		return &decision.Retry{At: write.At, Reason: write.Reason, Write: true}
	default:
		return nil
	}
}

// disowning is what retries call the removal of what wave left on a workload.
func disowning(refusals ring.Refusals, w *workload.Workload) *decision.Retry {
	if refused, failed := refusals[decision.Disowning(w)]; failed {
		return &decision.Retry{At: refused.At, Reason: refused.Reason, Write: true}
	}
	return nil
}

// reading is what retries call the reads for a workload; its writes have its name.
func reading(w *workload.Workload) string { return "config of " + w.String() }
