package decision

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/write"
	"github.com/spillway-dev/spillway/internal/ring"
)

// fourSteps are two phases of two steps each, with a Deployment in each step.
func fourSteps(plan, phase, extra string) string {
	text := fmt.Sprintf("plans: {deploy: {strategy: %q, %s phases: [", plan, extra)
	tasks, templates := "tasks:\n", "templates:\n"
	for _, p := range []string{"a", "b"} {
		text += fmt.Sprintf("{name: %s, strategy: %q, steps: [", p, phase)
		for _, s := range []string{"1", "2"} {
			text += fmt.Sprintf("{name: %q, tasks: [%s%s]}, ", s, p, s)
			tasks += fmt.Sprintf("- {name: %s%s, kind: Apply, spec: {resources: [%s%s]}}\n", p, s, p, s)
			templates += fmt.Sprintf("  %s%s: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s%s}, spec: {replicas: 1}}'\n", p, s, p, s)
		}
		text += "]}, "
	}
	return text + "]}}\n" + tasks + templates
}

// TestStrategies: each line is what is applied once what was applied before is
// healthy. An empty strategy is parallel.
func TestStrategies(t *testing.T) {
	for _, test := range []struct{ plan, phase, want string }{
		{"serial", "serial", "a1; a2; b1; b2"},
		{"serial", "parallel", "a1 a2; b1 b2"},
		{"serial", "", "a1 a2; b1 b2"},
		{"parallel", "serial", "a1 b1; a2 b2"},
		{"", "serial", "a1 b1; a2 b2"},
		{"", "", "a1 a2 b1 b2"},
		{"parallel", "parallel", "a1 a2 b1 b2"},
	} {
		w := newWorld(t, fourSteps(test.plan, test.phase, ""))
		var waves []string
		for range 4 {
			for _, name := range []string{"a1", "a2", "b1", "b2"} {
				w.unhealthy[name] = true
			}
			w.story = nil
			w.settle(t)
			if len(w.story) > 0 {
				waves = append(waves, strings.ReplaceAll(strings.Join(w.story, " "), "create Deployment ", ""))
			}
			w.ready()
		}
		w.settle(t)
		if got := strings.Join(waves, "; "); got != test.want || w.plans() != "deploy Complete" {
			t.Errorf("plan %q, phases %q: %s; %s", test.plan, test.phase, got, w.plans())
		}
	}
}

// ready makes all existing Deployments ready.
func (w *world) ready() {
	clear(w.unhealthy)
	for ref := range w.objects {
		w.grow(ref)
	}
}

// TestOneOfParallelStepsFails: the others go on for a failure that may pass, and
// nothing does for one that does not.
func TestOneOfParallelStepsFails(t *testing.T) {
	w := newWorld(t, fourSteps("serial", "parallel", ""))
	w.refuses[ref("apps/v1", "Deployment", "a1")] = write.Refusal{Reason: "no quota"}
	w.settle(t)
	p := w.instance.Status.PlanStatus["deploy"]
	if p.Status != v1beta1.InProgress || p.Phases[0].Status != v1beta1.InProgress || p.Phases[0].Steps[0].Status != v1beta1.Error ||
		p.Phases[0].Steps[1].Status != v1beta1.Complete || p.Phases[1].Status != v1beta1.Pending {
		t.Errorf("%+v", p)
	}
	w.refuses[ref("apps/v1", "Deployment", "a1")] = write.Refusal{Reason: "no such thing", Fatal: true}
	w.now = w.now.Add(time.Minute)
	w.settle(t)
	if got := w.waitsFor(); got != "plan deploy failed: no such thing" {
		t.Error(got)
	}
}

func TestTimeouts(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"of the plan":  {fourSteps("serial", "serial", "timeout: 1m,"), "plan deploy failed: not complete after 1m (timeout)"},
		"of the phase": {strings.Replace(fourSteps("serial", "serial", ""), "{name: a,", "{name: a, timeout: 1m,", 1), "phase a failed: not complete after 1m (timeout)"},
		"of the step":  {strings.Replace(fourSteps("serial", "serial", ""), `{name: "1",`, `{name: "1", timeout: 1m,`, 1), "step 1 failed: not complete after 1m (timeout)"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.text)
			w.unhealthy["a1"] = true
			w.settle(t)
			w.now = noon.Add(time.Minute - time.Millisecond)
			w.settle(t)
			if w.plans() != "" {
				t.Error("it ends too early")
			}
			if _, p := w.decide(); !p.Wake.Equal(noon.Add(time.Minute)) {
				t.Errorf("it wakes at %s", p.Wake)
			}
			w.now = noon.Add(time.Minute)
			w.settle(t)
			if got := w.waitsFor(); got != "plan deploy failed: "+test.want {
				t.Error(got)
			}
		})
	}
}

// TestAStepThatWasInTimeHasNoTimeout any more.
func TestAStepThatWasInTimeHasNoTimeout(t *testing.T) {
	w := newWorld(t, strings.Replace(fourSteps("serial", "serial", ""), `{name: "1",`, `{name: "1", timeout: 1m,`, 1))
	w.unhealthy["a2"] = true
	w.settle(t)
	w.now = w.now.Add(time.Hour)
	w.settle(t)
	if w.plans() != "" {
		t.Error(w.plans())
	}
}

// TestAHundredStepsThatDoNothing take one pass, and two writes.
func TestAHundredStepsThatDoNothing(t *testing.T) {
	var steps []string
	for i := range 100 {
		steps = append(steps, fmt.Sprintf("{name: s%d, tasks: [t]}", i))
	}
	w := newWorld(t, "tasks: [{name: t, kind: Dummy, spec: {done: true}}]\nplans: {deploy: {strategy: serial, phases: [{name: p, strategy: serial, steps: ["+strings.Join(steps, ", ")+"]}]}}")
	w.pass()
	if w.plans() != "deploy Complete" || w.statuses != 1 {
		t.Errorf("%s after %d writes", w.plans(), w.statuses)
	}
}

func TestPlansWithNothingInThem(t *testing.T) {
	for _, plan := range []string{"{}", "{phases: []}", "{phases: [{name: a}]}", "{strategy: serial, phases: [{name: a, steps: [{name: s}]}, {name: b, steps: []}]}"} {
		w := newWorld(t, "plans: {deploy: "+plan+"}")
		w.settle(t)
		if w.plans() != "deploy Complete" {
			t.Errorf("%s: %s; %s", plan, w.plans(), w.waitsFor())
		}
	}
}

// TestRolloutGroup: a step that applied a zone waits until its group has rolled it.
func TestRolloutGroup(t *testing.T) {
	w := newWorld(t, onePlan(`
tasks: [{name: t, kind: Apply, spec: {resources: [a]}}]
templates: {a: '{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: zone-a, labels: {rollout-group: ingester}}, spec: {replicas: 0, updateStrategy: {type: OnDelete}}}'}
`, "t"))
	w.groups = true
	w.settle(t)
	if got := w.waitsFor(); got != "task t is updating: waiting for RolloutGroup ingester: not found" {
		t.Fatal(got)
	}
	set := w.objects[ref("apps/v1", "StatefulSet", "zone-a")]
	set.Object["status"] = map[string]any{"observedGeneration": int64(1), "updateRevision": "v2"}
	group := w.put(t, `{apiVersion: spillway.dev/v1alpha1, kind: RolloutGroup, metadata: {name: ingester},
	  status: {waitingFor: "zone-a-0 is updating", zones: [{name: zone-a, target: v1, revision: v1, state: Complete}]}}`)
	w.settle(t)
	if got := w.waitsFor(); got != "task t is updating: waiting for RolloutGroup ingester: zone-a-0 is updating" {
		t.Fatal(got)
	}
	group.Object["status"] = map[string]any{"zones": []any{map[string]any{"name": "zone-a", "target": "v2", "revision": "v2", "state": "Complete"}}}
	w.settle(t)
	if got := w.plans(); got != "deploy Complete" {
		t.Error(got, w.waitsFor())
	}
}

// TestReadyFollowsWhatWasApplied also while no plan runs.
func TestReadyFollowsWhatWasApplied(t *testing.T) {
	w := newWorld(t, simple)
	w.settle(t)
	ready := func() string {
		for _, c := range w.instance.Status.Conditions {
			if c.Type == ring.ConditionReady {
				return string(c.Status) + " " + c.Reason + ": " + c.Message
			}
		}
		return ""
	}
	if got := ready(); got != "True Complete: no plan is running, and all workloads are ready" {
		t.Error(got)
	}
	w.unhealthy["app"] = true
	for r := range w.objects {
		w.grow(r)
	}
	w.settle(t)
	if got := ready(); got != "False WorkloadNotReady: waiting for Deployment app: Replicas: 0/1" {
		t.Error(got)
	}
	w.ready()
	w.settle(t)
	if got := ready(); got != "True Complete: no plan is running, and all workloads are ready" {
		t.Error(got)
	}
}

// TestAnyInputEnds: whatever the package and the parameters, a pass is decided,
// the same each time, and once nothing stands in its way it comes to rest.
func TestAnyInputEnds(t *testing.T) {
	templates := []string{
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", "{apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ .Params.P }}'}}", "---", "[]", "a: b", "{",
		"{apiVersion: v1, kind: List, items: [1]}", "{apiVersion: v1, kind: Pod, metadata: []}", "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s}, spec: {template: [], volumeClaimTemplates: {}}}",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: s, annotations: {a: 1}}, spec: {template: {metadata: {labels: []}, spec: {}}}}", "{{ .Params.NONE }}",
		"{apiVersion: v1, kind: Secret, metadata: {name: s, annotations: {spillway.dev/generate-once: 'x'}}}", "{apiVersion: kudo.dev/v1beta1, kind: Instance, metadata: {name: c}, spec: 3}",
	}
	kinds := []string{v1beta1.ApplyTask, v1beta1.DeleteTask, v1beta1.ToggleTask, v1beta1.PipeTask, v1beta1.KudoOperatorTask, v1beta1.DummyTask, "Pray"}
	rapid.Check(t, func(rt *rapid.T) {
		ov := &v1beta1.OperatorVersion{}
		ov.Namespace, ov.Name = "shop", "app-1"
		name := rapid.SampledFrom([]string{"a", "b", "c", ""})
		ov.Spec.Templates = map[string]string{"a": rapid.SampledFrom(templates).Draw(rt, "a"), "b": rapid.SampledFrom(templates).Draw(rt, "b")}
		ov.Spec.Parameters = []v1beta1.Parameter{{Name: "P", Type: rapid.SampledFrom([]v1beta1.ParameterType{"", "integer", "boolean", "array", "map", "odd"}).Draw(rt, "type")}}
		for _, task := range []string{"a", "b", "c"} {
			ov.Spec.Tasks = append(ov.Spec.Tasks, v1beta1.Task{Name: task, Kind: rapid.SampledFrom(kinds).Draw(rt, "kind"), Spec: v1beta1.TaskSpec{
				Resources: rapid.SliceOfN(name, 0, 3).Draw(rt, "resources"), Pod: name.Draw(rt, "pod"), Parameter: rapid.SampledFrom([]string{"P", "Q"}).Draw(rt, "parameter"),
				Pipe: []v1beta1.PipeFile{{File: rapid.SampledFrom([]string{"", "/", "/tmp/x"}).Draw(rt, "file"), Kind: "Secret", Key: "k"}}, ParameterFile: name.Draw(rt, "parameters"),
				Package: rapid.SampledFrom([]string{"app", "db", ""}).Draw(rt, "package"), OperatorVersion: "1", Done: rapid.Bool().Draw(rt, "done"), WantErr: rapid.Bool().Draw(rt, "wantErr"),
			}})
		}
		plan := v1beta1.Plan{Strategy: rapid.SampledFrom([]v1beta1.Ordering{"", "serial", "odd"}).Draw(rt, "strategy")}
		for range rapid.IntRange(0, 3).Draw(rt, "phases") {
			phase := v1beta1.Phase{Name: name.Draw(rt, "phase")}
			for range rapid.IntRange(0, 3).Draw(rt, "steps") {
				phase.Steps = append(phase.Steps, v1beta1.Step{Name: name.Draw(rt, "step"), Tasks: rapid.SliceOfN(name, 0, 3).Draw(rt, "tasks")})
			}
			plan.Phases = append(plan.Phases, phase)
		}
		ov.Spec.Plans = map[string]v1beta1.Plan{"deploy": plan}
		w := newWorld(t)
		w.versions["app-1"] = ov
		w.instance.Spec.Parameters = map[string]string{"P": rapid.SampledFrom([]string{"", "x", "3", "true", "[a]", "{a: b}", "{", "\x00"}).Draw(rt, "P")}
		for i := 0; w.pass(); i++ {
			if i > 200 {
				rt.Fatalf("it never comes to rest: %s\n%s", w.waitsFor(), strings.Join(w.story, "\n"))
			}
		}
		_, one := w.decide()
		_, other := w.decide()
		if one.Sentence != other.Sentence || one.Changes || other.Changes {
			rt.Fatalf("%q, %q", one.Sentence, other.Sentence)
		}
	})
}
