package config

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// WritesMetric counts writes to workloads by act and result; Events are not among them.
const WritesMetric = "spillway_config_writes_total"

var (
	tracked = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "spillway_config_tracked_workloads",
		Help: "Workloads that are rolled when their config changes.",
	})
	waiting = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "spillway_config_waiting_workloads",
		Help: "Workloads that are out of date and not rolled now, by reason.",
	}, []string{"reason"})
	configChanges = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "spillway_config_changes_total",
		Help: "Observed changes of a workload's config, before coalescing.",
	})
	rolls = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "spillway_config_rolls_total",
		Help: "Workloads rolled by writing their hash.",
	}, []string{"namespace", "kind"})
	writes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: WritesMetric,
		Help: "Writes to workloads, by act (Roll, Record, Free) and result: made, conflict or failed.",
	}, []string{"act", "result"})
	latency = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "spillway_config_change_to_write_seconds",
		Help:    "Seconds from the first observed change to the write that rolls the workload.",
		Buckets: []float64{0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3600},
	})
)

func init() { //nolint:gochecknoinits // the documented use of the registry of controller-runtime
	metrics.Registry.MustRegister(tracked, waiting, configChanges, rolls, writes, latency)
}
