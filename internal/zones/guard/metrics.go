package guard

import (
	"strconv"

	"github.com/spillway-dev/spillway/internal/metrics"
	"github.com/spillway-dev/spillway/rollout"
)

// answered counts an answer.
func answered(reason rollout.Reason, code int) {
	status := strconv.Itoa(code)
	metrics.ZonesEvictions.WithLabelValues(string(reason), status).Inc()
	metrics.FormerEvictions.WithLabelValues(string(reason), status).Inc()
}
