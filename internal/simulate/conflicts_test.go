package simulate_test

import (
	"strings"
	"testing"

	"github.com/spillway-dev/spillway/internal/simulate"
)

// A manifest that sets what Spillway has set meanwhile is applied all the same, as most
// do; that others would refuse it is said.
func TestWhoseFieldItIs(t *testing.T) {
	t.Parallel()
	base := objects(read(t, "zones-partition", "base.yaml"))
	for strategy, want := range map[string]string{
		"type: RollingUpdate": "",
		"rollingUpdate: {partition: 0}": "statefulset/ingester-zone-a: the manifest sets spec.updateStrategy.rollingUpdate.partition, which spillway has set: " +
			"kubectl apply --server-side refuses that; take it out of the manifest, or apply that with --force-conflicts, as was simulated",
	} {
		change := read(t, "zones-partition", "change.yaml")[:1]
		change[0].Object.Object["spec"].(map[string]any)["updateStrategy"] = parse(t, "{apiVersion: v1, kind: X, metadata: {name: x}, spec: {"+strategy+"}}")[0].Object.Object["spec"]
		r, err := simulate.Run(t.Context(), base, objects(change), benchOptions())
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, risk := range r.Risks {
			if strings.Contains(risk.Sentence, "the manifest sets") {
				said = append(said, risk.Object+": "+risk.Sentence+"; "+risk.Action)
			}
		}
		if got := strings.Join(said, "\n"); got != want || len(r.Steps) == 0 {
			t.Errorf("%s, %d steps:\ngot  %s\nwant %s", strategy, len(r.Steps), got, want)
		}
	}
}
