package agent

import (
	"errors"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
)

const (
	fetched = "v1@sha1:1"
	// happened is when the failures of these tests did.
	happened = "2026-01-01T00:00:00Z"
)

// ready is the status of a Kustomization of generation 2 with this condition Ready.
func ready(generation, status, reason, more string) string {
	return "metadata: {namespace: ns, name: k, generation: 2}\nstatus: {conditions: [{type: Ready, observedGeneration: " + generation + ", status: '" + status +
		"', reason: " + reason + ", message: flux says so, lastTransitionTime: '" + happened + "'}]" + more + "}"
}

func TestSettle(t *testing.T) {
	was := func(state v1alpha1.State) *v1alpha1.SyncStatus {
		return &v1alpha1.SyncStatus{State: state, Reason: "Before", Message: "as before"}
	}
	triedAt := func(before time.Duration) *v1alpha1.SyncStatus {
		failed, err := time.Parse(time.RFC3339, happened)
		if err != nil {
			t.Fatal(err)
		}
		return &v1alpha1.SyncStatus{State: v1alpha1.StateUpdating, FailedAt: new(metav1.NewTime(failed.Add(before)))}
	}
	const (
		fresh = ", lastAppliedRevision: " + fetched
		stale = ", lastAppliedRevision: v0@sha1:0"
	)
	fetchedSource := &Source{Generation: 1, ObservedGeneration: 1, Revision: fetched}
	for name, test := range map[string]struct {
		source        *Source
		kustomization string
		was           *v1alpha1.SyncStatus
		want          v1alpha1.State
		saying        string
	}{
		"applied":                                  {fetchedSource, ready("2", "True", "Applied", fresh), nil, v1alpha1.StateSucceeded, "applied " + fetched},
		"a success at an older generation":         {fetchedSource, ready("1", "True", "Applied", fresh), nil, v1alpha1.StateUpdating, "has not observed"},
		"a success at an older revision":           {fetchedSource, ready("2", "True", "Applied", stale), nil, v1alpha1.StateUpdating, "has not applied " + fetched},
		"nothing said yet":                         {fetchedSource, "metadata: {generation: 1}", nil, v1alpha1.StateUpdating, "has not observed"},
		"updating":                                 {fetchedSource, ready("2", "Unknown", "Progressing", ""), nil, v1alpha1.StateUpdating, "Flux is applying " + fetched},
		"reconciled again after a success":         {fetchedSource, ready("2", "Unknown", "Progressing", ", observedGeneration: 2"+fresh), was(v1alpha1.StateSucceeded), v1alpha1.StateSucceeded, "applied"},
		"a success of an older generation":         {fetchedSource, ready("2", "Unknown", "Progressing", ", observedGeneration: 1"+fresh), was(v1alpha1.StateSucceeded), v1alpha1.StateUpdating, "is applying"},
		"a success of an older artifact":           {fetchedSource, ready("2", "Unknown", "Progressing", ", observedGeneration: 2"+stale), was(v1alpha1.StateSucceeded), v1alpha1.StateUpdating, "is applying"},
		"tried again after a failure":              {fetchedSource, ready("2", "Unknown", "Progressing", ""), was(v1alpha1.StateFailed), v1alpha1.StateFailed, "as before"},
		"not healthy in time":                      {fetchedSource, ready("2", "False", "HealthCheckFailed", ", observedGeneration: 1"), nil, v1alpha1.StateFailed, "flux says so"},
		"a failure of an older generation":         {fetchedSource, ready("1", "False", "HealthCheckFailed", ""), nil, v1alpha1.StateUpdating, "has not observed"},
		"what cannot be applied may be soon":       {fetchedSource, ready("2", "False", "ReconciliationFailed", ""), nil, v1alpha1.StateUpdating, "tries again: flux says so"},
		"looked at again":                          {fetchedSource, ready("2", "False", "ReconciliationFailed", ""), triedAt(0), v1alpha1.StateUpdating, "tries again: flux says so"},
		"failed again":                             {fetchedSource, ready("2", "False", "ReconciliationFailed", ""), triedAt(-time.Minute), v1alpha1.StateFailed, "flux says so"},
		"a manifest that is not valid":             {fetchedSource, strings.Replace(ready("2", "False", "ReconciliationFailed", ""), "flux says so", "Deployment/x dry-run failed (Invalid)", 1), nil, v1alpha1.StateFailed, "Invalid"},
		"a package that cannot be built":           {fetchedSource, ready("2", "False", "BuildFailed", ""), nil, v1alpha1.StateFailed, "flux says so"},
		"the artifact is missing":                  {fetchedSource, ready("2", "False", "ArtifactFailed", ""), nil, v1alpha1.StateUpdating, "flux says so"},
		"another one goes first":                   {fetchedSource, ready("2", "False", "DependencyNotReady", ""), nil, v1alpha1.StateWaiting, "flux says so"},
		"suspended":                                {fetchedSource, ready("2", "True", "Applied", fresh) + "\nspec: {suspend: true}", nil, v1alpha1.StateWaiting, "is suspended"},
		"asked to try again":                       {fetchedSource, strings.Replace(ready("2", "False", "ReconciliationFailed", ""), "generation: 2", "generation: 2, annotations: {reconcile.fluxcd.io/requestedAt: now}", 1), nil, v1alpha1.StateUpdating, "asked to try again"},
		"no source":                                {nil, ready("2", "True", "Applied", fresh), nil, v1alpha1.StateWaiting, "source not found"},
		"being fetched":                            {&Source{Generation: 1}, ready("2", "True", "Applied", fresh), nil, v1alpha1.StateUpdating, "fetching the source"},
		"fetched before, and not reconciled again": {&Source{Generation: 2, ObservedGeneration: 1, Revision: fetched}, ready("2", "True", "Applied", fresh), nil, v1alpha1.StateUpdating, "fetching the source"},
		"cannot be fetched": {
			&Source{Generation: 1, ObservedGeneration: 1, Ready: &metav1.Condition{Status: "False", ObservedGeneration: 1, Message: "no such tag"}},
			ready("2", "True", "Applied", fresh), nil, v1alpha1.StateWaiting, "source cannot be fetched: no such tag",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := settle(&Observed{}, test.source, kustomization{parsed(t, test.kustomization)}, test.was)
			if got.state != test.want || !strings.Contains(got.message, test.saying) {
				t.Errorf("%s: %s, want %s: %s", got.state, got.message, test.want, test.saying)
			}
			if got.ask != "" || got.kick {
				t.Error("where Flux is applying where it runs, no cluster is to be asked")
			}
		})
	}
}

func parsed(t *testing.T, text string) *kustomizev1.Kustomization {
	t.Helper()
	k := &kustomizev1.Kustomization{}
	if err := yaml.UnmarshalStrict([]byte(text), k); err != nil {
		t.Fatal(err)
	}
	return k
}

// A cluster that does not answer, and a manifest that cannot be applied, look the same
// to Flux; here they do not.
func TestSettleTellsALostClusterFromABadManifest(t *testing.T) {
	const failure = "ns/k/2/1767225600/ReconciliationFailed"
	down := &cluster.UnreachableError{Since: time.Unix(0, 0), Reason: "connection refused"}
	for name, test := range map[string]struct {
		reason string
		reach  Reach
		was    v1alpha1.State
		want   v1alpha1.State
		ask    string
		kick   bool
	}{
		"not asked yet":                 {"ReconciliationFailed", Reach{}, "", v1alpha1.StateUpdating, failure, false},
		"it answered after the failure": {"ReconciliationFailed", Reach{Verified: map[string]bool{failure: true}}, "", v1alpha1.StateUpdating, failure, false},
		"it answered, and has failed":   {"HealthCheckFailed", Reach{Verified: map[string]bool{strings.Replace(failure, "Reconciliation", "HealthCheck", 1): true}}, "", v1alpha1.StateFailed, strings.Replace(failure, "Reconciliation", "HealthCheck", 1), false},
		"it answered after another":     {"ReconciliationFailed", Reach{Verified: map[string]bool{"x": true}}, "", v1alpha1.StateUpdating, failure, false},
		"it does not answer":            {"ReconciliationFailed", Reach{Problem: down}, "", v1alpha1.StateUnreachable, "", false},
		"it answers again":              {"ReconciliationFailed", Reach{}, v1alpha1.StateUnreachable, v1alpha1.StateUpdating, "", true},
		"it failed before":              {"ReconciliationFailed", Reach{}, v1alpha1.StateFailed, v1alpha1.StateFailed, "", false},
		"no cluster is to blame":        {"BuildFailed", Reach{}, "", v1alpha1.StateFailed, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			o := &Observed{Assemblage: Assemblage{Secret: "c1-kubeconfig"}, Reach: test.reach}
			var was *v1alpha1.SyncStatus
			if test.was != "" {
				was = &v1alpha1.SyncStatus{State: test.was}
			}
			source := &Source{Generation: 1, ObservedGeneration: 1, Revision: fetched}
			got := settle(o, source, kustomization{parsed(t, ready("2", "False", test.reason, ""))}, was)
			if got.state != test.want || got.ask != test.ask || got.kick != test.kick {
				t.Errorf("%s, asks %q, kick %v; want %s, asks %q, kick %v", got.state, got.ask, got.kick, test.want, test.ask, test.kick)
			}
		})
	}
	// What has succeeded is not reported while that is unknown.
	o := &Observed{Assemblage: Assemblage{Secret: "c1-kubeconfig"}, Reach: Reach{Problem: down}}
	source := &Source{Generation: 1, ObservedGeneration: 1, Revision: fetched}
	got := settle(o, source, kustomization{parsed(t, ready("2", "True", "Applied", ", lastAppliedRevision: "+fetched))}, nil)
	if got.state != v1alpha1.StateUnreachable || !strings.Contains(got.message, "connection refused") {
		t.Errorf("%s: %s", got.state, got.message)
	}
}

// What differs from one time to the next does not become another sentence.
func TestWhatFluxSaysIsSaidTheSameWayEachTime(t *testing.T) {
	for message, want := range map[string]string{
		"failed to decode Kubernetes YAML from /tmp/kustomization-490617807/cm.yaml: line 2": "failed to decode Kubernetes YAML from cm.yaml: line 2",
		strings.Repeat("ä", outcome.MessageLength):                                           strings.Repeat("ä", (outcome.MessageLength-len("..."))/2) + "...",
	} {
		if got := outcome.Shortened(message); got != want {
			t.Errorf("%q", got)
		}
	}
}

func TestUnusable(t *testing.T) {
	for want, problem := range map[v1alpha1.State]error{
		"":                        nil,
		v1alpha1.StateWaiting:     cluster.ErrMissing,
		v1alpha1.StateFailed:      &cluster.InvalidError{Reason: "x"},
		v1alpha1.StateUnreachable: errors.Join(&cluster.UnreachableError{Reason: "x"}),
	} {
		if state, _, _ := outcome.Unusable(problem, "s"); state != want {
			t.Errorf("%v: %q, want %q", problem, state, want)
		}
	}
}
