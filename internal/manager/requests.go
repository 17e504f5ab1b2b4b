package manager

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// requestSeconds has rollout-operator's name, for its dashboards. The requests of all rings
// are among them.
var requestSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
	Name:    "rollout_operator_kubernetes_api_client_request_duration_seconds",
	Help:    "Seconds that a request to the API server took.",
	Buckets: []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100},
}, []string{"path", "method", "status_code"})

func init() { //nolint:gochecknoinits // how the registry of controller-runtime is meant to be used
	metrics.Registry.MustRegister(requestSeconds)
}

// measured measures the requests of a client.
func measured(cfg *rest.Config) {
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return measuredTransport{next} })
}

type measuredTransport struct{ http.RoundTripper }

// WrappedRoundTripper is how what upgrades connections finds the settings for TLS.
func (t measuredTransport) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }

// RoundTrip implements [http.RoundTripper]. Of a watch it measures the time to the first
// answer.
func (t measuredTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	begin, code := time.Now(), "error" //nolint:forbidigo // for metrics
	response, err := t.RoundTripper.RoundTrip(r)
	if response != nil {
		code = strconv.Itoa(response.StatusCode)
	}
	requestSeconds.WithLabelValues(resourceOf(r.URL.Path), r.Method, code).Observe(time.Since(begin).Seconds()) //nolint:forbidigo // for metrics
	return response, err                                                                                        //nolint:wrapcheck // it is the transport's
}

// resourceOf says for what a request is, without names: "apps/v1/statefulsets object", or
// "other" for what is no resource. Labels must be few.
func resourceOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var group string
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		group, parts = "core/"+parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		group, parts = parts[1]+"/"+parts[2], parts[3:]
	default:
		return "other"
	}
	if len(parts) >= 3 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	resource := group + "/" + parts[0]
	switch len(parts) {
	case 1:
		return resource + " collection"
	case 2:
		return resource + " object"
	default:
		return resource + " object " + parts[2] + " subresource"
	}
}
