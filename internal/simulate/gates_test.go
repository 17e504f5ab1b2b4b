package simulate_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/simulate"
	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/simulate/world"
)

// measured has the gates of these tests measured.
const measured = `
apiVersion: spillway.dev/v1alpha1
kind: GateTemplate
metadata: {name: errors}
spec: {prometheus: {address: "http://prometheus", query: x, condition: value < 1}, interval: 1m, count: 3, timeout: 1h, noData: Wait}
`

// gated are the manifests of three zones in a group with a gate, and its template if that is
// not empty; and the change.
func gated(t *testing.T, template, when string) (base, change []*unstructured.Unstructured) {
	t.Helper()
	base = objects(read(t, "zones-order", "base.yaml"))
	i := slices.IndexFunc(base, func(u *unstructured.Unstructured) bool { return u.GetKind() == "RolloutGroup" })
	err := unstructured.SetNestedSlice(base[i].Object, []any{map[string]any{"name": "errors", "when": cmp.Or(when, "After")}}, "spec", "gates")
	if err != nil {
		t.Fatal(err)
	}
	if template != "" {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(template), &u.Object); err != nil {
			t.Fatal(err)
		}
		base = append(base, u)
	}
	return base, objects(read(t, "zones-order", "change.yaml"))
}

// TestGatesOfARollout plays gates of zones: those without a decision wait, and others pass or
// are refused by the code of the manager, as often as the GateTemplate says.
func TestGatesOfARollout(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		template string
		when     string
		gates    map[string]v1alpha1.GateResult
		steps    int
		took     time.Duration
		says     string
	}{
		"undecided":              {says: "GatePending", steps: 2},
		"approved":               {gates: map[string]v1alpha1.GateResult{"errors": v1alpha1.GateSuccess}, steps: 6},
		"refused":                {gates: map[string]v1alpha1.GateResult{"errors": v1alpha1.GateFailure}, says: "GateRefused", steps: 2},
		"measured":               {template: measured, gates: map[string]v1alpha1.GateResult{"errors": v1alpha1.GateSuccess}, steps: 6, took: 3 * 2 * time.Minute},
		"measured, fails":        {template: measured, gates: map[string]v1alpha1.GateResult{"errors": v1alpha1.GateFailure}, says: "GateRefused", steps: 2},
		"measured, silent":       {template: measured, gates: map[string]v1alpha1.GateResult{"errors": v1alpha1.GateNoData}, says: "GateRefused", steps: 2, took: time.Hour},
		"measured during, fails": {template: measured, when: "During", gates: map[string]v1alpha1.GateResult{"errors": v1alpha1.GateFailure}, says: "GateRefused", steps: 1},
		"measured during":        {template: measured, when: "During", gates: map[string]v1alpha1.GateResult{"errors": v1alpha1.GateSuccess}, steps: 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, change := gated(t, c.template, c.when)
			result, err := simulate.Run(t.Context(), base, change, simulate.Options{
				Now: time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC), Namespace: "default", Gates: c.gates, Readiness: world.Readiness{Default: world.DefaultReady},
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(result.Steps) != c.steps || result.Settled != (c.says == "") {
				t.Errorf("%d steps, settled %v: %+v", len(result.Steps), result.Settled, result.Stuck)
			}
			if c.says != "" && (len(result.Stuck) == 0 || string(result.Stuck[0].Reason) != c.says || result.Stuck[0].Ring != record.RingZones) {
				t.Errorf("stuck: %+v, want %s", result.Stuck, c.says)
			}
			if time.Duration(result.Took) < c.took {
				t.Errorf("it took %s, want at least %s", time.Duration(result.Took), c.took)
			}
		})
	}
}

// TestAGateThatNothingReaches checks that a misspelled name is found.
func TestAGateThatNothingReaches(t *testing.T) {
	t.Parallel()
	base, change := gated(t, "", "")
	result, err := simulate.Run(t.Context(), base, change, simulate.Options{
		Now: time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC), Namespace: "default", Gates: map[string]v1alpha1.GateResult{"error": v1alpha1.GateSuccess},
	})
	if err != nil || len(result.UnmetGates) != 1 || result.UnmetGates[0] != "error" {
		t.Errorf("unmet: %v, %v", result.UnmetGates, err)
	}
}

// TestGatesOfOtherRings plays gates of a release of config and of a plan: what runs before
// the change has passed them, and the change stops at one that is refused.
func TestGatesOfOtherRings(t *testing.T) {
	t.Parallel()
	withGate := func(file, plan string) []*unstructured.Unstructured {
		all := objects(read(t, "plan-upgrade", file))
		i := slices.IndexFunc(all, func(u *unstructured.Unstructured) bool { return u.GetKind() == "Instance" })
		all[i].SetAnnotations(map[string]string{"spillway.dev/gates": "[{plan: " + plan + ", when: Before, name: errors}]"})
		return all
	}
	for scenario, c := range map[string]struct {
		base, change []*unstructured.Unstructured
		steps        map[v1alpha1.GateResult]int
	}{
		"policy-stages": {
			underPolicy(t, "stages: [{name: first, workloads: 1, gates: [{name: errors}]}, {name: rest}]"), objects(read(t, "policy-stages", "change.yaml")),
			map[v1alpha1.GateResult]int{v1alpha1.GateSuccess: 5, v1alpha1.GateFailure: 1, v1alpha1.GateNoData: 1},
		},
		"plan-upgrade": {
			withGate("base.yaml", "deploy"), withGate("change.yaml", "upgrade"),
			map[v1alpha1.GateResult]int{v1alpha1.GateSuccess: 10, v1alpha1.GateFailure: 0, v1alpha1.GateNoData: 0},
		},
	} {
		for result, steps := range c.steps {
			o := benchOptions()
			o.Gates = map[string]v1alpha1.GateResult{"errors": result}
			r, err := simulate.Run(t.Context(), c.base, c.change, o)
			if err != nil {
				t.Errorf("%s, %s: %v", scenario, result, err)
				continue
			}
			if len(r.Steps) != steps || r.Settled != (result == v1alpha1.GateSuccess) {
				t.Errorf("%s, %s: %d steps, settled %v, stuck: %+v; want %d steps", scenario, result, len(r.Steps), r.Settled, r.Stuck, steps)
			}
		}
	}
}
