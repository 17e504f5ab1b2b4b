package plans

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// WritesMetric counts writes by act and result; Events are not among them.
const WritesMetric = "spillway_plans_writes_total"

var (
	writes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: WritesMetric,
		Help: "Writes of the status (act Instance) and those that it permits: made, refused by a conflict because another client was faster, or failed.",
	}, []string{"act", "result"})
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
	metrics.Registry.MustRegister(writes, executions, executionSeconds, instances)
}
