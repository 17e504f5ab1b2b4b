package manager

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/spillway-dev/spillway/internal/metrics"
)

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
	metrics.RequestSeconds.WithLabelValues(resourceOf(r.URL.Path), r.Method, code).Observe(time.Since(begin).Seconds()) //nolint:forbidigo // for metrics
	return response, err                                                                                                //nolint:wrapcheck // it is the transport's
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
