package span_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/tracing/span"
)

var minutes = regexp.MustCompile(`\bT(\d)\b`)

var now = time.Date(2026, 5, 4, 13, 0, 0, 0, time.UTC)

func meta() metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "shop", Name: "x", UID: "u1"} }

// read reads a status, in which T5 is five minutes after noon.
func read[T any](t *testing.T, text string) T {
	t.Helper()
	text = minutes.ReplaceAllString(text, "'2026-05-04T12:0$1:00.000000Z'")
	var status T
	if err := yaml.UnmarshalStrict([]byte(text), &status); err != nil {
		t.Fatal(text, err)
	}
	return status
}

// ended are the spans that end between two states, as lines: "PARENT > NAME 1-3 OUTCOME MESSAGE".
func ended(before, after client.Object) []string {
	names := map[string]string{}
	for _, s := range append(span.Of(before), span.Of(after)...) {
		names[s.ID] = s.Title()
	}
	var lines []string
	for _, s := range span.Ended(before, after, now) {
		line := strings.TrimPrefix(names[s.Parent]+" > "+s.Title(), " > ")
		line += fmt.Sprintf(" %s %s-%s %s %s", s.Object.Rollout, minute(s.Start), minute(s.End), s.Outcome, s.Message)
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

func minute(t time.Time) string {
	if t.Equal(now) {
		return "now"
	}
	return t.UTC().Format("4")
}

// step is a state, nil for deleted, and what ends by it.
type step struct {
	to   client.Object
	want []string
}

func check(t *testing.T, steps ...step) {
	t.Helper()
	var before client.Object
	for i, s := range steps {
		if diff := cmp.Diff(s.want, ended(before, s.to)); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
		if got := ended(s.to, s.to); s.to != nil && len(got) > 0 {
			t.Errorf("step %d: nothing changed, and there is %q", i, got)
		}
		before = s.to
	}
}

func conditions(reason, stalled, message string) string {
	return fmt.Sprintf("conditions: [{type: Ready, status: 'False', reason: %s, message: %s, lastTransitionTime: '2026-05-04T12:00:00Z'}, {type: Stalled, status: '%s', reason: %s, message: %s, lastTransitionTime: '2026-05-04T12:04:00Z'}]\n",
		reason, message, stalled, reason, message)
}

func TestGroup(t *testing.T) {
	t.Parallel()
	group := func(text string) client.Object {
		return &v1alpha1.RolloutGroup{ObjectMeta: meta(), Status: read[v1alpha1.RolloutGroupStatus](t, text)}
	}
	const (
		a       = "{name: a, revision: r, startedAt: T1, finishedAt: T2}"
		b       = "{name: b, revision: r, startedAt: T3}"
		running = "history: [{number: 2, outcome: Running, startedAt: T1, zones: [%s]}]\n"
	)
	check(t,
		step{group(fmt.Sprintf(running, "{name: a, revision: r, startedAt: T1}") + conditions("Progressing", "False", "rolls")),
			[]string{"Zone a > Progressing 2 now-now  rolls"}},
		step{group(fmt.Sprintf(running, a) + "since: '2026-05-04T12:02:00Z'\n" + conditions("Gate", "False", "waits")),
			[]string{"Rollout RolloutGroup x > Zone a 2 1-2 Complete", "Rollout RolloutGroup x > Gate 2 2-2  waits"}},
		// Another sentence is no other reason.
		step{group(fmt.Sprintf(running, a) + "since: '2026-05-04T12:02:00Z'\n" + conditions("Gate", "False", "waits still")), nil},
		step{group(strings.ReplaceAll(fmt.Sprintf(running, a+", "+b), "Running", "Failed, finishedAt: T4") + conditions("GateRefused", "True", "why")),
			[]string{"Zone b > GateRefused 2 4-4 Stalled why"}},
		// A new rollout ends the one that had failed, and the zone that it did not finish.
		step{group("history: [{number: 3, outcome: Running, startedAt: T5}, {number: 2, outcome: Failed, startedAt: T1, finishedAt: T4, zones: [" + a + ", " + b + "]}]"),
			[]string{"Rollout RolloutGroup x 2 1-4 Failed", "Rollout RolloutGroup x > Zone b 2 3-4 Failed"}},
		step{group("history: [{number: 3, outcome: Complete, startedAt: T5, finishedAt: T6}]"), []string{"Rollout RolloutGroup x 3 5-6 Complete"}},
		step{nil, nil},
	)
	check(t,
		step{group("history: [{number: 1, outcome: Running, startedAt: T5}]"), nil},
		step{nil, []string{"Rollout RolloutGroup x 1 5-now Deleted"}},
	)
}

// TestIdentity checks that a manager that begins has the ids of the one before, and that no two
// spans, and no two rollouts, have the same.
func TestIdentity(t *testing.T) {
	t.Parallel()
	status := read[v1alpha1.RolloutGroupStatus](t, "since: '2026-05-04T12:03:00Z'\n"+conditions("Gate", "False", "waits")+
		"history: [{number: 2, outcome: Running, startedAt: T3, zones: [{name: a, revision: r, startedAt: T3, finishedAt: T4}]}, {number: 1, outcome: Complete, startedAt: T1, finishedAt: T2, zones: [{name: a, revision: q, startedAt: T1, finishedAt: T2}]}]")
	first := span.Ended(nil, &v1alpha1.RolloutGroup{ObjectMeta: meta(), Status: status}, now)
	again := span.Ended(nil, &v1alpha1.RolloutGroup{ObjectMeta: meta(), Status: status}, now.Add(time.Hour))
	other := span.Ended(nil, &v1alpha1.RolloutGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "x", UID: "u2"}, Status: status}, now)
	if len(first) != 4 || !cmp.Equal(first, again, cmp.AllowUnexported(span.Span{})) {
		t.Errorf("%+v\nand\n%+v", first, again)
	}
	var ids, traces []string
	for _, s := range append(first, other...) {
		ids, traces = append(ids, s.ID), append(traces, s.Trace)
		if len(s.Trace) != 32 || len(s.ID) != 16 {
			t.Errorf("the ids %s and %s", s.Trace, s.ID)
		}
	}
	slices.Sort(ids)
	slices.Sort(traces)
	if n := len(slices.Compact(ids)); n != 8 || len(slices.Compact(traces)) != 4 {
		t.Errorf("%d spans, traces %q", n, traces)
	}
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	policy := func(text string) client.Object {
		return &v1alpha1.ConfigPolicy{ObjectMeta: meta(), Status: read[v1alpha1.ConfigPolicyStatus](t, text)}
	}
	release := func(digest, phase, more string) string {
		return "{object: Secret db@" + digest + ", namespace: shop, phase: " + phase + ", updated: 1/3, waitingFor: why, startedAt: T1" + more + "}"
	}
	past := func(outcome string) string {
		return "{object: Secret db@1, namespace: shop, outcome: " + outcome + ", startedAt: T1, finishedAt: T4, stages: [{name: first, startedAt: T1, finishedAt: T2}, {name: rest, startedAt: T3}]}"
	}
	const stages = ", stages: [{name: first, phase: Complete, updated: 1/1, startedAt: T1, finishedAt: T2}, {name: rest, phase: Progressing, updated: 0/2, startedAt: T3}, {name: last, phase: Waiting, updated: 0/1}]"
	check(t,
		step{policy("releases: [" + release("1", "Progressing", "") + "]"), []string{"Rollout Secret db > Progressing 1 now-now  why"}},
		step{policy("releases: [" + release("1", "Failed", stages) + "]"), []string{"Rollout Secret db > Stage first 1 1-2 Complete", "Stage rest > Failed 1 now-now Stalled why"}},
		step{policy("releases: [" + release("2", "Progressing", "") + "]\nhistory: [" + past("Superseded") + "]"), []string{
			"Rollout Secret db > Progressing 2 now-now  why", "Rollout Secret db 1 1-4 Superseded", "Rollout Secret db > Stage rest 1 3-4 Superseded",
		}},
		// What a status may leave out has not ended.
		step{policy("underway: 17"), nil},
	)
	// A manager that begins sees what ended meanwhile.
	check(t, step{policy("history: [" + past("Complete") + "]"), []string{
		"Rollout Secret db 1 1-4 Complete", "Rollout Secret db > Stage first 1 1-2 Complete", "Rollout Secret db > Stage rest 1 3-4 Complete",
	}})
	check(t,
		// An earlier version has recorded no beginning.
		step{policy("releases: [{object: Secret db@1, namespace: shop, phase: Failed, updated: 1/3}]"), nil},
	)
}

func TestInstance(t *testing.T) {
	t.Parallel()
	instance := func(text string) client.Object {
		return &v1beta1.Instance{ObjectMeta: meta(), Status: read[v1beta1.InstanceStatus](t, text)}
	}
	const (
		plan = "planStatus: {deploy: {uid: e1, phases: [{name: main, status: %s, startedAt: T1, steps: [{name: one, status: COMPLETE, startedAt: T1, finishedAt: T2}, {name: two, %s}]}]}}\n"
		runs = "execution: {uid: e1, plan: deploy, cause: Create, contentHash: h, spec: {}, startedAt: T1}\n"
		past = "history: [{uid: e1, plan: deploy, cause: Create, operatorVersion: v, contentHash: h, result: %s, message: said, startedAt: T1, finishedAt: T5}]\n"
	)
	check(t,
		step{instance(runs + fmt.Sprintf(plan, "IN_PROGRESS", "status: IN_PROGRESS, startedAt: T3")), []string{"Phase main > Step one deploy 1-2 Complete"}},
		step{instance(fmt.Sprintf(past, "Complete") + fmt.Sprintf(plan, "COMPLETE", "status: COMPLETE, startedAt: T3, finishedAt: T4")), []string{
			"Rollout Instance x deploy 1-5 Complete said", "Rollout Instance x > Phase main deploy 1-4 Complete", "Phase main > Step two deploy 3-4 Complete",
		}},
	)
	check(t,
		step{instance(runs + fmt.Sprintf(plan, "IN_PROGRESS", "status: ERROR, message: bad, startedAt: T3") + "since: '2026-05-04T12:03:00Z'\n" + conditions("InProgress", "False", "waits")), []string{
			"Phase main > Step one deploy 1-2 Complete", "Step two > InProgress deploy 3-3  waits",
		}},
		step{instance(fmt.Sprintf(past, "Failed") + fmt.Sprintf(plan, "FATAL_ERROR", "status: FATAL_ERROR, message: bad, startedAt: T3")), []string{
			"Rollout Instance x deploy 1-5 Failed said", "Rollout Instance x > Phase main deploy 1-5 Failed", "Phase main > Step two deploy 3-5 Failed bad",
		}},
	)
}

func TestModule(t *testing.T) {
	t.Parallel()
	module := func(text string) client.Object {
		return &fleetv1.Module{ObjectMeta: meta(), Status: read[fleetv1.ModuleStatus](t, text)}
	}
	const stage = "stages: [{name: canary, state: Complete, total: 1, updated: 1, ready: 1, failed: 0, startedAt: T1, finishedAt: T2}]\n"
	check(t,
		step{module("targetRevision: x-2\nhistory: [{revision: x-2, outcome: Running, startedAt: T1}]\n" + stage + conditions("Gate", "False", "waits")),
			[]string{"Rollout Module x > Stage canary x-2 1-2 Complete", "Rollout Module x > Gate x-2 now-now  waits"}},
		step{module("targetRevision: x-1\nhistory: [{revision: x-1, outcome: Running, startedAt: T4}, {revision: x-2, outcome: RolledBack, startedAt: T1, finishedAt: T3}]"),
			[]string{"Rollout Module x x-2 1-3 RolledBack"}},
	)
}
