package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/spillway-dev/spillway/rollout"
)

// The rings, as the label ring has them.
const (
	RingConfig = "config"
	RingZones  = "zones"
	RingPlans  = "plans"
	RingFleet  = "fleet"
)

// What all rings have.
var (
	// Rollouts counts rollouts that have ended; see [Ended].
	Rollouts = counter("spillway_rollouts_total",
		"Rollouts that ended, by outcome: of groups, of modules, executions of plans, and of config the workloads that failed (Failed) or got their previous config back (RolledBack).",
		labelRing, "outcome")
	// RolloutSeconds are durations; see [Ended].
	RolloutSeconds = histogram("spillway_rollout_duration_seconds",
		"Seconds from the beginning of a rollout to its end, of those that completed. For config, see spillway_config_change_to_write_seconds.",
		[]float64{1, 5, 15, 60, 300, 900, 1800, 3600, 7200, 14400, 43200, 86400}, labelRing)
	// WaitingUnits is how much waits.
	WaitingUnits = gauge("spillway_waiting_units",
		"Units of rollouts (workloads, Pods, zones, steps, clusters) that are not up to date and wait, by reason.", labelRing, labelReason)
	// WaitingSeconds adds up for how long.
	WaitingSeconds = counter("spillway_waiting_seconds_total",
		"Seconds that units have waited, added up over the units, by reason.", labelRing, labelReason)
	// QueuedUnits is how much waits in a queue.
	QueuedUnits = gauge("spillway_queued_units", "Units that wait in a queue for a budget or a rate.", labelRing)
	// OldestWait is the earliest beginning of a wait.
	OldestWait = &earliest{since: map[string]map[any]time.Time{}, desc: computed("spillway_oldest_wait_start_timestamp_seconds",
		"When the wait began that has lasted longest, in Unix time; absent while nothing waits.", labelRing)}
)

func init() { //nolint:gochecknoinits // a rate needs to know that a counter was 0
	Register(OldestWait)
	for ring, outcomes := range map[string][]rollout.Outcome{
		RingConfig: {rollout.OutcomeFailed, rollout.OutcomeRolledBack},
		RingZones:  {rollout.OutcomeComplete, rollout.OutcomeFailed, rollout.OutcomeSuperseded},
		RingPlans:  {rollout.OutcomeComplete, rollout.OutcomeFailed, rollout.OutcomeSuperseded, "Abandoned"},
		RingFleet:  {rollout.OutcomeComplete, rollout.OutcomeFailed, rollout.OutcomeRolledBack, rollout.OutcomeSuperseded},
	} {
		QueuedUnits.WithLabelValues(ring)
		for _, outcome := range outcomes {
			Rollouts.WithLabelValues(ring, string(outcome))
		}
	}
}

// Past is a rollout of a history.
type Past struct {
	// ID tells it from the others.
	ID string
	// Outcome is how it ended, and empty or Running until then.
	Outcome string
	Took    time.Duration
}

// Ended counts the rollouts that have ended between two states of a history. One that
// failed and then continued ends again.
func Ended(ring string, before, after []Past) {
	was := map[string]string{}
	for _, p := range before {
		was[p.ID] = p.Outcome
	}
	for _, p := range after {
		if p.Outcome == "" || p.Outcome == string(rollout.OutcomeRunning) || was[p.ID] == p.Outcome {
			continue
		}
		Rollouts.WithLabelValues(ring, p.Outcome).Inc()
		if p.Outcome == string(rollout.OutcomeComplete) {
			RolloutSeconds.WithLabelValues(ring).Observe(p.Took.Seconds())
		}
	}
}

// earliest is a gauge for each ring: the earliest of the moments of its objects.
type earliest struct {
	desc *prometheus.Desc

	mu    sync.Mutex
	since map[string]map[any]time.Time
}

// Set sets the moment of an object, zero if it has none.
func (e *earliest) Set(ring string, object any, since time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if since.IsZero() {
		delete(e.since[ring], object)
		return
	}
	if e.since[ring] == nil {
		e.since[ring] = map[any]time.Time{}
	}
	e.since[ring][object] = since
}

// Describe implements [prometheus.Collector].
func (e *earliest) Describe(descs chan<- *prometheus.Desc) { descs <- e.desc }

// Collect implements [prometheus.Collector].
func (e *earliest) Collect(found chan<- prometheus.Metric) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for ring, objects := range e.since {
		var first time.Time
		for _, since := range objects {
			if first.IsZero() || since.Before(first) {
				first = since
			}
		}
		if !first.IsZero() {
			found <- prometheus.MustNewConstMetric(e.desc, prometheus.GaugeValue, float64(first.UnixMilli())/1000, ring)
		}
	}
}
