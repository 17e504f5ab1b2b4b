package simulate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/simulate"
	"github.com/spillway-dev/spillway/internal/simulate/world"
)

const benchWorkload = `
apiVersion: apps/v1
kind: %[1]s
metadata:
  name: %[2]s
  labels: {%[4]s}
  annotations: {spillway.dev/update-on-config-change: "true"}
spec:
  replicas: 3
  selector: {matchLabels: {app: %[2]s}}
  template:
    metadata: {labels: {app: %[2]s}}
    spec:
      containers: [{name: c, image: x, envFrom: [{configMapRef: {name: %[3]s}}]}]
`

// directory is a hundred objects: 20 ConfigMaps, 50 Deployments, 10 groups of three
// zones; and a change of all config.
func directory(t testing.TB) (base, change []*unstructured.Unstructured) {
	t.Helper()
	add := func(to *[]*unstructured.Unstructured, format string, args ...any) {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(fmt.Appendf(nil, format, args...), &u.Object); err != nil {
			t.Fatal(err)
		}
		*to = append(*to, u)
	}
	for i := range 20 {
		add(&base, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c%d}, data: {color: red}}", i)
		add(&change, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c%d}, data: {color: blue}}", i)
	}
	for i := range 50 {
		add(&base, benchWorkload, "Deployment", fmt.Sprintf("web-%d", i), fmt.Sprintf("c%d", i%20), "")
	}
	for i := range 10 {
		for _, zone := range []string{"a", "b", "c"} {
			zoned := strings.Replace(benchWorkload, "spec:\n", "spec:\n  podManagementPolicy: Parallel\n  updateStrategy: {type: OnDelete}\n", 1)
			add(&base, zoned, "StatefulSet", fmt.Sprintf("group-%d-%s", i, zone), fmt.Sprintf("c%d", i), fmt.Sprintf("rollout-group: group-%d", i))
		}
	}
	return base, change
}

func benchOptions() simulate.Options {
	return simulate.Options{
		Now: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC), Namespace: "default", Nodes: 3,
		Readiness: world.Readiness{Default: 30 * time.Second}, Stop: new(time.Duration), Config: config.Options{Options: decision.Options{CoalesceWindow: time.Second, UpdateBurst: 100}},
	}
}

// BenchmarkADirectory is a change of all config in a directory of a hundred objects.
func BenchmarkADirectory(b *testing.B) {
	base, change := directory(b)
	for b.Loop() {
		r, err := simulate.Run(b.Context(), base, change, benchOptions())
		if err != nil || !r.Settled || len(r.Steps) != 50+30+90 {
			b.Fatalf("%d steps, settled: %t: %v", len(r.Steps), r.Settled, err)
		}
	}
}

// looksForAnObject is how often an object of a directory may be looked at, on average:
// it must be quick, and this is what takes the time.
const looksForAnObject = 120

// TestWhatASimulationCosts counts, because no time is the same on two machines.
func TestWhatASimulationCosts(t *testing.T) {
	t.Parallel()
	base, change := directory(t)
	r, err := simulate.Run(t.Context(), base, change, benchOptions())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d looks for %d objects and %d steps", r.Looks, len(base), len(r.Steps))
	if most := looksForAnObject * len(base); r.Looks > most {
		t.Errorf("%d looks, more than %d", r.Looks, most)
	}
}
