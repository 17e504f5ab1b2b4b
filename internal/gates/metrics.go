package gates

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	measurements = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "spillway_gates_measurements_total",
		Help: "Measurements of gates by source (http, prometheus) and result: Success, Failure, NoData, Error.",
	}, []string{"source", "result"})
	verdicts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "spillway_gates_verdicts_total",
		Help: "Verdicts of gates that were measured: Passed, Refused.",
	}, []string{"verdict"})
	writes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "spillway_gates_writes_total",
		Help: "Writes of the status of RolloutGates: made, conflict (another client was faster), or failed.",
	}, []string{"act", "result"})
)

func init() { //nolint:gochecknoinits // how the registry of controller-runtime is meant to be used
	metrics.Registry.MustRegister(measurements, verdicts, writes)
}
