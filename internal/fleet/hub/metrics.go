package hub

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// WritesMetric counts writes by act and result; Events are not among them.
const WritesMetric = "spillway_fleet_writes_total"

// kindLabel is the label for the kind of a module.
const kindLabel = "kind"

var (
	phases = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "spillway_fleet_module_phase",
		Help: "1 for the present phase of a module: Complete, Progressing, Waiting, Paused, Failed, RollingBack, RolledBack, Stalled or Deleting.",
	}, []string{kindLabel, "namespace", "module", "phase"})
	clusters = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "spillway_fleet_clusters",
		Help: "Clusters of a module by state: total, updated, updating, succeeded, failed, waiting, held, unreachable.",
	}, []string{kindLabel, "namespace", "module", "state"})
	waiting = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "spillway_fleet_waiting",
		Help: "Clusters and stages that are not up to date and wait, by reason.",
	}, []string{kindLabel, "namespace", "module", "reason"})
	writes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: WritesMetric,
		Help: "Writes to modules, assemblages, revisions and gates: made, refused by a conflict because another client was faster, or failed.",
	}, []string{kindLabel, "act", "result"})
)

func init() { //nolint:gochecknoinits // how the registry of controller-runtime is meant to be used
	metrics.Registry.MustRegister(phases, clusters, waiting, writes)
}
