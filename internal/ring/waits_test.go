package ring_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/spillway-dev/spillway/internal/metrics"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// TestWaits follows two objects: what waits is counted, for how long it waits, and since when;
// what an object no longer waits for ends.
func TestWaits(t *testing.T) {
	t.Parallel()
	const name = "of this test"
	start := time.Date(2026, time.May, 1, 12, 0, 0, 0, time.UTC)
	var a, b ring.Waits
	step := func(said string, waiting, seconds, queued float64, oldest string) {
		t.Helper()
		if got := testutil.ToFloat64(metrics.WaitingUnits.WithLabelValues(name, "Gate")); got != waiting {
			t.Errorf("%s: %v units wait, want %v", said, got, waiting)
		}
		if got := testutil.ToFloat64(metrics.WaitingSeconds.WithLabelValues(name, "Gate")); got != seconds {
			t.Errorf("%s: they waited %vs, want %vs", said, got, seconds)
		}
		if got := testutil.ToFloat64(metrics.QueuedUnits.WithLabelValues(name)); got != queued {
			t.Errorf("%s: %v are queued, want %v", said, got, queued)
		}
		if oldest != "" {
			oldest = "# HELP spillway_oldest_wait_start_timestamp_seconds When the wait began that has lasted longest, in Unix time; absent while nothing waits.\n" +
				"# TYPE spillway_oldest_wait_start_timestamp_seconds gauge\nspillway_oldest_wait_start_timestamp_seconds{ring=\"" + name + "\"} " + oldest + "\n"
		}
		if err := testutil.CollectAndCompare(metrics.OldestWait, strings.NewReader(oldest)); err != nil {
			t.Errorf("%s: %v", said, err)
		}
	}
	a.Wait(name, start, []rollout.Hold{{Reason: "Gate"}, {Reason: "Gate", Position: 2}})
	step("two wait", 2, 0, 1, "1.7776368e+09")
	b.Wait(name, start.Add(time.Minute), []rollout.Hold{{Reason: "Gate", Since: start.Add(-time.Hour)}})
	step("one of another object waits longer", 3, 0, 1, "1.7776332e+09")
	a.Wait(name, start.Add(time.Minute), []rollout.Hold{{Reason: "Gate"}})
	step("two have waited a minute", 2, 120, 0, "1.7776332e+09")
	b.Wait(name, start.Add(2*time.Minute), nil)
	step("the other one is gone", 1, 180, 0, "1.7776368e+09")
	a.Wait(name, start.Add(2*time.Minute), nil)
	step("nothing waits", 0, 240, 0, "")
}
