package rollout_test

import (
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/spillway-dev/spillway/rollout"
)

// TestRules decides the small trees of testdata/rules, a file for each rule.
// After a deliberate change run it with -rewrite and read the difference.
func TestRules(t *testing.T) {
	datadriven.Walk(t, "testdata/rules", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			root := parseTree(t, noon, d.Input)

			p := rollout.Decide(rollout.Observed{Now: noon, Self: "spillway", Root: root})
			if d.Cmd == "groups" {
				return printGroups(p)
			}

			return printPlan(p)
		})
	})
}
