package plans

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// WritesMetric counts the writes that plans permit, by act and result, without
// those of the status.
const WritesMetric = "spillway_plans_writes_total"

var (
	writesMade = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: WritesMetric,
		Help: "Writes that plans permit, by act: made or refused.",
	}, []string{"act", "result"})
	statusWrites = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "spillway_plans_status_writes_total",
		Help: "Writes of the status of Instances.",
	})
	executions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "spillway_plans_executions_total",
		Help: "Executions that have ended, by plan and result.",
	}, []string{"plan", "result"})
	executionSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "spillway_plans_execution_seconds",
		Help:    "Duration of executions that are complete.",
		Buckets: []float64{0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14400},
	}, []string{"plan"})
	instances = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "spillway_plans_instances",
		Help: "Instances by state: idle, running or stalled.",
	}, []string{"state"})
)

func init() { //nolint:gochecknoinits // how the registry of controller-runtime is meant to be used
	metrics.Registry.MustRegister(writesMade, statusWrites, executions, executionSeconds, instances)
}
