package config

import (
	"math"
	"time"

	"github.com/spillway-dev/spillway/internal/config/workload"
)

// Options are the manager's choices for the ring.
type Options struct {
	// Namespaces are those to watch, all if empty.
	Namespaces []string
	// UpdateRate is how many workloads are rolled per second in the long run;
	// zero and +Inf are no limit.
	UpdateRate float64
	// UpdateBurst is how many may be rolled before UpdateRate applies.
	UpdateBurst int
	// MaxRolling is how many workloads may be rolling at a time, zero is no limit.
	MaxRolling int
	// MaxRollingPerNamespace is MaxRolling for each namespace.
	MaxRollingPerNamespace int
	// CoalesceWindow is how long the config of a running workload must not change
	// before it is rolled, so that changes that follow one another are one roll.
	CoalesceWindow time.Duration
	// AllowCrossNamespace lets workloads name extra config of other namespaces
	// that did not opt in to it.
	AllowCrossNamespace bool
	// SuspendBy is how admission suspends a new workload whose config is missing.
	SuspendBy workload.SuspendBy
	// Zones is true if the zones ring runs, and replaces the Pods of StatefulSets
	// that form groups.
	Zones bool
	// Now is the clock.
	Now func() time.Time
}

// SharesBudget is true if workloads of several namespaces wait for one another.
func (o Options) SharesBudget() bool {
	return o.MaxRolling > 0 || o.UpdateRate > 0 && !math.IsInf(o.UpdateRate, 1)
}

// rateEvery is the time between two rolls in the long run, zero for no limit.
func (o Options) rateEvery() time.Duration {
	if o.UpdateRate <= 0 || math.IsInf(o.UpdateRate, 1) {
		return 0
	}
	return time.Duration(float64(time.Second) / o.UpdateRate)
}

// window is the coalesce window of a workload: its own, or the manager's.
func (o Options) window(w *workload.Workload) time.Duration {
	if own := w.Settings.CoalesceWindow; own != nil {
		return *own
	}
	return o.CoalesceWindow
}
