package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

const metricsPreface = `# Metrics

<!-- Generated from the declarations of the metrics by make generate; edit those. -->

Get the metrics of a manager that runs without TLS on this machine:

` + "```sh" + `
curl -s localhost:8080/metrics | grep ^spillway_
` + "```" + `

` + "`spillway install`" + ` serves them by HTTPS, to clients that may get ` + "`/metrics`" + `: see [security](security.md#metrics).
The label ` + "`reason`" + ` has one of the [reasons](reasons.md).
The metrics of controller-runtime and of the Go runtime are served beside these.
`

// metric is one declared metric.
type metric struct {
	name, kind, help string
	labels           []string
}

// metricParts are the sections of the page, by the beginning of the names.
var metricParts = []struct{ prefix, title string }{
	{"spillway_config_", "## Config"},
	{"spillway_zones_", "## Zones"},
	{"spillway_plans_", "## Plans"},
	{"spillway_fleet_", "## Fleet"},
	{"spillway_admission_", "## Admission"},
	{"", "## Names of rollout-operator\n\nThese have the names that dashboards and alerts of rollout-operator ask for."},
}

// metricsPage is docs/metrics.md.
func metricsPage() ([]byte, error) {
	declared, err := declaredMetrics("internal")
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString(metricsPreface)
	for _, part := range metricParts {
		fmt.Fprintf(&b, "\n%s\n\n| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n", part.title)
		rest := declared[:0:0]
		for _, m := range declared {
			if !strings.HasPrefix(m.name, part.prefix) {
				rest = append(rest, m)
				continue
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.name, m.kind, codes(m.labels), cell(m.help))
		}
		declared = rest
	}
	return b.Bytes(), nil
}

// codes are words as code, with commas between them.
func codes(words []string) string {
	quoted := make([]string, 0, len(words))
	for _, w := range words {
		quoted = append(quoted, "`"+w+"`")
	}
	return strings.Join(quoted, ", ")
}

// declaredMetrics finds the metrics that packages declare, sorted by name.
func declaredMetrics(dir string) ([]metric, error) {
	folders, err := foldersOf(dir)
	if err != nil {
		return nil, err
	}
	var found []metric
	var problems []error
	for _, f := range folders {
		for _, file := range f.files {
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				m, ok, err := f.metric(call)
				if ok {
					found, problems = append(found, m), append(problems, err)
				}
				return true
			})
		}
	}
	slices.SortFunc(found, func(a, b metric) int { return cmp.Compare(a.name, b.name) })
	return found, errors.Join(problems...)
}

// metric reads a call that makes a metric.
func (f *folder) metric(call *ast.CallExpr) (metric, bool, error) {
	fun, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return metric{}, false, nil
	}
	if from, ok := fun.X.(*ast.Ident); !ok || from.Name != "prometheus" {
		return metric{}, false, nil
	}
	m := metric{}
	switch kind := strings.TrimSuffix(strings.TrimPrefix(fun.Sel.Name, "New"), "Vec"); kind {
	case "Counter", "Gauge", "Histogram":
		m.kind = strings.ToLower(kind)
		m.name, m.help = f.field(call.Args[0], "Name"), f.field(call.Args[0], "Help")
		if len(call.Args) > 1 {
			m.labels = f.list(call.Args[1])
		}
	case "Desc": // of a metric that is worked out when it is asked for
		m.kind = "gauge"
		m.name, _ = f.text(call.Args[0])
		m.help, _ = f.text(call.Args[1])
		m.labels = f.list(call.Args[2])
	default:
		return metric{}, false, nil
	}
	if m.name == "" || m.help == "" {
		return m, true, fmt.Errorf("a %s of package %s: its name and its help must be constants", m.kind, f.files[0].Name)
	}
	return m, true, nil
}

// field is a field of a composite literal that is a string, "" if it has none.
func (f *folder) field(e ast.Expr, name string) string {
	literal, ok := e.(*ast.CompositeLit)
	if !ok {
		return ""
	}
	for _, element := range literal.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.Ident); ok && key.Name == name {
				value, _ := f.text(pair.Value)
				return value
			}
		}
	}
	return ""
}

// list is a literal list of strings.
func (f *folder) list(e ast.Expr) []string {
	literal, ok := e.(*ast.CompositeLit)
	if !ok {
		return nil
	}
	var words []string
	for _, element := range literal.Elts {
		if word, ok := f.text(element); ok {
			words = append(words, word)
		}
	}
	return words
}
