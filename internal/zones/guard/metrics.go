package guard

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// evictions counts the answers to evictions by the predecessor's reasons.
var evictions = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "spillway_zones_eviction_requests_total", Help: "Evictions that were asked for, by reason and status of the answer.",
}, []string{"reason", "status"})

func init() { //nolint:gochecknoinits // how the registry of controller-runtime is meant to be used
	metrics.Registry.MustRegister(evictions)
}
