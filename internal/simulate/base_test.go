package simulate_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spillway-dev/spillway/internal/simulate"
)

// held is all that keeps something from running before a person or a day has come.
const held = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {color: red}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, annotations: {spillway.dev/update-on-config-change: "true", spillway.dev/pause: "true"}},
 spec: {paused: true, selector: {matchLabels: {app: web}},
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: x, envFrom: [{configMapRef: {name: app}}]}]}}}}
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: zone-a, labels: {rollout-group: db}, annotations: {spillway.dev/update-on-config-change: "true", grafana.com/rollout-paused: "true"}},
 spec: {podManagementPolicy: Parallel, updateStrategy: {type: OnDelete}, selector: {matchLabels: {app: db}},
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c, image: x, envFrom: [{configMapRef: {name: app}}]}]}}}}
---
{apiVersion: spillway.dev/v1alpha1, kind: RolloutGroup, metadata: {name: db}, spec: {soak: 100h, pause: {reason: lunch}, maintenanceWindows: [{schedule: "0 0 1 1 *", durationSeconds: 60}]}}
---
{apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, metadata: {name: east, labels: {canary: "true"}}}
---
{apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, metadata: {name: west}}
---
{apiVersion: fleet.squaremo.dev/v1alpha1, kind: Module, metadata: {name: app}, spec: {selector: {}, strategy: Incremental, suspend: true,
 rollout: {minReadySeconds: 90000, windows: [{schedule: "0 0 1 1 *", durationSeconds: 60}],
  stages: [{name: canary, selector: {matchLabels: {canary: "true"}}, gates: [{name: approve}], soakSeconds: 90000}, {name: rest}]},
 template: {spec: {sync: {source: {git: {url: "https://example.com/app", version: {tag: v1}}}}}}}}
`

// What stands in manifests runs before the change, whatever holds it from then on, and
// however long Pods take.
func TestWhatIsHeldRuns(t *testing.T) {
	t.Parallel()
	var base []*unstructured.Unstructured
	for text := range strings.SplitSeq(held, "---\n") {
		base = append(base, fromYAML(t, text))
	}
	o := benchOptions()
	o.Readiness.Default = 48 * time.Hour
	other := fromYAML(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}")
	r, err := simulate.Run(t.Context(), base, []*unstructured.Unstructured{other}, o)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Settled || len(r.Before)+len(r.Stuck)+len(r.Steps) > 0 {
		t.Errorf("settled: %t; before %v; after %v; %q", r.Settled, r.Before, r.Stuck, lines(r.Steps))
	}
	config := fromYAML(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {color: blue}}")
	r, err = simulate.Run(t.Context(), base, []*unstructured.Unstructured{config}, o)
	if err != nil || r.Settled || len(r.Stuck) != 2 || len(r.Before) > 0 {
		t.Errorf("what holds it is not in force: settled: %t; before %v; after %v: %v", r.Settled, r.Before, r.Stuck, err)
	}
}
