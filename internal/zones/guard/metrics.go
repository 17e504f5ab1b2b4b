package guard

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/spillway-dev/spillway/rollout"
)

// evictions counts the answers to evictions by rollout-operator's reasons.
var evictions = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "spillway_zones_eviction_requests_total", Help: "Requested evictions, by reason and status of the answer.",
}, []string{"reason", "status"})

// The same under rollout-operator's names, so that its dashboards and alerts go on.
var (
	formerEvictions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "rollout_operator_zpdb_eviction_requests_total", Help: "Requested evictions, by reason and status of the answer.",
	}, []string{"reason", "status"})
	formerInFlight = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "rollout_operator_zpdb_inflight_eviction_requests", Help: "Evictions that are being decided.",
	})
)

func init() { //nolint:gochecknoinits // how the registry of controller-runtime is meant to be used
	metrics.Registry.MustRegister(evictions, formerEvictions, formerInFlight)
}

// answered counts an answer.
func answered(reason rollout.Reason, code int) {
	status := strconv.Itoa(code)
	evictions.WithLabelValues(string(reason), status).Inc()
	formerEvictions.WithLabelValues(string(reason), status).Inc()
}
