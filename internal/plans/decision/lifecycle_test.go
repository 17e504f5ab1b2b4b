package decision

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/execution"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// secondVersion is simple, one version on, with a plan for upgrades.
var secondVersion = strings.Replace(simple, "update: *p", "update: *p\n  upgrade: *p", 1)

// withCleanup is simple with a plan that removes.
var withCleanup = strings.Replace(simple, "update: *p", "update: *p\n  cleanup: *p", 1)

// TestRestart is the test that the redesign asks for: nothing is missed that
// changes while the manager is down. Each story begins after deploy is complete,
// while no manager runs; then the manager starts.
func TestRestart(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile func(*world)
		want      string
	}{
		"nothing":                          {func(*world) {}, ""},
		"a parameter":                      {func(w *world) { w.set(parameters("NODES", "4")) }, ", update Complete"},
		"its default":                      {func(w *world) { w.set(parameters("NODES", "3")) }, ""},
		"its default, and another trigger": {func(w *world) { w.set(parameters("COLOR", "red", "SIZE", "l")) }, ", resize Complete"},
		"two changes in a row":             {func(w *world) { w.set(parameters("NODES", "4")); w.set(parameters("NODES", "5", "COLOR", "blue")) }, ", paint Complete"},
		"a change taken back": {func(w *world) {
			w.set(parameters("NODES", "4"))
			w.set(func(s *v1beta1.InstanceSpec) { s.Parameters = nil })
		}, ""},
		"an upgrade": {func(w *world) { w.set(func(s *v1beta1.InstanceSpec) { s.OperatorVersion.Name = "app-2" }) }, ", upgrade Complete"},
		"a wish":     {func(w *world) { w.set(func(s *v1beta1.InstanceSpec) { s.PlanExecution.PlanName = "backup" }) }, ", backup Complete"},
		"a change, then a wish": {func(w *world) {
			w.set(parameters("NODES", "4"))
			w.set(func(s *v1beta1.InstanceSpec) { s.PlanExecution.PlanName = "backup" })
		}, ", update Complete, backup Complete"},
		"a label": {func(w *world) { w.instance.Labels = map[string]string{"a": "b"}; w.bump() }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, simple, secondVersion)
			w.settle(t)
			test.meanwhile(w)
			w.settle(t)
			if got, want := w.plans(), "deploy Complete"+test.want; got != want {
				t.Errorf("ran %q, want %q", got, want)
			}
			if w.pass() {
				t.Error("it writes though nothing changed")
			}
		})
	}
}

// TestDefaults follows one parameter through an upgrade that changes its default. A plan runs
// when the value changes, and only then; what is recorded follows the spec.
func TestDefaults(t *testing.T) {
	next := strings.Replace(secondVersion, `"3"`, `"5"`, 1)
	w := newWorld(t, simple, next, strings.Replace(next, `"5"`, `"7"`, 1))
	unset := func(s *v1beta1.InstanceSpec) { s.Parameters = nil }
	upgrade := func(name string) func(*v1beta1.InstanceSpec) {
		return func(s *v1beta1.InstanceSpec) { s.OperatorVersion.Name = name }
	}
	ran := ""
	for _, step := range []struct {
		change func(*v1beta1.InstanceSpec)
		runs   string
	}{
		{func(*v1beta1.InstanceSpec) {}, "deploy"},
		{parameters("NODES", "3"), ""},
		{unset, ""},
		{upgrade("app-2"), "upgrade"},
		{parameters("NODES", "5"), ""},
		{parameters("NODES", "3"), "update"},
		{parameters("NODES", "5"), "update"},
		{unset, ""},
		{upgrade("app-3"), "upgrade"},
		{parameters("NODES", "5"), "update"},
	} {
		w.set(step.change)
		w.settle(t)
		if step.runs != "" {
			ran = strings.TrimPrefix(ran+", "+step.runs+" Complete", ", ")
		}
		if got := w.plans(); got != ran {
			t.Fatalf("with %+v it ran %q, want %q", w.instance.Spec, got, ran)
		}
		if s := &w.instance.Status; !choice.SameTarget("shop", s.LastAppliedInstanceSpec, &w.instance.Spec) || s.LastAppliedContentHash != versionOf(w.versions[w.instance.Spec.OperatorVersion.Name]).Hash {
			t.Fatalf("with %+v, %+v is recorded, of %s", w.instance.Spec, s.LastAppliedInstanceSpec, s.LastAppliedContentHash)
		}
		if w.pass() {
			t.Fatal("it writes though nothing changed")
		}
	}
}

// TestADefaultThatWasEdited: a plan has applied the default of another time.
func TestADefaultThatWasEdited(t *testing.T) {
	w := newWorld(t, simple)
	w.settle(t)
	w.install(t, "app-1", strings.Replace(simple, `"3"`, `"5"`, 1))
	w.settle(t)
	w.set(parameters("NODES", "5"))
	w.settle(t)
	if got := w.plans(); got != "deploy Complete, update Complete" {
		t.Fatal(got)
	}
	w.set(func(s *v1beta1.InstanceSpec) { s.Parameters = nil })
	w.settle(t)
	if got := w.plans(); got != "deploy Complete, update Complete" {
		t.Error(got)
	}
}

// TestNotAllowed: packages refuse a change by a plan that fails. Setting the parameter back
// is enough, whether that is to its default or to nothing.
func TestNotAllowed(t *testing.T) {
	refusing := strings.Replace(simple, "  resize: *p", "  resize: {phases: [{name: no, steps: [{name: no, tasks: [no]}]}]}", 1)
	refusing = strings.Replace(refusing, "templates:", "- {name: no, kind: Dummy, spec: {wantErr: true, fatal: true}}\ntemplates:", 1)
	for name, back := range map[string]func(*v1beta1.InstanceSpec){
		"to its default": parameters("SIZE", "s"),
		"to nothing":     func(s *v1beta1.InstanceSpec) { s.Parameters = nil },
	} {
		w := newWorld(t, refusing)
		w.settle(t)
		w.set(parameters("SIZE", "l"))
		w.settle(t)
		if got := w.plans(); got != "deploy Complete, resize Failed" {
			t.Fatal(got)
		}
		w.set(back)
		w.settle(t)
		if s := &w.instance.Status; w.plans() != "deploy Complete, resize Failed" || s.Attempted != nil || s.AggregatedStatus.Status != v1beta1.Complete {
			t.Errorf("%s: it ran %s, and is %+v", name, w.plans(), s.AggregatedStatus)
		}
		w.says(t, "Ready", ReasonIdle)
	}
}

func TestDeletedWhileNoManagerRuns(t *testing.T) {
	w := newWorld(t, withCleanup)
	w.settle(t)
	w.delete()
	w.settle(t)
	if got := w.plans(); got != "deploy Complete, cleanup Complete" || len(w.instance.Finalizers) > 0 {
		t.Errorf("%q, finalizers %v", got, w.instance.Finalizers)
	}
}

func (w *world) delete() {
	now := metav1.NewTime(w.now)
	w.instance.DeletionTimestamp = &now
	w.bump()
}

func (w *world) annotate(key vocabulary.Key, value string) {
	w.instance.Annotations = maps.Clone(w.instance.Annotations)
	if w.instance.Annotations == nil {
		w.instance.Annotations = map[string]string{}
	}
	w.instance.Annotations[key.Native] = value
	w.bump()
}

func (w *world) uid() string { return string(w.instance.Status.Execution.UID) }

// stuckWorld has a deployed Instance, and an update that waits for a Deployment.
func stuckWorld(t *testing.T, versions ...string) *world {
	t.Helper()
	w := newWorld(t, versions...)
	w.settle(t)
	w.unhealthy["app"] = true
	w.set(parameters("NODES", "4"))
	w.settle(t)
	if got := w.instance.Status.AggregatedStatus; got.ActivePlan != "update" || got.Status != v1beta1.InProgress {
		t.Fatalf("%+v", got)
	}
	return w
}

func TestWaitingWritesNothing(t *testing.T) {
	w := stuckWorld(t, simple)
	_, p := w.decide()
	if want := w.now.Add(quietFor); !p.Wake.Equal(want) || p.Changes {
		t.Errorf("it wakes at %s, and writes: %v", p.Wake, p.Changes)
	}
	w.now = p.Wake
	w.settle(t)
	for range 3 {
		w.now = w.now.Add(time.Hour)
		if w.pass() {
			t.Fatal("it writes while it waits")
		}
	}
	s := w.instance.Status
	if s.Place != "main/app" || s.WaitingFor != "task app is updating: waiting for Deployment app: Replicas: 0/1" {
		t.Errorf("%s: %s", s.Place, s.WaitingFor)
	}
	w.recover(t)
	if got := w.plans(); got != "deploy Complete, update Complete" {
		t.Error(got)
	}
}

// recover lets the Deployment be ready.
func (w *world) recover(t *testing.T) {
	t.Helper()
	delete(w.unhealthy, "app")
	for ref := range w.objects {
		w.grow(ref)
	}
	w.settle(t)
}

func TestAbandon(t *testing.T) {
	w := stuckWorld(t, simple)
	w.annotate(vocabulary.AbandonPlan, fmt.Sprintf(`{"uid":%q,"by":"alice","reason":"no quota"}`, w.uid()))
	w.settle(t)
	s := w.instance.Status
	if s.AggregatedStatus != (v1beta1.AggregatedStatus{Status: v1beta1.FatalError}) || s.PlanStatus["update"].Status != v1beta1.FatalError {
		t.Errorf("%+v", s.AggregatedStatus)
	}
	if s.WaitingFor != "plan update is stopped: abandoned by alice: no quota" {
		t.Error(s.WaitingFor)
	}
	if s.LastAppliedInstanceSpec.Parameters["NODES"] != "" {
		t.Error("the snapshot moved")
	}
	w.set(func(s *v1beta1.InstanceSpec) { s.Parameters = nil })
	w.recover(t)
	if got := w.plans(); got != "deploy Complete, update Abandoned, update Complete" {
		t.Errorf("what is half there is not put back: %s", got)
	}
	if w.instance.Status.AggregatedStatus.Status != v1beta1.Complete {
		t.Errorf("%+v", w.instance.Status.AggregatedStatus)
	}
}

func TestRetryKeepsWhatIsComplete(t *testing.T) {
	w := newWorld(t, `
tasks:
- {name: a, kind: Apply, spec: {resources: [a.yaml]}}
- {name: app, kind: Apply, spec: {resources: [app.yaml]}}
templates:
  a.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"
  app.yaml: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: app}, spec: {replicas: 1}}"
plans: {deploy: {strategy: serial, phases: [{name: p, strategy: serial, steps: [{name: a, tasks: [a]}, {name: b, timeout: 1m, tasks: [app]}]}]}}
`)
	w.unhealthy["app"] = true
	w.settle(t)
	w.now = w.now.Add(2 * time.Minute)
	w.settle(t)
	if got := w.plans(); got != "deploy Failed" {
		t.Fatal(got)
	}
	if m := w.instance.Status.WaitingFor; m != "plan deploy failed: step b failed: not complete after 1m (timeout)" {
		t.Error(m)
	}
	before := w.instance.Status.PlanStatus["deploy"].Phases[0].Steps[0]
	w.annotate(vocabulary.RetryPlan, w.uid())
	w.recover(t)
	if got := w.plans(); got != "deploy Failed, deploy Complete" {
		t.Fatal(got)
	}
	if got := w.instance.Status.PlanStatus["deploy"].Phases[0].Steps[0]; *got.FinishedAt != *before.FinishedAt {
		t.Error("a step that was complete was taken again")
	}
	if got := strings.Join(w.story, ", "); got != "create ConfigMap a, create Deployment app, update Deployment app" {
		t.Error(got)
	}
	if w.pass() {
		t.Error("the annotation is followed twice")
	}
}

func TestSupersede(t *testing.T) {
	w := stuckWorld(t, simple)
	w.annotate(vocabulary.SupersedePlan, w.uid())
	if w.pass() {
		t.Fatal("nothing supersedes the plan yet")
	}
	w.set(parameters("COLOR", "blue", "NODES", "3"))
	w.recover(t)
	if got := w.plans(); got != "deploy Complete, update Superseded, paint Complete" {
		t.Error(got)
	}
}

// TestChangedDuringAPlan: where no guard refuses it, the same plan begins again,
// and another one has its turn.
func TestChangedDuringAPlan(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*v1beta1.InstanceSpec)
		want   string
	}{
		"for the same plan":  {parameters("NODES", "5"), "deploy Complete, update Superseded, update Complete"},
		"for another":        {parameters("COLOR", "blue"), "deploy Complete, update Complete, paint Complete"},
		"an upgrade":         {func(s *v1beta1.InstanceSpec) { s.OperatorVersion.Name = "app-2" }, "deploy Complete, update Complete, upgrade Complete"},
		"a wish for another": {func(s *v1beta1.InstanceSpec) { s.PlanExecution.PlanName = "backup" }, "deploy Complete, update Complete, backup Complete"},
		"a wish for the same, again": {func(s *v1beta1.InstanceSpec) {
			s.PlanExecution = v1beta1.PlanExecution{PlanName: "update", UID: "mine"}
		}, "deploy Complete, update Superseded, update Complete"},
	} {
		t.Run(name, func(t *testing.T) {
			w := stuckWorld(t, simple, secondVersion)
			w.set(test.change)
			w.settle(t)
			w.recover(t)
			if got := w.plans(); got != test.want {
				t.Errorf("ran %q, want %q", got, test.want)
			}
			if w.instance.Spec.PlanExecution != (v1beta1.PlanExecution{}) {
				t.Error("the requested plan is still in the spec")
			}
		})
	}
}

// TestAPlanRunsWithWhatItBeganWith: the OperatorVersion is edited, and the
// parameters too, while a plan runs.
func TestAPlanRunsWithWhatItBeganWith(t *testing.T) {
	w := stuckWorld(t, simple)
	w.install(t, "app-1", strings.ReplaceAll(simple, "name: app}", "name: other}"))
	w.recover(t)
	if got := w.plans(); got != "deploy Complete, update Complete" || strings.Contains(strings.Join(w.story, " "), "other") {
		t.Errorf("%s\n%s", got, strings.Join(w.story, "\n"))
	}
	w.set(parameters("NODES", "7"))
	w.settle(t)
	if !strings.Contains(strings.Join(w.story, " "), "create Deployment other") {
		t.Error("the next plan does not run with what there is now")
	}
}

func TestContentThatIsGone(t *testing.T) {
	w := stuckWorld(t, simple)
	clear(w.pins)
	w.install(t, "app-1", secondVersion)
	w.settle(t)
	if got := w.instance.Status.WaitingFor; got != "the content of OperatorVersion app-1 that plan update began with no longer exists; abandon the plan" {
		t.Error(got)
	}
	w.annotate(vocabulary.AbandonPlan, w.uid())
	w.settle(t)
	if got := w.plans(); got != "deploy Complete, update Abandoned" {
		t.Error(got)
	}
}

func TestCleanup(t *testing.T) {
	for name, test := range map[string]struct {
		before, after func(*world)
		want          string
		stays         bool
	}{
		"after a plan that is stuck": {func(w *world) { w.unhealthy["app"] = true }, func(w *world) { w.unhealthy["app"] = false }, "deploy Superseded, cleanup Complete", false},
		"the version is gone":        {func(*world) {}, func(w *world) { clear(w.versions) }, "deploy Complete", false},
		"the namespace goes too":     {func(*world) {}, func(w *world) { w.goes = true }, "deploy Complete", false},
		"it is stuck":                {func(*world) {}, func(w *world) { w.unhealthy["app"] = true }, "deploy Complete", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, withCleanup)
			test.before(w)
			w.settle(t)
			test.after(w)
			w.delete()
			w.settle(t)
			if got := w.plans(); got != test.want {
				t.Errorf("ran %q, want %q", got, test.want)
			}
			if stays := len(w.instance.Finalizers) > 0; stays != test.stays {
				t.Errorf("finalizers %v", w.instance.Finalizers)
			}
		})
	}
}

// TestCleanupThatFailed keeps the Instance, does not loop, and can be tried again
// or given up.
func TestCleanupThatFailed(t *testing.T) {
	broken := strings.Replace(withCleanup, "cleanup: *p", "cleanup: {phases: [{name: p, steps: [{name: s, tasks: [gone]}]}]}", 1)
	for _, order := range []vocabulary.Key{vocabulary.RetryPlan, vocabulary.AbandonPlan} {
		w := newWorld(t, broken)
		w.settle(t)
		w.delete()
		w.settle(t)
		if got := w.plans(); got != "deploy Complete, cleanup Failed" || len(w.instance.Finalizers) == 0 {
			t.Fatalf("%s, finalizers %v", got, w.instance.Finalizers)
		}
		w.install(t, "app-1", withCleanup)
		if w.pass() {
			t.Fatal("it is retried automatically")
		}
		w.annotate(order, w.uid())
		w.settle(t)
		if len(w.instance.Finalizers) > 0 {
			t.Errorf("%s: it stays", order.Native)
		}
	}
}

// TestTheNamespaceGoesDuringACleanup: nothing can be created there any more.
func TestTheNamespaceGoesDuringACleanup(t *testing.T) {
	w := newWorld(t, withCleanup)
	w.settle(t)
	w.unhealthy["app"] = true
	w.delete()
	w.settle(t)
	w.goes = true
	w.settle(t)
	if got := w.plans(); got != "deploy Complete, cleanup Abandoned" || len(w.instance.Finalizers) > 0 {
		t.Errorf("%s, finalizers %v", got, w.instance.Finalizers)
	}
}

// TestAdopted checks that an Instance that KUDO has installed runs no plan.
func TestAdopted(t *testing.T) {
	for name, test := range map[string]struct {
		left func(*v1beta1.Instance)
		want string
	}{
		"by its status": {func(i *v1beta1.Instance) {
			i.Status.PlanStatus = map[string]v1beta1.PlanStatus{"deploy": {Status: v1beta1.Complete}}
		}, ""},
		"by its annotation": {func(i *v1beta1.Instance) {
			i.Annotations = map[string]string{vocabulary.LastAppliedInstanceState.Native: `{"operatorVersion":{"name":"app-1"},"parameters":{"NODES":"5"}}`}
		}, "update Complete"},
		"in the middle of a plan": {func(i *v1beta1.Instance) {
			i.Status.PlanStatus = map[string]v1beta1.PlanStatus{"deploy": {Status: v1beta1.Complete}, "backup": {Status: v1beta1.InProgress}}
			i.Spec.PlanExecution = v1beta1.PlanExecution{PlanName: "backup", UID: "theirs", Status: v1beta1.InProgress}
		}, "backup Complete"},
		"in the middle of deploy": {func(i *v1beta1.Instance) {
			i.Status.PlanStatus = map[string]v1beta1.PlanStatus{"deploy": {Status: v1beta1.InProgress}}
			i.Spec.PlanExecution = v1beta1.PlanExecution{PlanName: "deploy", UID: "theirs", Status: v1beta1.InProgress}
		}, "deploy Complete"},
		"after a plan": {func(i *v1beta1.Instance) {
			i.Status.PlanStatus = map[string]v1beta1.PlanStatus{"deploy": {Status: v1beta1.Complete}}
			i.Spec.PlanExecution = v1beta1.PlanExecution{PlanName: "deploy", UID: "theirs", Status: v1beta1.Complete}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, simple)
			test.left(w.instance)
			w.settle(t)
			if got := w.plans(); got != test.want {
				t.Errorf("ran %q, want %q", got, test.want)
			}
			if w.instance.Status.LastAppliedInstanceSpec == nil || w.instance.Spec.PlanExecution.PlanName != "" {
				t.Errorf("%+v", w.instance)
			}
		})
	}
}

// TestWishes are spec.planExecution, as far as the controller answers them.
func TestWishes(t *testing.T) {
	for name, test := range map[string]struct {
		wish    v1beta1.PlanExecution
		want    string
		problem string
	}{
		"a plan":           {v1beta1.PlanExecution{PlanName: "backup"}, "deploy Complete, backup Complete", ""},
		"with a uid":       {v1beta1.PlanExecution{PlanName: "backup", UID: "mine"}, "deploy Complete, backup Complete", ""},
		"deploy again":     {v1beta1.PlanExecution{PlanName: "deploy"}, "deploy Complete, deploy Complete", ""},
		"cleanup":          {v1beta1.PlanExecution{PlanName: "cleanup"}, "deploy Complete", "spec.planExecution.planName: plan cleanup runs when the Instance is deleted; name another plan"},
		"none that exists": {v1beta1.PlanExecution{PlanName: "backupp"}, "deploy Complete", "spec.planExecution.planName: OperatorVersion app-1 has no plan backupp; name a plan that it has"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, withCleanup)
			w.settle(t)
			w.set(func(s *v1beta1.InstanceSpec) { s.PlanExecution = test.wish })
			w.settle(t)
			if got := w.plans(); got != test.want {
				t.Errorf("ran %q, want %q", got, test.want)
			}
			if got := w.instance.Status.WaitingFor; got != test.problem {
				t.Errorf("says %q", got)
			}
		})
	}
}

// TestAWishInTheManifestIsOverwritten: an Instance that is created with one is
// deployed.
func TestAWishInTheManifestIsOverwritten(t *testing.T) {
	w := newWorld(t, simple)
	w.instance.Spec.PlanExecution = v1beta1.PlanExecution{PlanName: "backup"}
	w.settle(t)
	if got := w.plans(); got != "deploy Complete" || w.instance.Spec.PlanExecution.PlanName != "" {
		t.Errorf("%s, %+v", got, w.instance.Spec.PlanExecution)
	}
}

func TestTheVersionIsMissing(t *testing.T) {
	w := newWorld(t, simple)
	ov := w.versions["app-1"]
	clear(w.versions)
	w.settle(t)
	if got := w.instance.Status.WaitingFor; got != "OperatorVersion app-1 not found in namespace shop; install it" {
		t.Error(got)
	}
	w.versions["app-1"] = ov
	w.settle(t)
	if got := w.plans(); got != "deploy Complete" {
		t.Error(got)
	}
}

// TestUndoneBy: who writes what is applied next has ended what was not complete. A retry is by who ordered it.
func TestUndoneBy(t *testing.T) {
	noon := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	order := map[string]string{vocabulary.RetryPlan.Native: `{"uid":"u","by":"alice"}`}
	i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(noon), Annotations: order, ManagedFields: []metav1.ManagedFieldsEntry{
		{Manager: "helm", Time: new(metav1.NewTime(noon.Add(time.Second))), FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:parameters":{}}}`)},
		{Manager: "kubectl-label", Time: new(metav1.NewTime(noon.Add(time.Minute))), FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{}}}`)},
		{Manager: "spillway", Subresource: "status", Time: new(metav1.NewTime(noon.Add(time.Minute))), FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:parameters":{}}}`)},
	}}}
	cached := i.DeepCopy()
	Attribute(cached)
	for name, test := range map[string]struct {
		past v1beta1.PastExecution
		next v1beta1.Cause
		want string
	}{
		"parameters":                 {v1beta1.PastExecution{Advances: true, Result: v1beta1.ResultFailed}, v1beta1.CauseParameters, "helm"},
		"a version, while it ran":    {v1beta1.PastExecution{Advances: true, Result: v1beta1.ResultSuperseded}, v1beta1.CauseUpgrade, "helm"},
		"what failed was the first":  {v1beta1.PastExecution{Advances: true, Result: v1beta1.ResultFailed}, v1beta1.CauseCreate, "helm"},
		"it is tried again":          {v1beta1.PastExecution{Advances: true, Result: v1beta1.ResultFailed}, v1beta1.CauseRetry, ""},
		"it was complete":            {v1beta1.PastExecution{Advances: true, Result: v1beta1.ResultComplete}, v1beta1.CauseParameters, ""},
		"it was to apply no changes": {v1beta1.PastExecution{Result: v1beta1.ResultFailed}, v1beta1.CauseParameters, ""},
	} {
		for _, i := range []*v1beta1.Instance{i, cached} {
			d := decider{Snapshot: &Snapshot{}}
			d.Instance, d.Status.History = i, []v1beta1.PastExecution{test.past}
			if got := d.undone(test.next)[0].UndoneBy; got != test.want {
				t.Errorf("%s: %q, want %q", name, got, test.want)
			}
			if by := d.changedBy(test.next); test.next != v1beta1.CauseRetry && by != "helm" || test.next == v1beta1.CauseRetry && by != "alice" {
				t.Errorf("%s: changed by %q", name, by)
			}
		}
	}
}

func TestHistoryIsBounded(t *testing.T) {
	w := newWorld(t, simple)
	w.settle(t)
	for i := range execution.HistoryLimit + 3 {
		w.set(parameters("NODES", fmt.Sprint(i)))
		w.settle(t)
	}
	count := map[string]int{}
	for _, e := range w.instance.Status.History {
		count[e.Plan]++
	}
	if count["update"] != execution.HistoryLimit || count["deploy"] != 1 {
		t.Errorf("%v", count)
	}
	if first := w.instance.Status.History[0]; first.Changed != "NODES" || first.Cause != v1beta1.CauseParameters {
		t.Errorf("%+v", first)
	}
}

// TestAParameterThatMustNotChange: packages let a plan that can never be done say
// so. The Instance is not locked by that, and putting the parameter back fixes it.
func TestAParameterThatMustNotChange(t *testing.T) {
	w := newWorld(t, strings.NewReplacer("\ntasks:", "\ntasks:\n- {name: not-allowed, kind: Dummy, spec: {done: false}}",
		"resize: *p", "resize: {phases: [{name: p, steps: [{name: s, tasks: [not-allowed]}]}]}").Replace(simple))
	w.settle(t)
	w.set(parameters("SIZE", "l"))
	w.settle(t)
	if got := w.instance.Status.WaitingFor; got != "plan resize failed: task not-allowed can never be done: a Dummy is done only if its spec sets done: true" {
		t.Error(got)
	}
	w.set(func(s *v1beta1.InstanceSpec) { s.Parameters = nil })
	w.settle(t)
	if got := w.plans(); got != "deploy Complete, resize Failed" || w.instance.Status.WaitingFor != "" {
		t.Errorf("%s; %s", got, w.instance.Status.WaitingFor)
	}
}

func TestPaused(t *testing.T) {
	w := newWorld(t, simple)
	w.annotate(vocabulary.Paused, "true")
	w.settle(t)
	if got := w.instance.Status; got.PlanStatus["deploy"].Status != v1beta1.Pending || !strings.HasPrefix(got.WaitingFor, "plan deploy is paused") || len(w.objects) > 0 {
		t.Errorf("%s: %s", got.PlanStatus["deploy"].Status, got.WaitingFor)
	}
	w.annotate(vocabulary.Paused, "false")
	w.settle(t)
	if got := w.plans(); got != "deploy Complete" {
		t.Error(got)
	}
}

// TestAChangeThatFailedIsNotForgotten when another plan runs in between.
func TestAChangeThatFailedIsNotForgotten(t *testing.T) {
	for _, touched := range []bool{true, false} {
		w := stuckWorld(t, simple)
		if !touched {
			w.instance.Status.Execution.Touched = false
		}
		w.annotate(vocabulary.AbandonPlan, w.uid())
		w.settle(t)
		delete(w.unhealthy, "app")
		w.set(func(s *v1beta1.InstanceSpec) { s.PlanExecution.PlanName = "backup" })
		w.settle(t)
		if got := w.plans(); got != "deploy Complete, update Abandoned, backup Complete" {
			t.Errorf("it is retried automatically: %s", got)
		}
		if got := w.waitsFor(); got != "plan update is stopped: abandoned" {
			t.Error(got)
		}
		w.set(func(s *v1beta1.InstanceSpec) { s.PlanExecution.PlanName = "update" })
		w.settle(t)
		if got := w.plans(); !strings.HasSuffix(got, "backup Complete, update Complete") || w.waitsFor() != "" || w.instance.Status.LastAppliedInstanceSpec.Parameters["NODES"] != "4" {
			t.Error(got, w.waitsFor())
		}
	}
}

// TestCleanupWithParametersThatAreWrong runs with those that were applied.
func TestCleanupWithParametersThatAreWrong(t *testing.T) {
	w := newWorld(t, strings.Replace(withCleanup, `default: "3"`, `default: "3", value-type: integer`, 1))
	w.settle(t)
	w.set(parameters("NODES", "many"))
	w.settle(t)
	w.delete()
	w.settle(t)
	if got := w.plans(); got != "deploy Complete, cleanup Complete" || len(w.instance.Finalizers) > 0 {
		t.Error(got, w.waitsFor())
	}
}
