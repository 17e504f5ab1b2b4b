package config

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// WritesMetric counts writes to workloads by result; Events are not among them.
const WritesMetric = "spillway_config_writes_total"

var (
	tracked = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "spillway_config_tracked_workloads",
		Help: "Workloads that are rolled when their config changes.",
	})
	waiting = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "spillway_config_waiting_workloads",
		Help: "Workloads that are not where they should be and not moved now, by reason.",
	}, []string{"reason"})
	changes = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "spillway_config_changes_total",
		Help: "Changes of a workload's config that were seen, before coalescing.",
	})
	rolls = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "spillway_config_rolls_total",
		Help: "Workloads rolled by writing their hash.",
	}, []string{"namespace", "kind"})
	writes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: WritesMetric,
		Help: "Writes to workloads: made, overtaken because somebody was faster, or failed.",
	}, []string{"result"})
	latency = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "spillway_config_change_to_write_seconds",
		Help:    "Seconds from the first change seen to the write that rolls the workload.",
		Buckets: []float64{0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3600},
	})
)

func init() { //nolint:gochecknoinits // how the registry of controller-runtime is meant to be used
	metrics.Registry.MustRegister(tracked, waiting, changes, rolls, writes, latency)
}
