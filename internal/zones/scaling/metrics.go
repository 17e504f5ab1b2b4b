package scaling

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	scales = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "spillway_zones_scales_total",
		Help: "Writes and calls by act (Scale, WriteBack, Call, Settle): made, conflict (another client was faster), or failed.",
	}, []string{"namespace", "rollout_group", "act", "result"})
	waiting = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "spillway_zones_scaling_waiting",
		Help: "StatefulSets whose replicas wait to be changed, by reason.",
	}, []string{"namespace", "rollout_group", "reason"})
)

func init() { //nolint:gochecknoinits // how the registry of controller-runtime is meant to be used
	metrics.Registry.MustRegister(scales, waiting)
}
