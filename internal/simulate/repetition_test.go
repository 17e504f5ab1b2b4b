package simulate_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/internal/simulate"
)

// endless has a plan that is tried again for ever; the last line may give it a timeout.
const endless = `
apiVersion: kudo.dev/v1beta1
kind: OperatorVersion
metadata: {name: app-1}
spec:
  version: "1"
  operator: {name: app}
  tasks:
  - {name: app, kind: Apply, spec: {resources: [app.yaml]}}
  - {name: fails, kind: Dummy, spec: {wantErr: true}}
  templates:
    app.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ .Name }}'}}"
  plans:
    deploy: {strategy: serial, phases: [{name: main, strategy: serial, steps: [{name: app, tasks: [app]}, {name: s, tasks: [fails]}]}]}
---
apiVersion: kudo.dev/v1beta1
kind: Instance
metadata: {name: web}
spec: {operatorVersion: {name: app-1}}
`

// TestAPlanThatCannotEndIsNotPlayedForEver: it is played until nothing new happens, and
// what is said is short.
func TestAPlanThatCannotEndIsNotPlayedForEver(t *testing.T) {
	t.Parallel()
	r, err := simulate.Run(t.Context(), objects(readAt(t, endless, benchOptions().Now)), nil, benchOptions())
	if err != nil {
		t.Fatal(err)
	}
	if r.Settled || len(r.Stuck) != 1 || !strings.Contains(r.Stuck[0].Sentence, "its spec sets wantErr") {
		t.Errorf("settled %v, stuck %+v", r.Settled, r.Stuck)
	}
	if r.Looks > 200 || len(r.Waits) > 20 || len(r.Steps) > 10 {
		t.Errorf("%d looks, %d waits, %d steps", r.Looks, len(r.Waits), len(r.Steps))
	}
}

// TestATimeoutEndsAPlanThatCannotEnd: the same states come back until then.
func TestATimeoutEndsAPlanThatCannotEnd(t *testing.T) {
	t.Parallel()
	r, err := simulate.Run(t.Context(), objects(readAt(t, strings.Replace(endless, "deploy: {strategy", "deploy: {timeout: 2h, strategy", 1), benchOptions().Now)), nil, benchOptions())
	if err != nil {
		t.Fatal(err)
	}
	if time.Duration(r.Took) < 2*time.Hour || time.Duration(r.Took) > 3*time.Hour || len(r.Stuck) == 0 || !strings.Contains(r.Stuck[0].Sentence, "not complete after 2h (timeout)") {
		t.Errorf("it took %s and is stuck: %+v", time.Duration(r.Took), r.Stuck)
	}
}

// TestAVersionThatIsNotServedIsRefused: among the manifests, and in a template.
func TestAVersionThatIsNotServedIsRefused(t *testing.T) {
	t.Parallel()
	const budget = "{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {name: app}}"
	const advice = "API version policy/v1beta1 is no longer served; use policy/v1"
	documents := readAt(t, budget, benchOptions().Now)
	_, err := simulate.Run(t.Context(), objects(documents), nil, benchOptions())
	if err = simulate.Locate(err, documents); err == nil || !strings.Contains(err.Error(), `in version "policy/v1beta1"; use policy/v1`) {
		t.Error(err)
	}
	r, err := simulate.Run(t.Context(), objects(readAt(t, strings.Replace(endless, "{apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ .Name }}'}}", budget, 1), benchOptions().Now)), nil, benchOptions())
	if err != nil || len(r.Stuck) == 0 || !strings.Contains(r.Stuck[0].Sentence, advice) {
		t.Errorf("%v, %+v", err, r.Stuck)
	}
}

// TestASimulationEndsWithItsContext: as it does on Ctrl+C.
func TestASimulationEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := simulate.Run(ctx, objects(readAt(t, endless, benchOptions().Now)), nil, benchOptions()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
