package decision

import (
	"math"
	"time"

	"github.com/spillway-dev/spillway/internal/config/workload"
)

// RecordEvery is how often a manager writes a record at most that only says how far a content has come.
const RecordEvery = time.Second

// Options are the manager's choices for what rolls when.
type Options struct {
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
	// KeepGoing rolls workloads also for config with which others have failed.
	KeepGoing bool
	// RecordEvery is the time between two of these writes, zero if each pass may make one.
	RecordEvery time.Duration
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

// SettlesAt is when a change of a workload's config may be acted upon.
func (o Options) SettlesAt(w *workload.Workload, c *Change) time.Time {
	if w.Settings.CollectFor <= 0 {
		return c.SettlesAt(o.Window(w))
	}
	return c.First.Add(w.Settings.CollectFor)
}

// Window is the coalesce window of a workload: its own, or the manager's.
func (o Options) Window(w *workload.Workload) time.Duration {
	if own := w.Settings.CoalesceWindow; own != nil {
		return *own
	}
	return o.CoalesceWindow
}
