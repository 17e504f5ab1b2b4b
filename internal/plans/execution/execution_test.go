package execution

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/task"
	"github.com/spillway-dev/spillway/internal/plans/write"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// tasks are one of each result: fails is tried again, waits has an object to apply.
const tasks = `
tasks:
- {name: done, kind: Dummy, spec: {done: true}}
- {name: fails, kind: Dummy, spec: {wantErr: true}}
- {name: fatal, kind: Dummy, spec: {wantErr: true, fatal: true}}
- {name: waits, kind: Apply, spec: {resources: [a]}}
- {name: deletes, kind: Delete, spec: {resources: [a]}}
templates: {a: '{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}}'}
`

// story is an execution of plan deploy that is advanced again and again.
type story struct {
	now    time.Time
	run    *task.Run
	status *v1beta1.InstanceStatus
}

// begin begins an execution of a plan, given as YAML.
func begin(t *testing.T, plan string) *story {
	t.Helper()
	spec := &v1beta1.OperatorVersionSpec{}
	if err := yaml.UnmarshalStrict([]byte(tasks+"plans: {deploy: "+plan+"}"), spec); err != nil {
		t.Fatal(err)
	}
	e := &v1beta1.Execution{UID: "run", Plan: "deploy", StartedAt: metav1.NewMicroTime(noon)}
	return &story{
		now: noon,
		run: &task.Run{
			Snapshot: &task.Snapshot{
				Instance:  &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web"}},
				Objects:   map[object.Ref]*unstructured.Unstructured{claim: nil},
				Forbidden: map[object.Ref]string{}, Kinds: map[schema.GroupVersionKind]object.Scope{object.ClaimKind.WithVersion("v1"): object.Namespaced},
				Refusals: write.Refusals{},
			},
			Execution: e, Version: &choice.Version{Spec: spec}, Values: map[string]any{},
		},
		status: &v1beta1.InstanceStatus{PlanStatus: map[string]v1beta1.PlanStatus{"deploy": PlanStatus("deploy", spec, v1beta1.Pending)}},
	}
}

// claim is what the templates name.
var claim = object.Ref{GroupVersionKind: object.ClaimKind.WithVersion("v1"), Namespace: "shop", Name: "a"}

// advance advances the execution, after some time.
func (s *story) advance(after time.Duration) Outcome {
	s.now = s.now.Add(after)
	return Advance(s.now, s.run, s.status)
}

// refuse answers a write.
func (s *story) refuse(w *write.Write, refusal write.Refusal) {
	refusal.Execution, refusal.Sent = w.Execution, w.Sent()
	s.run.Snapshot.Refusals.Learn(w, &refusal)
}

// steps are the states of all steps: "main/one COMPLETE".
func (s *story) steps() string {
	var all []string
	for _, phase := range s.status.PlanStatus["deploy"].Phases {
		for _, step := range phase.Steps {
			all = append(all, fmt.Sprintf("%s/%s %s", phase.Name, step.Name, step.Status))
		}
	}
	return strings.Join(all, ", ")
}

// live is the claim as it exists, applied by a step of this execution.
func live(step, phase string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"phase": phase}}}
	u.SetGroupVersionKind(claim.GroupVersionKind)
	u.SetNamespace(claim.Namespace)
	u.SetName(claim.Name)
	u.SetUID("live")
	u.SetAnnotations(map[string]string{
		vocabulary.ExecutionAnnotation: "run", vocabulary.PhaseAnnotation: "main", vocabulary.StepAnnotation: step, vocabulary.Instance.Native: "shop/web",
	})
	return u
}

// plan is one phase with these steps: name and task.
func plan(settings string, steps ...string) string {
	var all []string
	for i, name := range steps {
		all = append(all, fmt.Sprintf("{name: s%d, tasks: [%s]}", i+1, name))
	}
	return "{" + settings + " phases: [{name: main, strategy: serial, steps: [" + strings.Join(all, ", ") + "]}]}"
}

// TestTheOrderOfSteps checks that a step starts only once the one before it is complete,
// and that what needs nothing takes no pass.
func TestTheOrderOfSteps(t *testing.T) {
	s := begin(t, plan("", "done", "waits", "done"))
	out := s.advance(0)
	if got := s.steps(); got != "main/s1 COMPLETE, main/s2 IN_PROGRESS, main/s3 PENDING" || len(out.Writes) != 1 {
		t.Fatalf("%s, %d writes", got, len(out.Writes))
	}
	if inventory := s.status.Inventory; len(inventory) != 1 || !object.EntryRef(inventory[0]).Same(claim) {
		t.Errorf("what is about to be applied is not in the inventory: %+v", inventory)
	}
	if !s.run.Execution.Touched {
		t.Error("it is not noted that something may be applied")
	}
	s.run.Snapshot.Objects[claim] = live("s2", "Pending")
	if s.advance(0); s.steps() != "main/s1 COMPLETE, main/s2 IN_PROGRESS, main/s3 PENDING" {
		t.Fatalf("it does not wait for health: %s", s.steps())
	}
	s.run.Snapshot.Objects[claim] = live("s2", "Bound")
	if out = s.advance(0); s.steps() != "main/s1 COMPLETE, main/s2 COMPLETE, main/s3 COMPLETE" || len(out.Writes) != 0 {
		t.Fatalf("%s, %d writes", s.steps(), len(out.Writes))
	}
	s.run.Snapshot.Objects[claim] = nil // a user deletes it later: what is complete is not started again
	if out = s.advance(0); len(out.Writes) != 0 {
		t.Errorf("a complete step writes %+v", out.Writes)
	}
}

// TestAFailureIsCountedOnce checks that a failure is in the status with the time of the
// next try, and that nothing is tried or counted before that.
func TestAFailureIsCountedOnce(t *testing.T) {
	s := begin(t, plan("", "fails", "done"))
	step := func() v1beta1.StepStatus { return s.status.PlanStatus["deploy"].Phases[0].Steps[0] }
	for i, wait := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		s.advance(0)
		for range 3 {
			s.advance(wait / 4)
		}
		got := step()
		if got.Status != v1beta1.Error || got.Attempts != int32(i+1) || got.RetryAt.Sub(got.FailedAt.Time) != wait || got.Message != "its spec sets wantErr" {
			t.Fatalf("after failure %d: %+v", i+1, got)
		}
		s.now = got.RetryAt.Time
	}
	if s.steps() != "main/s1 ERROR, main/s2 PENDING" {
		t.Error(s.steps())
	}
}

// TestRetriesAreBounded checks the back-off of a step.
func TestRetriesAreBounded(t *testing.T) {
	for failures, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 9: 256 * time.Second, 10: 5 * time.Minute, 1000: 5 * time.Minute} {
		a := &activeStep{status: &v1beta1.StepStatus{Attempts: int32(failures - 1)}}
		if a.failed("m", noon); a.status.RetryAt.Sub(noon) != want {
			t.Errorf("after %d failures it waits %s, want %s", failures, a.status.RetryAt.Sub(noon), want)
		}
	}
}

// TestARefusalIsCountedOnce checks that the answer to one write is one failure, however
// often it is seen.
func TestARefusalIsCountedOnce(t *testing.T) {
	s := begin(t, plan("", "waits"))
	out := s.advance(0)
	s.refuse(&out.Writes[0], write.Refusal{At: noon, Reason: "no quota"})
	for range 3 {
		if out := s.advance(time.Second / 4); len(out.Writes) != 0 {
			t.Fatalf("it is tried again after %s", s.now.Sub(noon))
		}
	}
	step := s.status.PlanStatus["deploy"].Phases[0].Steps[0]
	if step.Attempts != 1 || step.Message != "PersistentVolumeClaim a: no quota" || !step.RetryAt.Equal(new(metav1.NewMicroTime(noon.Add(time.Second)))) {
		t.Errorf("%+v", step)
	}
	if out := s.advance(time.Second / 4); len(out.Writes) != 1 {
		t.Error("it is not tried again")
	}
	s.refuse(&out.Writes[0], write.Refusal{At: s.now, Reason: "no such field", Fatal: true})
	if out := s.advance(0); out.Failed != "no such field" || len(out.Writes) != 0 {
		t.Errorf("what will never be accepted is %+v", out)
	}
}

// TestWhatFailsThePlan checks that the plan fails for good with a task that does, and when
// its time is over; and that it does nothing then.
func TestWhatFailsThePlan(t *testing.T) {
	for name, test := range map[string]struct {
		plan  string
		after time.Duration
		want  string
	}{
		"a task":                   {plan("", "fatal"), 0, "task fatal failed: its spec sets wantErr and fatal"},
		"the time of the plan":     {plan("timeout: 1m,", "waits"), time.Minute, "plan deploy failed: not complete after 1m (timeout)"},
		"not a moment before that": {plan("timeout: 1m,", "waits"), time.Minute - time.Millisecond, ""},
		"no timeout":               {plan("", "waits"), 1000 * time.Hour, ""},
		"a task that is unknown":   {plan("", "none"), 0, "OperatorVersion  has no task none"},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, test.plan)
			out := s.advance(0)
			if test.after > 0 {
				out = s.advance(test.after)
			}
			if out.Failed != test.want || out.Failed != "" && len(out.Writes) > 0 {
				t.Errorf("%q with %d writes, want %q", out.Failed, len(out.Writes), test.want)
			}
		})
	}
}

// TestAPauseStartsNothing checks that a paused Instance is left as it is.
func TestAPauseStartsNothing(t *testing.T) {
	s := begin(t, plan("", "waits", "done"))
	s.run.Snapshot.Instance.Annotations = map[string]string{vocabulary.Paused.Native: "true"}
	if out := s.advance(0); len(out.Writes) != 0 || s.steps() != "main/s1 PENDING, main/s2 PENDING" {
		t.Errorf("%s, %d writes", s.steps(), len(out.Writes))
	}
	s.run.Snapshot.Instance.Annotations = nil
	if out := s.advance(0); len(out.Writes) != 1 {
		t.Errorf("it does not continue: %s", s.steps())
	}
}

// TestTheInventory checks that an object stays in it until it was read and does not exist.
func TestTheInventory(t *testing.T) {
	s := begin(t, plan("", "deletes"))
	s.status.Inventory = []v1beta1.InventoryEntry{{Version: "v1", Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "a"}}
	delete(s.run.Snapshot.Objects, claim)
	if out := s.advance(0); len(out.Needs.Objects) != 1 || len(s.status.Inventory) != 1 {
		t.Fatalf("without having read it: %+v, %v", out.Needs, s.status.Inventory)
	}
	s.run.Snapshot.Objects[claim] = live("s1", "Bound")
	if out := s.advance(0); len(out.Writes) != 1 || len(s.status.Inventory) != 1 {
		t.Fatalf("while it exists: %+v, %v", out.Writes, s.status.Inventory)
	}
	s.run.Snapshot.Objects[claim].SetDeletionTimestamp(&metav1.Time{Time: noon})
	if out := s.advance(0); len(out.Writes) != 0 || len(s.status.Inventory) != 1 {
		t.Fatalf("while it is being deleted: %+v, %v", out.Writes, s.status.Inventory)
	}
	s.run.Snapshot.Objects[claim] = nil
	if s.advance(0); len(s.status.Inventory) != 0 || s.steps() != "main/s1 COMPLETE" {
		t.Fatalf("after that: %v, %s", s.status.Inventory, s.steps())
	}
}

// TestEnded checks that what was in progress gets the final state, and what was complete
// or never ran keeps its own.
func TestEnded(t *testing.T) {
	p := v1beta1.PlanStatus{Phases: []v1beta1.PhaseStatus{{Name: "main", Status: v1beta1.InProgress, Steps: []v1beta1.StepStatus{
		{Name: "a", Status: v1beta1.Complete}, {Name: "b", Status: v1beta1.InProgress},
		{Name: "c", Status: v1beta1.Error, RetryAt: new(metav1.NewMicroTime(noon))}, {Name: "d", Status: v1beta1.Pending},
	}}}}
	p = Ended(p, v1beta1.FatalError, "m")
	got := fmt.Sprint(p.Status, p.Message, p.Phases[0].Status)
	for _, step := range p.Phases[0].Steps {
		got += fmt.Sprint(" ", step.Status, step.RetryAt != nil)
	}
	if want := "FATAL_ERRORmFATAL_ERROR COMPLETEfalse FATAL_ERRORfalse FATAL_ERRORfalse PENDINGfalse"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestKeepComplete checks that a retry repeats what is not complete, and nothing else.
func TestKeepComplete(t *testing.T) {
	at := func(states ...v1beta1.ExecutionStatus) []v1beta1.PhaseStatus {
		p := v1beta1.PhaseStatus{Name: "main"}
		for i, s := range states {
			p.Steps = append(p.Steps, v1beta1.StepStatus{Name: fmt.Sprint(i), Status: s})
		}
		return []v1beta1.PhaseStatus{p}
	}
	phases := at(v1beta1.Pending, v1beta1.Pending, v1beta1.Pending)
	KeepComplete(phases, at(v1beta1.Complete, v1beta1.FatalError))
	if s := phases[0].Steps; s[0].Status != v1beta1.Complete || s[1].Status != v1beta1.Pending || s[2].Status != v1beta1.Pending {
		t.Errorf("%+v", s)
	}
}

// TestTheHistoryIsBounded checks that each plan keeps its newest executions.
func TestTheHistoryIsBounded(t *testing.T) {
	var history []v1beta1.PastExecution
	for i := range 15 {
		for _, name := range []string{"deploy", "backup"} {
			e := &v1beta1.Execution{Plan: name, FinishedAt: new(metav1.NewMicroTime(noon.Add(time.Duration(i) * time.Minute)))}
			history = Record(history, e, nil)
		}
	}
	count := map[string]int{}
	for i, past := range history {
		if count[past.Plan]++; i > 0 && past.FinishedAt.After(history[i-1].FinishedAt.Time) {
			t.Error("the newest is not the first")
		}
	}
	if count["deploy"] != HistoryLimit || count["backup"] != HistoryLimit || !history[0].FinishedAt.Equal(new(metav1.NewMicroTime(noon.Add(14*time.Minute)))) {
		t.Errorf("%v, the first ended at %s", count, history[0].FinishedAt)
	}
}

// TestTheHistoryKeepsWhatWasApplied checks that the specs of executions that advance are
// kept, without the plan that was requested, until those that are newer are too long.
func TestTheHistoryKeepsWhatWasApplied(t *testing.T) {
	var history []v1beta1.PastExecution
	record := func(uid, value string, advances bool) {
		e := &v1beta1.Execution{UID: types.UID(uid), Plan: "deploy", Advances: advances, FinishedAt: new(metav1.NewMicroTime(noon))}
		e.Spec.Parameters, e.Spec.PlanExecution.PlanName = map[string]string{"P": value}, "deploy"
		history = Record(history, e, nil)
	}
	long := strings.Repeat("x", SpecsLimit/2-100)
	for _, test := range []struct {
		uid, value string
		advances   bool
		kept       string
	}{
		{"a", "1", true, "a"}, {"b", "2", false, "a"}, {"c", long, true, "c a"}, {"d", "3", true, "d c a"},
		{"e", long, true, "e d c a"}, {"f", strings.Repeat("x", 200), true, "f e d"},
		{"g", strings.Repeat("x", SpecsLimit), true, ""}, {"h", "4", true, "h"},
	} {
		record(test.uid, test.value, test.advances)
		var kept []string
		for _, past := range history {
			if past.Spec == nil {
				continue
			}
			if kept = append(kept, string(past.UID)); past.Spec.PlanExecution.PlanName != "" || past.Spec.Parameters["P"] == "" {
				t.Errorf("%s: the spec is %+v", past.UID, past.Spec)
			}
		}
		if got := strings.Join(kept, " "); got != test.kept {
			t.Errorf("after %s those of %q are kept, not of %q", test.uid, got, test.kept)
		}
	}
}
