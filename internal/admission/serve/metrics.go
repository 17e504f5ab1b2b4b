package serve

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "spillway_admission_requests_total",
		Help: "Requests to webhooks by how they ended: allowed, patched, denied; late or failed, and answered by the failure policy; " +
			"refused with an HTTP error; abandoned by the API server.",
	}, []string{"path", "outcome"})
	seconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "spillway_admission_request_seconds",
		Help:    "Seconds that a request to a webhook took.",
		Buckets: []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30},
	}, []string{"path"})
	inFlight = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "spillway_admission_requests_in_flight",
		Help: "Requests to webhooks that are being answered.",
	}, []string{"path"})
	formerSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "rollout_operator_request_duration_seconds",
		Help:    "Seconds that a request to a webhook took, by rollout-operator's name, for its dashboards.",
		Buckets: []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100},
	}, []string{"method", "route", "status_code", "ws"})
	expiry = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "spillway_admission_certificate_expiry_timestamp_seconds",
		Help: "When the certificate that is served expires, in Unix time; 0 while there is none.",
	})
)

// notInRoute is what the label route does not have of a path.
var notInRoute = regexp.MustCompile(`[^a-z0-9]+`)

// observeSeconds counts a request that was answered with an HTTP status.
func observeSeconds(path, method string, code int, took time.Duration) {
	seconds.WithLabelValues(path).Observe(took.Seconds())
	if method != http.MethodPost {
		method = "other" // a client chooses it
	}
	route := strings.Trim(notInRoute.ReplaceAllString(strings.ToLower(path), "_"), "_")
	formerSeconds.WithLabelValues(method, route, strconv.Itoa(code), "false").Observe(took.Seconds())
}

func init() { //nolint:gochecknoinits // the documented use of the registry of controller-runtime
	metrics.Registry.MustRegister(requests, seconds, formerSeconds, inFlight, expiry)
}
