package measured

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/barrier"
	"github.com/spillway-dev/spillway/internal/manifests"
)

// Recording is what a real Prometheus scrapes of a manager, in the way that the ServiceMonitor of
// the chart asks for, once for each minute of a clock that a test steps. Alerts and queries are
// replayed on it.
type Recording struct {
	t        testing.TB
	scraped  *Prometheus
	barrier  *barrier.Barrier
	clock    *barrier.Clock
	selector string
	began    time.Time
	now      int
	// series has a value for each minute, as promtool writes them.
	series map[string][]string
	// alerts and queries are what has to come out, as promtool has it.
	alerts, queries []any
}

// Record begins at the minute 0: with the metrics that are selected, of what is served at an
// address, which has the labels that the operator of Prometheus gives to a target.
func Record(t testing.TB, b *barrier.Barrier, clock *barrier.Clock, address, selector string, labels map[string]string) *Recording {
	t.Helper()
	r := &Recording{
		t: t, scraped: &Prometheus{t: t}, barrier: b, clock: clock, selector: selector,
		began: clock.Now().Truncate(time.Second), series: map[string][]string{},
	}
	endpoint := monitored(t)
	r.scraped.start(marshal(t, map[string]any{
		"global": map[string]any{"scrape_interval": "500ms", "scrape_timeout": "500ms"},
		"scrape_configs": []any{map[string]any{
			"job_name": "spillway-metrics", "honor_labels": endpoint["honorLabels"], "metric_relabel_configs": relabeling(endpoint["metricRelabelings"]),
			"static_configs": []any{map[string]any{"targets": []string{address}, "labels": labels}},
		}},
	}))
	r.record()
	return r
}

// monitored is the endpoint of the ServiceMonitor that is installed.
func monitored(t testing.TB) map[string]any {
	t.Helper()
	o := manifests.Default("zones")
	o.Namespace, o.Values.Metrics.ServiceMonitor = "spillway-system", true
	objects, err := manifests.Objects(o)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(objects, func(obj *unstructured.Unstructured) bool { return obj.GetKind() == "ServiceMonitor" })
	endpoints, _, err := unstructured.NestedSlice(objects[i].Object, "spec", "endpoints")
	if err != nil || len(endpoints) != 1 {
		t.Fatalf("%d endpoints: %v", len(endpoints), err)
	}
	endpoint, _ := endpoints[0].(map[string]any)
	return endpoint
}

// relabeling is that of a ServiceMonitor as the configuration of Prometheus has it.
func relabeling(of any) (rules []any) {
	capital := regexp.MustCompile(`[A-Z]`)
	configured, _ := of.([]any)
	for i := range configured {
		rule, _ := configured[i].(map[string]any)
		named := map[string]any{}
		for name, value := range rule {
			named[capital.ReplaceAllStringFunc(name, func(c string) string { return "_" + strings.ToLower(c) })] = value
		}
		rules = append(rules, named)
	}
	return rules
}

// Now is the present minute.
func (r *Recording) Now() int { return r.now }

// Minutes has time pass, and records at each minute. One in which the test was busy is left out.
func (r *Recording) Minutes(n int) {
	r.t.Helper()
	for range n {
		r.now++
		at := func() time.Time { return r.began.Add(time.Duration(r.now) * time.Minute) }
		for !r.clock.Now().Before(at()) {
			r.now++
		}
		r.barrier.Step(r.t, at().Sub(r.clock.Now()))
		r.record()
	}
}

// record keeps what a scrape has found that began after all that was done before.
func (r *Recording) record() {
	r.t.Helper()
	query := fmt.Sprintf(`{__name__=~%q} and on() ((timestamp(up) > %f) and (up == 1))`, r.selector, float64(time.Now().UnixMilli())/1000)
	found := r.scraped.vector(query)
	for _, s := range found {
		r.put(s.Metric.String(), strconv.FormatFloat(float64(s.Value), 'f', -1, 64))
	}
	for name, values := range r.series {
		if len(values) <= r.now && values[len(values)-1] != "stale" {
			r.put(name, "stale")
		}
	}
}

func (r *Recording) put(name, value string) {
	for len(r.series[name]) < r.now {
		r.series[name] = append(r.series[name], "_")
	}
	r.series[name] = append(r.series[name], value)
}

// vector waits until a query gives something, and returns it.
func (p *Prometheus) vector(query string) (found model.Vector) {
	p.t.Helper()
	testenv.Eventually(p.t, func(ctx context.Context) error {
		result, _, _, err := p.api.Query(ctx, query, time.Now())
		if found, _ = result.(model.Vector); err == nil && len(found) == 0 {
			err = errors.New("Prometheus has no " + query)
		}
		return err
	})
	return found
}

// Fires says which alerts of a name fire at a minute, by their labels.
func (r *Recording) Fires(minute int, name string, labels ...map[string]string) {
	alerts := []any{}
	for _, l := range labels {
		alerts = append(alerts, map[string]any{"exp_labels": l})
	}
	r.alerts = append(r.alerts, map[string]any{"eval_time": minutes(minute), "alertname": name, "exp_alerts": alerts})
}

// Shows says which rows a query has at a minute that have a number, by the labels that it
// groups by.
func (r *Recording) Shows(minute int, query string, by []string, rows ...map[string]string) {
	samples := []any{}
	for _, row := range rows {
		labels := model.Metric{}
		for name, value := range row {
			labels[model.LabelName(name)] = model.LabelValue(value)
		}
		samples = append(samples, map[string]any{"labels": labels.String(), "value": 1})
	}
	r.queries = append(r.queries, map[string]any{
		// What is not a number is greater than none. The time of a scrape is a moment after its minute.
		"expr": fmt.Sprintf("group by (%s) ((%s) > -60)", strings.Join(by, ", "), query), "eval_time": minutes(minute), "exp_samples": samples,
	})
}

func minutes(n int) string { return strconv.Itoa(n) + "m" }

// Replay has promtool evaluate alerts, and what was said of them and of queries. It is the
// program beside that of Prometheus.
func (r *Recording) Replay(rules ...any) {
	r.t.Helper()
	series := []any{}
	for name, values := range r.series {
		series = append(series, map[string]any{"series": name, "values": strings.Join(values, " ")})
	}
	folder := r.t.TempDir()
	for name, content := range map[string]any{
		"rules.yaml": map[string]any{"groups": []any{map[string]any{"name": "replayed", "rules": rules}}},
		"test.yaml": map[string]any{
			"rule_files": []string{"rules.yaml"}, "evaluation_interval": "1m",
			"tests": []any{map[string]any{
				"interval": "1m", "start_timestamp": r.began.UTC().Format(time.RFC3339),
				"input_series": series, "alert_rule_test": r.alerts, "promql_expr_test": r.queries,
			}},
		},
	} {
		if err := os.WriteFile(filepath.Join(folder, name), marshal(r.t, content), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
	promtool := filepath.Join(filepath.Dir(os.Getenv("PROMETHEUS")), "promtool")
	out, err := exec.CommandContext(r.t.Context(), promtool, "test", "rules", filepath.Join(folder, "test.yaml")).CombinedOutput()
	if err != nil {
		r.t.Errorf("%v\n%s", err, out)
	}
}

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	raw, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
