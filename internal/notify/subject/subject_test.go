package subject_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/notify/decision"
	"github.com/spillway-dev/spillway/internal/notify/subject"
)

// read reads a status from YAML.
func read[T any](t *testing.T, text string) T {
	t.Helper()
	var status T
	if err := yaml.UnmarshalStrict([]byte(text), &status); err != nil {
		t.Fatal(text, err)
	}
	return status
}

func meta() metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "shop", Name: "x", UID: "u1"} }

// says is a subject in one line: its key, and its rollouts with how they go.
func says(s *decision.Subject) string {
	texts := []string{s.Key + " " + s.Ring + " " + s.Kind + "/" + s.Name}
	for _, r := range s.Rollouts {
		state := [...]string{"running", "stopped", "ended", "returned"}[r.State]
		texts = append(texts, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", r.ID, state, r.Reason, r.Sentence)))
	}
	return strings.Join(texts, "; ")
}

const (
	began   = "startedAt: '2026-05-04T12:00:00.000000Z'"
	stalled = "conditions: [{type: Stalled, status: 'True', reason: GateRefused, message: why, lastTransitionTime: '2026-05-04T12:00:00Z'}]\n"
)

func TestGroup(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]string{
		"{}": "",
		"history: [{number: 2, outcome: Running, " + began + "}, {number: 1, outcome: Superseded, " + began + "}]":      "; 1 ended Superseded; 2 running Running",
		stalled + "history: [{number: 2, outcome: Failed, " + began + "}, {number: 1, outcome: Failed, " + began + "}]": "; 1 ended Failed; 2 stopped GateRefused why",
		stalled + "history: [{number: 1, outcome: Running, " + began + "}]":                                             "; 1 stopped GateRefused why",
		stalled + "history: [{number: 1, outcome: Complete, " + began + "}]":                                            "; 1 ended Complete",
		"history: [{number: 1, outcome: Failed, " + began + "}]":                                                        "; 1 ended Failed",
	} {
		s := subject.Reader{}.Group(&v1alpha1.RolloutGroup{ObjectMeta: meta(), Status: read[v1alpha1.RolloutGroupStatus](t, status)})
		if got := says(&s); got != "RolloutGroup/u1 zones RolloutGroup/x"+want {
			t.Errorf("%s\n%s, want %s", status, got, want)
		}
	}
}

// TestDown checks which zones are down on purpose.
func TestDown(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 4, 12, 0, 30, 0, time.UTC)
	const (
		zones   = "zones: [{name: a, updated: 3, ready: 3, total: 3}, {name: b, updated: 1, ready: 2, total: 3}]\n"
		rolling = "phase: Progressing\n" + zones
		since   = "since: '2026-05-04T12:00:00.000000Z'"
	)
	lock := func(zone, more string) string {
		return "lock: {holder: rollout/x, purpose: rollout, zone: '" + zone + "', " + since + more + "}\n"
	}
	for status, want := range map[string]string{
		"{}":                    "[]",
		rolling:                 "[]",
		rolling + lock("b", ""): "[b]",
		// Between two Pods it is up for a moment.
		rolling + lock("a", ""):           "[a]",
		stalled + rolling + lock("b", ""): "[]",
		// Paused or waiting, it is down while a Pod is missing.
		"phase: Paused\n" + zones + lock("a", ""):  "[]",
		"phase: Waiting\n" + zones + lock("a", ""): "[]",
		"phase: Waiting\n" + zones + lock("b", ""): "[b]",
		rolling + lock("", "") + "moves: [{zone: b, pod: b-0, uid: u, resourceVersion: '1', revision: r, at: '2026-05-04T12:00:00.000000Z'}]": "[b]",
		rolling + lock("b", ", expires: '2026-05-04T12:00:20.000000Z'"):                                                                       "[]",
		rolling + lock("b", ", expires: '2026-05-04T12:00:50.000000Z'"):                                                                       "[b] until 12:00:50",
	} {
		zones, until := subject.Down(&v1alpha1.RolloutGroup{ObjectMeta: meta(), Status: read[v1alpha1.RolloutGroupStatus](t, status)}, now)
		got := fmt.Sprint(zones)
		if !until.IsZero() {
			got += until.UTC().Format(" until 15:04:05")
		}
		if got != want {
			t.Errorf("%s\n%s, want %s", status, got, want)
		}
	}
}

func TestInstance(t *testing.T) {
	t.Parallel()
	past := "history: [{uid: e1, plan: deploy, cause: Create, operatorVersion: v, contentHash: h, result: RESULT, message: no room, finishedAt: '2026-05-04T12:01:00.000000Z', " + began + "}]\n"
	running := "execution: {uid: e2, plan: backup, cause: Request, contentHash: h, spec: {}, " + began + "}\n"
	for status, want := range map[string]string{
		"{}":              "",
		running:           "; backup running",
		stalled + running: "; backup stopped GateRefused why",
		strings.ReplaceAll(past, "RESULT", "Complete") + running:  "; deploy ended Complete no room; backup running",
		stalled + strings.ReplaceAll(past, "RESULT", "Failed"):    "; deploy stopped GateRefused why",
		stalled + strings.ReplaceAll(past, "RESULT", "Abandoned"): "; deploy ended Abandoned no room",
		strings.ReplaceAll(past, "RESULT", "Failed") + running:    "; deploy ended Failed no room; backup running",
	} {
		s := subject.Reader{}.Instance(&v1beta1.Instance{ObjectMeta: meta(), Status: read[v1beta1.InstanceStatus](t, status)})
		if got := says(&s); got != "Instance/u1 plans Instance/x"+want {
			t.Errorf("%s\n%s, want %s", status, got, want)
		}
	}
}

func TestModule(t *testing.T) {
	t.Parallel()
	row := func(revision, outcome string) string {
		return fmt.Sprintf("- {revision: %s, outcome: %s, %s}\n", revision, outcome, began)
	}
	for status, want := range map[string]string{
		"{}": "",
		"history:\n" + row("x-2", "Running") + row("x-1", "Complete"): "; x-1 ended Complete; x-2 running Running",
		stalled + "history:\n" + row("x-2", "Failed"):                 "; x-2 stopped GateRefused why",
		// The return is no rollout of its own, also while it is stalled; the next one is.
		stalled + "history:\n" + row("x-1", "Running") + row("x-2", "RolledBack") + row("x-1", "Complete"):                "; x-1 ended Complete; x-2 returned RolledBack x-2 failed and is rolled back",
		"history:\n" + row("x-3", "Running") + row("x-1", "Complete") + row("x-2", "RolledBack") + row("x-1", "Complete"): "; x-1 ended Complete; x-2 returned RolledBack x-2 failed and is rolled back; x-3 running Running",
		"history:\n" + row("x-3", "Running") + row("x-2", "RolledBack") + row("x-1", "Complete"):                          "; x-1 ended Complete; x-2 returned RolledBack x-2 failed and is rolled back; x-3 running Running",
		"history:\n" + row("x-2", "RolledBack"): "; x-2 returned RolledBack x-2 failed and is rolled back",
	} {
		s := read[fleetv1.ModuleStatus](t, status)
		got := subject.Reader{}.Module(subject.KindModule, &fleetv1.Module{ObjectMeta: meta()}, &s)
		if got := says(&got); got != "Module/u1 fleet Module/x"+want {
			t.Errorf("%s\n%s, want %s", status, got, want)
		}
	}
}

// TestReleases checks that a namespace sees its own releases, and what has become of one that
// is not found.
func TestReleases(t *testing.T) {
	t.Parallel()
	s := read[v1alpha1.ConfigPolicyStatus](t, `
underway: 4
releases:
- {object: Secret db@1111111, namespace: shop, phase: Progressing, updated: 1/5, waitingFor: app2 is next}
- {object: ConfigMap infra/limits@2222222, namespace: shop, phase: Failed, updated: 1/5, waitingFor: app1 failed}
- {object: Secret api@3333333, namespace: shop, phase: Failed, updated: 0/5, waitingFor: app1 failed, rolledBack: 1}
- {object: Secret db@4444444, namespace: other, phase: Failed, updated: 1/5, waitingFor: theirs}
history:
- {object: Secret db@5555555, namespace: shop, outcome: Superseded, `+began+`, finishedAt: '2026-05-04T12:05:00.000000Z'}
- {object: Secret db@1111111, namespace: shop, outcome: RolledBack, `+began+`, finishedAt: '2026-05-04T12:04:00.000000Z'}
- {object: Secret db@1111111, namespace: shop, outcome: Complete, `+began+`, finishedAt: '2026-05-04T12:03:00.000000Z'}
- {object: Secret db@1111111, namespace: other, outcome: Complete, `+began+`, finishedAt: '2026-05-04T12:02:00.000000Z'}
`)
	p := &v1alpha1.ClusterConfigPolicy{ObjectMeta: meta()}
	var got []string
	for _, one := range (subject.Reader{}).Releases(subject.KindClusterPolicy, p, &s, "shop") {
		got = append(got, says(&one))
	}
	want := []string{
		"ClusterConfigPolicy/u1/Secret db@1111111 config Secret/db; 1111111 ended Complete; 1111111 returned RolledBack; 1111111 running  app2 is next",
		"ClusterConfigPolicy/u1/Secret db@5555555 config Secret/db; 5555555 ended Superseded",
		"ClusterConfigPolicy/u1/ConfigMap infra/limits@2222222 config ConfigMap/infra/limits; 2222222 stopped Failed app1 failed",
		"ClusterConfigPolicy/u1/Secret api@3333333 config Secret/api; 3333333 returned RolledBack app1 failed",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
	for key, want := range map[string]string{
		"ClusterConfigPolicy/u1/Secret db@0000000":      "Secret config Superseded",
		"ClusterConfigPolicy/u1/ConfigMap gone@0000000": "ConfigMap config Complete",
	} {
		if gone := subject.EndedRelease(key, &s, "shop"); gone == nil || gone.Kind+" "+gone.Ring+" "+gone.Outcome != want || subject.PolicyKey(key) != "ClusterConfigPolicy/u1" {
			t.Errorf("%s: %+v", key, gone)
		}
	}
	if gone := subject.EndedRelease("ClusterConfigPolicy/u1/Secret db@0000000", &s, "other"); gone.Outcome != decision.OutcomeSuperseded {
		t.Errorf("in another namespace: %+v", gone)
	}
	if s.Underway++; subject.EndedRelease("ClusterConfigPolicy/u1/Secret db@0000000", &s, "shop") != nil {
		t.Error("a status that does not list all says that a release has ended")
	}
}

func TestDeleted(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"RolloutGroup/u1": "RolloutGroup zones", "Instance/u1": "Instance plans", "Module/u1": "Module fleet", "BootstrapModule/u1": "BootstrapModule fleet",
		"ConfigPolicy/u1/Secret db@1": "Secret config",
	} {
		if gone := subject.Deleted(key); gone.Kind+" "+gone.Ring != want || gone.Outcome != decision.OutcomeDeleted {
			t.Errorf("%s: %+v", key, gone)
		}
	}
	if subject.PolicyKey("RolloutGroup/u1") != "" || subject.KindOf("RolloutGroup/u1") != "RolloutGroup" {
		t.Error("the key of a group")
	}
}
