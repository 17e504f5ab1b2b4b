package decision

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/internal/gates/ask"
	"github.com/spillway-dev/spillway/internal/plans/write"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// staged has a plan of two phases, the first of two steps.
const staged = `
version: "1"
tasks:
- {name: a, kind: Apply, spec: {resources: [a.yaml]}}
- {name: b, kind: Apply, spec: {resources: [b.yaml]}}
- {name: c, kind: Apply, spec: {resources: [c.yaml]}}
templates:
  a.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"
  b.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}"
  c.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}"
plans:
  deploy:
    strategy: serial
    phases:
    - {name: one, strategy: serial, steps: [{name: a, tasks: [a]}, {name: b, tasks: [b]}]}
    - {name: two, strategy: serial, steps: [{name: c, tasks: [c]}]}
  update: {phases: [{name: one, steps: [{name: a, tasks: [a]}]}]}
`

// TestGatesOfAPlan: each gate keeps exactly what follows it.
func TestGatesOfAPlan(t *testing.T) {
	for _, test := range []struct{ gate, stage, applied, sentence string }{
		{"{plan: deploy, when: Before, name: ok}", "deploy", "", "plan deploy is waiting: gate ok is pending"},
		{"{plan: deploy, phase: one, step: a, name: ok}", "deploy/one/a", "a", "step a is waiting: gate ok is pending"},
		{"{plan: deploy, phase: one, step: b, when: Before, name: ok}", "deploy/one/b", "a", "step b is waiting: gate ok is pending"},
		{"{plan: deploy, phase: one, name: ok}", "deploy/one", "ab", "phase one is waiting: gate ok is pending"},
		{"{plan: deploy, phase: two, when: Before, name: ok}", "deploy/two", "ab", "phase two is waiting: gate ok is pending"},
		{"{plan: deploy, name: ok}", "deploy", "abc", "plan deploy is waiting: gate ok is pending"},
	} {
		t.Run(test.gate, func(t *testing.T) {
			w := newWorld(t, staged)
			w.annotate(vocabulary.PlanGates, "["+test.gate+"]")
			w.settle(t)
			if got := w.applied(); got != test.applied || w.instance.Status.WaitingFor != test.sentence {
				t.Fatalf("%q is applied, and it says %q", got, w.instance.Status.WaitingFor)
			}
			w.says(t, "Reconciling", rollout.ReasonGate)
			w.verdict(t, test.stage, rollout.Refused)
			w.settle(t)
			w.says(t, "Stalled", rollout.ReasonGateRefused)
			if got := w.applied(); got != test.applied || !strings.HasSuffix(w.instance.Status.WaitingFor, "is stopped: gate ok was refused: says the test") {
				t.Fatalf("refused: %q is applied, and it says %q", got, w.instance.Status.WaitingFor)
			}
			w.verdict(t, test.stage, rollout.Passed)
			w.settle(t)
			if got := w.plans(); got != "deploy Complete" || w.applied() != "abc" {
				t.Fatalf("%s; %q is applied", got, w.applied())
			}
		})
	}
}

// TestARefusalThatIsNoted: a gate whose refusal does not stop the plan lets it through.
func TestARefusalThatIsNoted(t *testing.T) {
	w := newWorld(t, staged)
	w.annotate(vocabulary.PlanGates, "[{plan: deploy, phase: one, name: ok, onRefusal: Continue}]")
	w.settle(t)
	w.verdict(t, "deploy/one", rollout.Refused)
	w.settle(t)
	if got := w.plans(); got != "deploy Complete" {
		t.Fatal(got)
	}
}

// TestEachExecutionAsksAgain: the gate of an execution says nothing about the next one, which
// deletes it. One of a plan that does not run is not asked about.
func TestEachExecutionAsksAgain(t *testing.T) {
	w := newWorld(t, staged)
	w.annotate(vocabulary.PlanGates, "[{plan: deploy, name: ok}, {plan: update, when: Before, name: ok}]")
	w.settle(t)
	first := w.gates[0].Name
	w.annotate(vocabulary.AbandonPlan, w.uid())
	w.settle(t)
	w.annotate(vocabulary.RetryPlan, w.uid())
	w.settle(t)
	if len(w.gates) != 1 || w.gates[0].Name == first {
		t.Fatalf("%+v, the first was %s", w.gates, first)
	}
	w.verdict(t, "deploy", rollout.Passed)
	w.settle(t)
	if got := w.plans(); got != "deploy Abandoned, deploy Complete" {
		t.Fatal(got)
	}
}

// TestAGateThatCannotBeCreated: the plan waits, says why, and tries again.
func TestAGateThatCannotBeCreated(t *testing.T) {
	w := newWorld(t, staged)
	w.annotate(vocabulary.PlanGates, "[{plan: deploy, when: Before, name: ok}]")
	o, d := w.decide()
	w.writeStatus(o, d)
	w.refuses[d.Writes[0].Ref] = write.Refusal{Reason: "quota exceeded"}
	w.settle(t)
	if got := w.instance.Status.WaitingFor; !strings.HasSuffix(got, ": quota exceeded") {
		t.Fatal(got)
	}
	_, d = w.decide()
	if wait := d.Wake.Sub(w.now); len(d.Writes) > 0 || wait <= 0 || wait > time.Minute+time.Second {
		t.Fatalf("it wakes after %s, and makes %d writes", wait, len(d.Writes))
	}
	clear(w.refuses)
	w.now = d.Wake
	w.settle(t)
	if len(w.gates) != 1 || w.instance.Status.WaitingFor != "plan deploy is waiting: gate ok is pending" {
		t.Fatalf("%+v, %s", w.gates, w.instance.Status.WaitingFor)
	}
}

// TestWrongGates: an annotation that is wrong begins nothing, and holds what runs, until it
// is corrected.
func TestWrongGates(t *testing.T) {
	for text, want := range map[string]string{
		"ok":                                                        "must be a list such as",
		"[{plan: deploy, title: ok}]":                               `unknown field "title"`,
		"[{plan: deploy, name: Ok!}]":                               "gate 1: name: ",
		"[{name: ok}]":                                              "gate 1: plan: must be",
		"[{plan: deploi, name: ok}]":                                "gate 1: plan: OperatorVersion app-1 has no plan ",
		"[{plan: deploy, step: a, name: ok}]":                       "gate 1: phase: must be",
		"[{plan: deploy, phase: three, name: ok}]":                  "gate 1: phase: plan deploy has no phase ",
		"[{plan: deploy, phase: two, step: a, name: ok}]":           "gate 1: step: phase two of plan deploy has no step ",
		"[{plan: deploy, name: ok, when: later}]":                   "gate 1: when: ",
		"[{plan: deploy, name: ok, onRefusal: Rollback}]":           "gate 1: onRefusal: must be Stop or Continue: a plan has no way back",
		"[{plan: deploy, name: ok, onRefusal: Ignore}]":             "gate 1: onRefusal: ",
		"[{plan: deploy, name: a}, {plan: deploy, name: a}]":        "gate 2: is listed twice",
		"[" + strings.Repeat("{plan: deploy, name: a}, ", 51) + "]": "has 51 gates; it may have 50",
		strings.Repeat(" ", 16<<10) + "[]":                          "",
		"[" + strings.Repeat("x", 16<<10) + "]":                     "bytes; it may have",
	} {
		w := newWorld(t, staged)
		w.annotate(vocabulary.PlanGates, text)
		w.settle(t)
		if want == "" {
			continue
		}
		if got := w.instance.Status.WaitingFor; !strings.Contains(got, "annotation spillway.dev/gates: ") || !strings.Contains(got, want) || len(w.objects) > 0 {
			t.Errorf("%.40s: %s", text, got)
		}
		w.says(t, "Stalled", ReasonInvalid)
	}
	w := newWorld(t, staged)
	w.annotate(vocabulary.PlanGates, "[{plan: deploy, phase: one, step: a, name: ok}]")
	w.settle(t)
	w.annotate(vocabulary.PlanGates, "[{plan: deploy, phase: uno, step: a, name: ok}]")
	w.settle(t)
	w.says(t, "Stalled", ReasonInvalid)
	if got := w.applied(); got != "a" {
		t.Errorf("%q is applied", got)
	}
	w.annotate(vocabulary.PlanGates, "")
	w.settle(t)
	if got := w.plans(); got != "deploy Complete" {
		t.Error(got)
	}
}

// applied are the names of the objects, in order.
func (w *world) applied() string {
	var names []string
	for ref := range w.objects {
		names = append(names, ref.Name)
	}
	slices.Sort(names)
	return strings.Join(names, "")
}

func (w *world) says(t *testing.T, condition string, reason rollout.Reason) {
	t.Helper()
	for _, c := range w.instance.Status.Conditions {
		if c.Type == condition && c.Status == "True" && c.Reason == string(reason) {
			return
		}
	}
	t.Errorf("it is not %s for %s: %+v", condition, reason, w.instance.Status.Conditions)
}

// someGates are gates at places of the plans, chosen at random.
func (s *simulation) someGates() string {
	var gates []string
	for _, plan := range []string{"deploy", "update", "upgrade", "paint"} {
		for _, unit := range []string{"", ", phase: one", ", phase: two", ", phase: one, step: app", ", phase: three, step: use"} {
			if s.chance(0.15) {
				gates = append(gates, fmt.Sprintf("{plan: %s%s, name: ok, when: %s}", plan, unit, []string{"Before", "After"}[s.rnd.IntN(2)]))
			}
		}
	}
	return "[" + strings.Join(gates, ", ") + "]"
}

// decideGates lets users decide gates: at random, and in the end each of them.
func (s *simulation) decideGates(storm bool) {
	s.gates = slices.Clone(s.gates)
	for i := range s.gates {
		if g := &s.gates[i]; g.Verdict != rollout.Passed && (!storm || s.chance(0.1)) {
			if g.Verdict = rollout.Passed; storm && s.chance(0.2) {
				g.Verdict = rollout.Refused
			}
			g.ResourceVersion += "1"
			s.notef("gate %s: %v", g.Stage, g.Verdict)
		}
	}
}

// checkGates: nothing is permitted at a step before which a gate has not passed. It knows
// the order of the units from the plan, and nothing of the engine.
func (s *simulation) checkGates(o *Snapshot, writes []write.Write) {
	e := s.instance.Status.Running()
	if e == nil {
		return
	}
	for _, w := range writes {
		if len(w.Path) == 0 || w.Act == write.CreateGate || w.Act == write.DeleteGate {
			continue
		}
		if before := "{plan: " + e.Plan + ", name: ok, when: Before}"; strings.Contains(vocabulary.PlanGates.Get(o.Instance.Annotations), before) && !s.passed(o.Gates, e.Plan, string(e.UID)) {
			s.t.Errorf("%s %s although the gate before the plan has not passed", w.Act, w.Ref)
		}
		unit := e.Plan + "/" + w.Path[0]
		before := "{plan: " + e.Plan + ", phase: " + w.Path[0] + ", name: ok, when: Before}"
		if strings.Contains(vocabulary.PlanGates.Get(o.Instance.Annotations), before) && !s.passed(o.Gates, unit, string(e.UID)) {
			s.t.Errorf("%s %s although the gate before phase %s has not passed", w.Act, w.Ref, w.Path[0])
		}
	}
}

func (s *simulation) passed(gates ask.Gates, unit, uid string) bool {
	return slices.ContainsFunc(gates, func(g ask.Gate) bool { return g.Stage == unit && g.Revision == uid && g.Verdict == rollout.Passed })
}
