package monitoring_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

const root = "../.."

// nameLabel is the label by which the parser has the name of a metric.
const nameLabel = "__name__"

// metric is a line of the interface of the metrics.
type metric struct {
	kind   string
	labels []string
}

// line is one of internal/metrics/testdata/interface.txt.
var line = regexp.MustCompile(`(?m)^(\S+) (\S+) \{(.*)\}$`)

// libraries are metrics of controller-runtime and of Go's runtime that dashboards show.
var libraries = map[string]metric{
	"workqueue_depth":               {"gauge", []string{"name", "controller", "priority"}},
	"go_memstats_heap_alloc_bytes":  {"gauge", nil},
	"process_resident_memory_bytes": {"gauge", nil},
}

// listed are the metrics that queries may ask for, by the names of their series.
func listed(t *testing.T) map[string]metric {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "internal", "metrics", "testdata", "interface.txt"))
	if err != nil {
		t.Fatal(err)
	}
	found := maps.Clone(libraries)
	for _, m := range line.FindAllStringSubmatch(string(text), -1) {
		of := metric{m[2], strings.FieldsFunc(m[3], func(r rune) bool { return r == ',' })}
		if m[2] != "histogram" {
			found[m[1]] = of
			continue
		}
		for _, suffix := range []string{"_sum", "_count", "_bucket"} {
			found[m[1]+suffix] = metric{"counter", append(slices.Clone(of.labels), "le")}
		}
	}
	return found
}

// scraped are labels that Prometheus adds.
var scraped = []string{"job", "instance", "pod"}

// check parses a query, and finds metrics and labels that do not exist, and functions that are
// for the other type.
func check(t *testing.T, where, query string, known map[string]metric) {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		t.Errorf("%s: %v: %s", where, err, query)
		return
	}
	for _, found := range selectors(expr, "") {
		m, ok := known[found.Name]
		if !ok {
			t.Errorf("%s: %q is no listed metric: %s", where, found.Name, query)
			continue
		}
		if rated := slices.Contains([]string{"rate", "increase"}, found.function); rated != (m.kind == "counter") {
			t.Errorf("%s: %s is a %s, within %q: %s", where, found.Name, m.kind, found.function, query)
		}
		for _, matcher := range found.LabelMatchers {
			if matcher.Name != nameLabel && !slices.Contains(append(scraped, m.labels...), matcher.Name) {
				t.Errorf("%s: %s has no label %s: %s", where, found.Name, matcher.Name, query)
			}
		}
	}
	grouped(t, where, expr, known)
}

// selector is a selector, and the function that it is an argument of.
type selector struct {
	*parser.VectorSelector

	function string
}

func selectors(node parser.Node, function string) []selector {
	switch n := node.(type) {
	case *parser.VectorSelector:
		return []selector{{n, function}}
	case *parser.Call:
		function = n.Func.Name
	}
	var found []selector
	for child := range parser.ChildrenIter(node) {
		found = append(found, selectors(child, function)...)
	}
	return found
}

// grouped finds labels that aggregations name and that no metric beneath them has.
func grouped(t *testing.T, where string, expr parser.Expr, known map[string]metric) {
	t.Helper()
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		a, ok := node.(*parser.AggregateExpr)
		if !ok {
			return nil
		}
		for _, s := range selectors(a, "") {
			for _, label := range a.Grouping {
				if !slices.Contains(append(scraped, known[s.Name].labels...), label) {
					t.Errorf("%s: %s has no label %s", where, s.Name, label)
				}
			}
		}
		return nil
	})
}

// TestDashboards parses the query of each panel: it asks only for listed metrics and their
// labels.
func TestDashboards(t *testing.T) {
	known := listed(t)
	paths, err := filepath.Glob(filepath.Join(root, "monitoring", "dashboards", "*.json"))
	if err != nil || len(paths) != 6 {
		t.Fatalf("found %d dashboards: %v", len(paths), err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var dashboard struct {
			Panels []struct {
				Title   string `json:"title"`
				Targets []struct {
					Expr string `json:"expr"`
				} `json:"targets"`
			} `json:"panels"`
		}
		if err := json.Unmarshal(text, &dashboard); err != nil || len(dashboard.Panels) == 0 {
			t.Fatalf("%s: %d panels: %v", path, len(dashboard.Panels), err)
		}
		for _, panel := range dashboard.Panels {
			for _, target := range panel.Targets {
				check(t, filepath.Base(path)+": "+panel.Title, target.Expr, known)
			}
		}
	}
}

// rule is an alert of the PrometheusRule.
type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// groups is what Prometheus reads of a PrometheusRule.
type groups struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	} `json:"groups"`
}

func alerts(t *testing.T) *groups {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "monitoring", "prometheusrule.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var object struct {
		Spec groups `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &object); err != nil || len(object.Spec.Groups) != 1 {
		t.Fatal(err)
	}
	return &object.Spec
}

// TestAlerts checks queries as those of dashboards, that each alert has a runbook that begins
// with a command and says the same as the alert, and a test in which it fires and one in which
// it does not.
func TestAlerts(t *testing.T) {
	known := listed(t)
	tests, err := os.ReadFile("alerts_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	index, err := os.ReadFile(filepath.Join(root, "docs", "runbooks", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var stories struct {
		Tests []struct {
			Checks []struct {
				Name   string `json:"alertname"`
				Alerts []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		} `json:"tests"`
	}
	if err := yaml.Unmarshal(tests, &stories); err != nil {
		t.Fatal(err)
	}
	fires, rests := map[string]bool{}, map[string]bool{}
	for _, story := range stories.Tests {
		for _, c := range story.Checks {
			fires[c.Name] = fires[c.Name] || len(c.Alerts) > 0
			rests[c.Name] = rests[c.Name] || len(c.Alerts) == 0
		}
	}
	for _, r := range alerts(t).Groups[0].Rules {
		check(t, r.Alert, r.Expr, known)
		if !fires[r.Alert] || !rests[r.Alert] {
			t.Errorf("%s: alerts_test.yaml says when it fires: %v, when it does not: %v", r.Alert, fires[r.Alert], rests[r.Alert])
		}
		page := filepath.Base(r.Annotations["runbook_url"])
		text, err := os.ReadFile(filepath.Join(root, "docs", "runbooks", page))
		if err != nil {
			t.Error(err)
		}
		if _, block, _ := strings.Cut(string(text), "```sh\n"); !strings.HasPrefix(block, "spillway ") && !strings.HasPrefix(block, "kubectl ") {
			t.Errorf("%s begins with no command", page)
		}
		for _, part := range []string{"That must last for " + r.For + ". Severity: " + r.Labels["severity"] + ".\n", "```text\n" + r.Expr + "\n```\n"} {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s is not about the alert as it is: it lacks %q", page, part)
			}
		}
		if row := fmt.Sprintf("| [%s](%s) | %s | %s |", r.Alert, page, r.Labels["severity"], r.For); !strings.Contains(string(index), row) {
			t.Errorf("the list of runbooks lacks %s", row)
		}
	}
}

// TestPublishedAlerts checks that what the alerts about rollout-operator ask for is listed, and what
// is said to be asked for in vain is not. TestPublishedAlertsAndPanels of the zones ring replays them.
func TestPublishedAlerts(t *testing.T) {
	text, err := os.ReadFile("published.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var published struct {
		Alerts  []rule   `json:"alerts"`
		Without []string `json:"without"`
	}
	if err := yaml.Unmarshal(text, &published); err != nil || len(published.Alerts) == 0 || len(published.Without) == 0 {
		t.Fatalf("read %+v: %v", published, err)
	}
	known := listed(t)
	for name, m := range known { // Prometheus adds these
		m.labels = append(slices.Clone(m.labels), "cluster", "namespace")
		known[name] = m
	}
	for _, r := range published.Alerts {
		check(t, r.Alert, r.Expr, known)
	}
	for _, name := range published.Without {
		if _, is := known[name]; is {
			t.Errorf("%s is a listed metric: add the alert that asks for it", name)
		}
	}
}

// TestAlertsFire runs alerts_test.yaml with promtool. The addresses of runbooks are left out of
// the rules: TestAlerts checks them.
func TestAlertsFire(t *testing.T) {
	rules := alerts(t)
	for _, r := range rules.Groups[0].Rules {
		delete(r.Annotations, "runbook_url")
	}
	text, err := yaml.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	promtool(t, text, "alerts_test.yaml")
}

// promtool runs a file of tests on rules.
func promtool(t *testing.T, rules []byte, name string) {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "rules.yaml"), rules, 0o600); err != nil {
		t.Fatal(err)
	}
	stories, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, stories, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "tool", "promtool", "test", "rules", path).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
