package config

import (
	"math"
	"time"
)

// Options are the choices of whoever runs the manager.
type Options struct {
	// Namespaces are those to look at, all if empty.
	Namespaces []string
	// UpdateRate is how many workloads are rolled per second in the long run;
	// zero and +Inf are no limit.
	UpdateRate float64
	// UpdateBurst is how many may be rolled at once before UpdateRate applies.
	UpdateBurst int
	// MaxRolling is how many workloads may be rolling at a time, zero is no limit.
	MaxRolling int
	// MaxRollingPerNamespace is MaxRolling for each namespace.
	MaxRollingPerNamespace int
	// CoalesceWindow is how long a running workload's config has to be left alone
	// before it is rolled, so that changes that follow one another are one roll.
	CoalesceWindow time.Duration
	// AllowCrossNamespace lets workloads name extra config of other namespaces
	// that did not opt in to it.
	AllowCrossNamespace bool
	// SuspendBy is how admission keeps a new workload whose config is missing from
	// running.
	SuspendBy SuspendBy
	// Now is the clock.
	Now func() time.Time
}

const (
	// coalesceLimit bounds, in windows, how long an unending series of changes
	// can put off a roll.
	coalesceLimit = 10
	// progressDeadline is how long a rolling workload keeps its place in the
	// budget; the default progressDeadlineSeconds of a Deployment.
	progressDeadline = 10 * time.Minute
	// A failed read or write is tried again after retryFirst, then after twice as
	// long, up to retryMost; or at once, when the workload's spec changes.
	retryFirst     = 500 * time.Millisecond
	retryDoublings = 9
	retryMost      = 2 * time.Minute
	// retryPass is the longest wait after a pass that could not observe at all.
	retryPass = 15 * time.Second
)

// rateEvery is the time between two rolls in the long run, zero for no limit.
func (o Options) rateEvery() time.Duration {
	if o.UpdateRate <= 0 || math.IsInf(o.UpdateRate, 1) {
		return 0
	}
	return time.Duration(float64(time.Second) / o.UpdateRate)
}
