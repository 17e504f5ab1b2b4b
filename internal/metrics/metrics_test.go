package metrics_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

	"github.com/spillway-dev/spillway/internal/metrics"
)

var update = flag.Bool("update", false, "write testdata/interface.txt")

// TestInterface checks that names, types and labels are those that users' dashboards and
// alerts rely on. See ADR 48 before a line is changed or removed.
func TestInterface(t *testing.T) {
	t.Parallel()
	lines := make([]string, 0, len(metrics.All()))
	for _, m := range metrics.All() {
		lines = append(lines, fmt.Sprintf("%s %s {%s}\n", m.Name, m.Type, strings.Join(m.Labels, ",")))
	}
	slices.Sort(lines)
	got, path := strings.Join(lines, ""), filepath.Join("testdata", "interface.txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the interface changed; if it may (ADR 48), run this test with -update:\n%s", diff)
	}
}

// TestConventions checks names and types with the linter of Prometheus.
func TestConventions(t *testing.T) {
	t.Parallel()
	types := map[metrics.Type]dto.MetricType{
		metrics.Counter: dto.MetricType_COUNTER, metrics.Gauge: dto.MetricType_GAUGE, metrics.Histogram: dto.MetricType_HISTOGRAM,
	}
	var families []*dto.MetricFamily
	for _, m := range metrics.All() {
		metric := &dto.Metric{}
		for _, l := range m.Labels {
			metric.Label = append(metric.Label, &dto.LabelPair{Name: &l})
		}
		families = append(families, &dto.MetricFamily{Name: &m.Name, Help: &m.Help, Type: types[m.Type].Enum(), Metric: []*dto.Metric{metric}})
		if !strings.HasSuffix(m.Help, ".") {
			t.Errorf("%s: the help is no sentence: %s", m.Name, m.Help)
		}
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if p.Metric == "reloader_reload_executed_total_by_namespace" { // the name is Reloader's
			continue
		}
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// TestEnded checks that a rollout is counted when its outcome becomes known, and once.
func TestEnded(t *testing.T) {
	t.Parallel()
	const ring = "of this test"
	running := []metrics.Past{{ID: "2", Outcome: "Running"}, {ID: "1", Outcome: "Complete"}}
	failed := []metrics.Past{{ID: "2", Outcome: "Failed"}, {ID: "1", Outcome: "Complete"}}
	done := []metrics.Past{{ID: "2", Outcome: "Complete", Took: time.Minute}, {ID: "1", Outcome: "Complete"}}
	for _, step := range [][2][]metrics.Past{{running, running}, {running, failed}, {failed, failed}, {failed, running}, {running, done}, {done, done}} {
		metrics.Ended(ring, step[0], step[1])
	}
	for outcome, want := range map[string]float64{"Failed": 1, "Complete": 1, "Running": 0} {
		if got := testutil.ToFloat64(metrics.Rollouts.WithLabelValues(ring, outcome)); got != want {
			t.Errorf("%s: %v, want %v", outcome, got, want)
		}
	}
}
