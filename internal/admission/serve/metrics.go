package serve

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spillway-dev/spillway/internal/metrics"
)

// notInRoute is what the label route does not have of a path.
var notInRoute = regexp.MustCompile(`[^a-z0-9]+`)

// observeSeconds counts a request that was answered with an HTTP status.
func observeSeconds(path, method string, code int, took time.Duration) {
	metrics.AdmissionSeconds.WithLabelValues(path).Observe(took.Seconds())
	if method != http.MethodPost {
		method = "other" // a client chooses it
	}
	route := strings.Trim(notInRoute.ReplaceAllString(strings.ToLower(path), "_"), "_")
	metrics.WebhookSeconds.WithLabelValues(method, route, strconv.Itoa(code), "false").Observe(took.Seconds())
}
