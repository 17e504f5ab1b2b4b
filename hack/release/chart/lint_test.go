package chart_test

import (
	"path/filepath"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"sigs.k8s.io/yaml"
)

// What helm lint finds, for all values of the table. That the chart has no icon is no
// mistake.
func TestLint(t *testing.T) {
	for name, values := range table(t) {
		parsed := map[string]any{}
		if err := yaml.Unmarshal([]byte(values), &parsed); err != nil {
			t.Fatal(err)
		}
		for _, m := range lint.RunAll(filepath.Join(root, "charts", "spillway"), parsed, "system").Messages {
			if m.Severity >= support.WarningSev {
				t.Errorf("%s: %v", name, m)
			}
		}
	}
}
