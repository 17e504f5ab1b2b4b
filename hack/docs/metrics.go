package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spillway-dev/spillway/internal/metrics"
)

const metricsPreface = `# Metrics

<!-- Generated from internal/metrics by make generate; edit that. -->

Get the metrics of a manager that runs without TLS on this machine:

` + "```sh" + `
curl -s localhost:8080/metrics | grep ^spillway_
` + "```" + `

` + "`spillway install`" + ` serves them by HTTPS, to clients that may get ` + "`/metrics`" + `: see [security](security.md#metrics).
The label ` + "`ring`" + ` is config, zones, plans or fleet, and ` + "`reason`" + ` is one of the [reasons](reasons.md).
A name, its type and its labels [change only with a major version](adr/0048-what-may-change-between-versions.md).
The series of an object end when it is deleted.
The metrics of controller-runtime and of the Go runtime are served beside these.
`

// metricParts are the sections of the page, by the beginning of the names; each metric is in
// the first that fits.
var metricParts = []struct{ prefix, title string }{
	{"spillway_config_", "## Config"},
	{"spillway_zones_", "## Zones"},
	{"spillway_plans_", "## Plans"},
	{"spillway_fleet_", "## Fleet"},
	{"spillway_gates_", "## Gates"},
	{"spillway_admission_", "## Admission"},
	{"spillway_", "## All rings"},
	{"", "## Names of rollout-operator\n\nThese have the names that dashboards and alerts of rollout-operator ask for."},
}

// metricsPage is docs/metrics.md.
func metricsPage() []byte {
	rows := map[string]string{}
	for _, m := range metrics.All() {
		for _, part := range metricParts {
			if strings.HasPrefix(m.Name, part.prefix) {
				rows[part.title] += fmt.Sprintf("| `%s` | %s | %s | %s |\n", m.Name, m.Type, codes(m.Labels), cell(m.Help))
				break
			}
		}
	}
	var b bytes.Buffer
	b.WriteString(metricsPreface)
	for _, part := range metricParts {
		fmt.Fprintf(&b, "\n%s\n\n| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n%s", part.title, rows[part.title])
	}
	return b.Bytes()
}

// codes are words as code, with commas between them.
func codes(words []string) string {
	quoted := make([]string, 0, len(words))
	for _, w := range words {
		quoted = append(quoted, "`"+w+"`")
	}
	return strings.Join(quoted, ", ")
}
