package zones

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// WritesMetric counts writes by act and result; Events are not among them.
const WritesMetric = "spillway_zones_writes_total"

// groupLabel is the label of rollout-operator's metrics.
const groupLabel = "rollout_group"

var (
	groups = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "spillway_zones_group_phase",
		Help: "1 for the present phase of a group: Complete, Progressing, Waiting, Paused, Failed or Stalled.",
	}, []string{"namespace", groupLabel, "phase"})
	pods = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "spillway_zones_pods",
		Help: "Pods of a zone by state: updated (up to date and available), ready (available at any revision), total (desired replicas).",
	}, []string{"namespace", groupLabel, "zone", "state"})
	waiting = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "spillway_zones_waiting",
		Help: "Units that are not up to date and wait, by reason.",
	}, []string{"namespace", groupLabel, "reason"})
	writes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: WritesMetric,
		Help: "Writes to StatefulSets, Pods and RolloutGroups: made, conflict (another client was faster), or failed.",
	}, []string{"act", "result"})

	// Those of rollout-operator, so that its dashboards and alerts go on working.
	reconciles = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "rollout_operator_group_reconciles_total",
		Help: "Passes over a group.",
	}, []string{groupLabel})
	reconcilesFailed = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "rollout_operator_group_reconciles_failed_total",
		Help: "Passes over a group that failed, or found invalid input.",
	}, []string{groupLabel})
	reconcileDuration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "rollout_operator_group_reconcile_duration_seconds",
		Help:    "Seconds that a pass over a group took.",
		Buckets: prometheus.DefBuckets,
	}, []string{groupLabel})
	reconcileLast = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "rollout_operator_last_successful_group_reconcile_timestamp_seconds",
		Help: "When the last pass over a group succeeded.",
	}, []string{groupLabel})
	budgetsObserved = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "rollout_operator_zpdb_configurations_observed_total",
		Help: "ZoneAwarePodDisruptionBudgets that were observed: updated (or added), deleted, or invalid.",
	}, []string{"result"})
)

func init() { //nolint:gochecknoinits // how the registry of controller-runtime is meant to be used
	metrics.Registry.MustRegister(groups, pods, waiting, writes, reconciles, reconcilesFailed, reconcileDuration, reconcileLast, budgetsObserved)
	for _, result := range []string{"updated", "deleted", "invalid"} {
		budgetsObserved.WithLabelValues(result) // so that a rate knows where it begins
	}
}
