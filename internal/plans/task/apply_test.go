package task

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/write"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

const (
	// ours are the marks of what step one of phase main of this execution has applied.
	ours = "annotations: {kudo.dev/last-plan-execution-uid: run, kudo.dev/phase: main, kudo.dev/step: one, spillway.dev/instance: shop/web}"
	// former are those of an earlier execution.
	former = "annotations: {kudo.dev/last-plan-execution-uid: before, kudo.dev/phase: main, kudo.dev/step: one, spillway.dev/instance: shop/web}"
)

// TestApply checks what one object that is to be applied needs.
func TestApply(t *testing.T) {
	const rendered = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}"
	const adopting = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {spillway.dev/adopt: "true"}}}`
	live := func(metadata string) string {
		return "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, " + metadata + "}}"
	}
	for name, test := range map[string]struct {
		rendered, live string
		immutable      types.UID
		want           string
	}{
		"absent": {want: "Apply ConfigMap a; "},
		"of another Instance, which the template adopts": {
			rendered: adopting, live: live(strings.Replace(ours, "shop/web", "shop/other", 1)),
			want: "blocked: ConfigMap a exists and does not belong to Instance web; to adopt it, annotate it with spillway.dev/adopt=true",
		},
		"of KUDO's other Instance, which the template adopts": {
			rendered: adopting, live: live("labels: {heritage: kudo, kudo.dev/instance: other}"),
			want: "blocked: ConfigMap a exists and does not belong to Instance web; to adopt it, annotate it with spillway.dev/adopt=true",
		},
		"that another Instance has adopted": {
			live: live(`annotations: {spillway.dev/adopt: shop/other}`),
			want: "blocked: ConfigMap a exists and does not belong to Instance web; to adopt it, annotate it with spillway.dev/adopt=true",
		},
		"that this Instance may adopt": {live: live(`annotations: {spillway.dev/adopt: shop/web}`), want: "Apply ConfigMap a; "},
		"with a controller": {
			live: live(`annotations: {spillway.dev/adopt: "true"}, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: d, uid: d, controller: true}]`),
			want: "blocked: ConfigMap a exists and belongs to Deployment d; rename one of the two, or delete it",
		},
		"of an earlier execution":                      {live: live(former), want: "Apply ConfigMap a; "},
		"applied":                                      {live: live(ours), want: "done"},
		"applied by another step of this":              {live: live(strings.Replace(ours, "step: one", "step: two", 1)), want: "Apply ConfigMap a; "},
		"applied, and being deleted":                   {live: live(ours + `, deletionTimestamp: "2026-05-04T09:00:00Z"`), want: "waiting for the old ConfigMap a to be deleted"},
		"without an owner":                             {live: live("labels: {x: y}"), want: "blocked: ConfigMap a exists and does not belong to Instance web; to adopt it, annotate it with spillway.dev/adopt=true"},
		"of another Instance":                          {live: live(strings.Replace(ours, "shop/web", "shop/other", 1)), want: "blocked: ConfigMap a exists and does not belong to Instance web; to adopt it, annotate it with spillway.dev/adopt=true"},
		"without an owner, which a user lets us adopt": {live: live(`annotations: {spillway.dev/adopt: "true"}`), want: "Apply ConfigMap a; "},
		"without an owner, which the template adopts":  {rendered: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {spillway.dev/adopt: "true"}}}`, live: live("labels: {x: z}"), want: "Apply ConfigMap a; "},
		"of KUDO": {live: live("labels: {heritage: kudo, kudo.dev/instance: web}"), want: "Apply ConfigMap a; "},
		"refused, because a field is immutable": {
			live: live(former), immutable: theUID,
			want: "fatal: ConfigMap a: an immutable field would change (it is immutable); to replace the object, annotate it in its template with spillway.dev/on-immutable=recreate",
		},
		"refused, and to be recreated": {
			rendered: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {spillway.dev/on-immutable: recreate}}}",
			live:     live(former), immutable: theUID, want: "Delete ConfigMap a; ",
		},
		"refused for the object before this one": {live: live(former), immutable: "another", want: "Apply ConfigMap a; "},
		"of a kind that does not exist":          {rendered: "{apiVersion: v1, kind: Unknown, metadata: {name: a}}", want: "failed: unknown kind Unknown; install its CustomResourceDefinition"},
		"invalid":                                {rendered: "{apiVersion: v1, kind: ConfigMap}", want: "fatal: template a: document 1: ConfigMap has no metadata.name"},
	} {
		t.Run(name, func(t *testing.T) {
			text := test.rendered
			if text == "" {
				text = rendered
			}
			r := running(t, "tasks: [{name: t, kind: Apply, spec: {resources: [a]}}]\ntemplates: {a: '"+strings.ReplaceAll(text, "'", "''")+"'}")
			if test.live != "" {
				r.exists(t, test.live)
			}
			f := r.settle("t")
			if test.immutable != "" {
				r.refuse(&f.Writes[0], write.Refusal{Reason: "it is immutable", Immutable: test.immutable})
				f = r.settle("t")
			}
			if got := summary(&f); got != test.want {
				t.Errorf("%s\nwant %s", got, test.want)
			}
			preconditioned(t, f.Writes)
		})
	}
}

// TestThePermissionToAdoptEnds checks what is applied of the permission to adopt an object:
// the Instance that adopts it, and afterwards nothing.
func TestThePermissionToAdoptEnds(t *testing.T) {
	const template = "tasks: [{name: t, kind: Apply, spec: {resources: [a]}}]\n" +
		`templates: {a: '{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {spillway.dev/adopt: "true"}}}'}`
	for live, want := range map[string]string{
		"": "", "labels: {x: y}": "shop/web", `annotations: {spillway.dev/adopt: "true"}`: "shop/web", former: "",
	} {
		r := running(t, template)
		if live != "" {
			r.exists(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, "+live+"}}")
		}
		f := r.settle("t")
		if got := f.Writes[0].Object.GetAnnotations()["spillway.dev/adopt"]; got != want {
			t.Errorf("%q: what is applied may be adopted by %q, not %q", live, got, want)
		}
	}
}

// TestARetiredVersion checks that an object in a version that was served once fails the
// plan with the version to use, and that one of a kind that may be installed does not.
func TestARetiredVersion(t *testing.T) {
	for text, want := range map[string]string{
		"{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {name: a}}": "fatal: PodDisruptionBudget a cannot be applied: API version policy/v1beta1 is no longer served; use policy/v1",
		"{apiVersion: apiextensions.k8s.io/v1beta1, kind: CustomResourceDefinition, metadata: {name: a}}": "fatal: CustomResourceDefinition a cannot be applied: API version apiextensions.k8s.io/v1beta1 is no longer served; " +
			"use apiextensions.k8s.io/v1",
		"{apiVersion: policy/v1beta1, kind: PodSecurityPolicy, metadata: {name: a}}": "fatal: PodSecurityPolicy a cannot be applied: Kubernetes no longer has kind PodSecurityPolicy; remove it",
		"{apiVersion: example.com/v2, kind: Thing, metadata: {name: a}}":             "failed: unknown version example.com/v2 of kind Thing; the API server serves example.com/v1",
		"{apiVersion: example.com/v2, kind: Other, metadata: {name: a}}":             "failed: unknown kind Other.example.com; install its CustomResourceDefinition",
	} {
		r := running(t, "tasks: [{name: t, kind: Apply, spec: {resources: [a]}}]\ntemplates: {a: '"+text+"'}")
		r.Snapshot.Kinds[manifest(t, text).GroupVersionKind()] = object.NoSuchKind
		r.Snapshot.Served = map[schema.GroupKind][]string{{Group: "example.com", Kind: "Thing"}: {"example.com/v1"}}
		f := r.settle("t")
		if got := summary(&f); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		if retried := strings.HasPrefix(want, "failed"); retried != (f.Deadline > 0) {
			t.Errorf("%s: the deadline is %s", text, f.Deadline)
		}
	}
}

// TestARetiredVersionIsDeleted checks that Delete finds an object by the version that is
// served: it is the same object.
func TestARetiredVersionIsDeleted(t *testing.T) {
	r := running(t, "tasks: [{name: t, kind: Delete, spec: {resources: [a]}}]\ntemplates: {a: '{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {name: a}}'}")
	r.Snapshot.Kinds[schema.GroupVersionKind{Group: "policy", Version: "v1beta1", Kind: "PodDisruptionBudget"}] = object.NoSuchKind
	r.exists(t, "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a, "+ours+"}}")
	f := r.settle("t")
	if got := summary(&f); got != "Delete PodDisruptionBudget a; " {
		t.Error(got)
	}
}

// TestWhatALaterStepAppliedIsNotAppliedAgain checks that of two steps that apply one object
// the later one has the last word, whichever of them is assessed.
func TestWhatALaterStepAppliedIsNotAppliedAgain(t *testing.T) {
	at := func(minute int) *metav1.MicroTime {
		return new(metav1.NewMicroTime(time.Date(2026, 5, 4, 9, minute, 0, 0, time.UTC)))
	}
	for name, test := range map[string]struct {
		one, two *metav1.MicroTime
		want     string
	}{
		"it started later":   {at(1), at(2), "done"},
		"it started earlier": {at(2), at(1), "Apply ConfigMap a; "},
		"it started with it": {at(1), at(1), "done"}, // else each of them would apply it again and again
		"it never started":   {at(2), nil, "Apply ConfigMap a; "},
	} {
		r := running(t, "tasks: [{name: t, kind: Apply, spec: {resources: [a]}}]\ntemplates: {a: '{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}'}")
		r.exists(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, "+strings.Replace(ours, "step: one", "step: two", 1)+"}}")
		r.StartedAt = func(_, step string) *metav1.MicroTime {
			return map[string]*metav1.MicroTime{"one": test.one, "two": test.two}[step]
		}
		if f := r.settle("t"); summary(&f) != test.want {
			t.Errorf("%s: %s, want %s", name, summary(&f), test.want)
		}
	}
}

// TestFoundationsComeFirst checks that nothing is applied into a Namespace, or of a kind,
// that does not exist yet.
func TestFoundationsComeFirst(t *testing.T) {
	r := running(t, `
tasks: [{name: t, kind: Apply, spec: {resources: [all]}}]
templates:
  all: |
    {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
    ---
    {apiVersion: v1, kind: Namespace, metadata: {name: space}}
`)
	namespace := object.Ref{GroupVersionKind: object.NamespaceKind.WithVersion("v1"), Name: "space"}
	f := r.settle("t")
	if got := summary(&f); got != "Apply Namespace space; " {
		t.Fatal(got)
	}
	u := manifest(t, "{apiVersion: v1, kind: Namespace, metadata: {name: space, "+ours+"}, status: {phase: Terminating}}")
	r.Snapshot.Objects[namespace] = u
	u.SetDeletionTimestamp(&metav1.Time{Time: time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)})
	if f = r.settle("t"); summary(&f) != "waiting for the old Namespace space to be deleted" {
		t.Fatal(summary(&f))
	}
	r.Snapshot.Objects[namespace] = manifest(t, "{apiVersion: v1, kind: Namespace, metadata: {name: space, "+ours+"}, status: {phase: Active}}")
	if f = r.settle("t"); summary(&f) != "Apply ConfigMap a; " {
		t.Fatal(summary(&f))
	}
}

// TestTakeOver checks that the fields that KUDO has applied become those of the Instance
// with the next apply, so that the apply removes what is no longer rendered.
func TestTakeOver(t *testing.T) {
	r := running(t, "tasks: [{name: t, kind: Apply, spec: {resources: [a]}}]\ntemplates: {a: '{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}'}")
	live := r.exists(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {heritage: kudo, kudo.dev/instance: web}}, data: {old: x}}`)
	f := r.settle("t")
	if len(f.Writes) != 1 || f.Writes[0].TakeOver != nil {
		t.Fatalf("it takes over what KUDO does not own: %+v", f.Writes)
	}
	live.SetAnnotations(map[string]string{vocabulary.LastAppliedConfiguration: `{"data":{"old":"x"}}`})
	live.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: vocabulary.KUDOManager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:old":{}}}`),
	}})
	f = r.settle("t")
	if len(f.Writes) != 1 || !strings.Contains(string(f.Writes[0].TakeOver), `"manager":"`+write.FieldOwner("web")+`"`) {
		t.Errorf("it does not take over what KUDO has applied: %s", f.Writes[0].TakeOver)
	}
}

// TestChangingOverReplacesNoPod checks that the Pod template of a workload stays as KUDO
// has left it, until its Pods are replaced for another reason.
func TestChangingOverReplacesNoPod(t *testing.T) {
	const live = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, labels: {heritage: kudo, kudo.dev/instance: web}},
	  spec: {template: {metadata: {annotations: {kudo.dev/operator-version: "1", kudo.dev/dependencies-hash: h}}}}}`
	for name, test := range map[string]struct {
		version, live string
		hash          string
		tracked       bool
	}{
		"the same OperatorVersion":         {version: "1", live: live, hash: "h"},
		"another one":                      {version: "2", live: live, tracked: true},
		"a new workload":                   {version: "1", tracked: true},
		"a workload that is tracked":       {version: "1", live: strings.Replace(live, "labels:", `annotations: {spillway.dev/update-on-config-change: "true"}, labels:`, 1), hash: "h", tracked: true},
		"a workload that KUDO never wrote": {version: "1", live: strings.Replace(live, "kudo.dev/dependencies-hash: h", "x: z", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			r := running(t, `version: "`+test.version+`"
tasks: [{name: t, kind: Apply, spec: {resources: [a]}}]
templates: {a: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {metadata: {}, spec: {containers: []}}}}'}`)
			if test.live != "" {
				r.exists(t, test.live)
			}
			f := r.settle("t")
			if len(f.Writes) != 1 {
				t.Fatal(summary(&f))
			}
			u := f.Writes[0].Object
			if got := templateAnnotations(u)[vocabulary.DependenciesHash]; got != test.hash {
				t.Errorf("the template has hash %q, want %q", got, test.hash)
			}
			if tracked := vocabulary.ConfigTracked.Get(u.GetAnnotations()) == "true"; tracked != test.tracked {
				t.Errorf("tracked %v, want %v", tracked, test.tracked)
			}
		})
	}
}

// TestAJobThatDiffersInOurMarksAloneStays checks that the version on the template of a Job, which
// cannot change, stays over an upgrade, and that a new Job has the new one.
func TestAJobThatDiffersInOurMarksAloneStays(t *testing.T) {
	for live, want := range map[string]string{
		"": "2", `{apiVersion: batch/v1, kind: Job, metadata: {name: a, ` + former + `}, spec: {template: {metadata: {annotations: {kudo.dev/operator-version: "1"}}}}}`: "1",
	} {
		r := running(t, `version: "2"
tasks: [{name: t, kind: Apply, spec: {resources: [a]}}]
templates: {a: '{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {template: {spec: {containers: []}}}}'}`)
		if live != "" {
			r.exists(t, live)
		}
		f := r.settle("t")
		if got := templateAnnotations(f.Writes[0].Object)[vocabulary.OperatorVersionAnnotation]; got != want {
			t.Errorf("the template has version %q, want %q", got, want)
		}
	}
}

// TestGeneratedValuesStay checks that a Secret gets a random value for each key that has
// none, and never a second one.
func TestGeneratedValuesStay(t *testing.T) {
	const version = "tasks: [{name: t, kind: Apply, spec: {resources: [a]}}]\ntemplates: {a: '{apiVersion: v1, kind: Secret, metadata: {name: a, annotations: {spillway.dev/generate-once: \"%\"}}}'}"
	for name, test := range map[string]struct{ value, data, want string }{
		"none exists":       {"p=8, t=4", "", "map[p:8 t:4]"},
		"one exists":        {"p=8, t=4", "data: {p: eA==}", "map[t:4]"},
		"all exist":         {"p=8, t=4", "data: {p: eA==, t: eA==}", "done"},
		"no length":         {"p", "", "fatal"},
		"a length too long": {"p=1025", "", "fatal"},
		"a length of zero":  {"p=0", "", "fatal"},
	} {
		t.Run(name, func(t *testing.T) {
			r := running(t, strings.Replace(version, "%", test.value, 1))
			if test.data != "" {
				r.exists(t, "{apiVersion: v1, kind: Secret, metadata: {name: a, "+ours+"}, "+test.data+"}")
			}
			f := r.settle("t")
			var got string
			switch {
			case f.Fatal != "":
				got = "fatal"
			case f.IsDone():
				got = "done"
			default:
				got = fmt.Sprint(f.Writes[0].Generate)
			}
			if got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// TestDelete checks that a Delete is done only when all its objects were read and do not
// exist.
func TestDelete(t *testing.T) {
	const live = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a%}}"
	for name, test := range map[string]struct {
		template, live, want string
		forbidden            bool
	}{
		"absent":                               {want: "done"},
		"of the Instance":                      {live: strings.Replace(live, "%", ", "+ours, 1), want: "Delete ConfigMap a; "},
		"of no owner":                          {live: strings.Replace(live, "%", "", 1), want: "done; ConfigMap a is not deleted: it does not belong to Instance web"},
		"of another client, and being deleted": {live: strings.Replace(live, "%", `, deletionTimestamp: "2026-05-04T09:00:00Z", finalizers: [x]`, 1), want: "done; ConfigMap a is not deleted: it does not belong to Instance web"},
		"of another Instance":                  {live: strings.Replace(live, "%", ", "+strings.Replace(ours, "shop/web", "shop/other", 1), 1), want: "done; ConfigMap a is not deleted: it does not belong to Instance web"},
		"with a controller": {
			live: strings.Replace(live, "%", `, annotations: {spillway.dev/adopt: "true"}, ownerReferences: [{apiVersion: v1, kind: Instance, name: other, uid: o, controller: true}]`, 1),
			want: "done; ConfigMap a is not deleted: it belongs to Instance other",
		},
		"of no owner, which a user lets us adopt": {live: strings.Replace(live, "%", `, annotations: {spillway.dev/adopt: "true"}`, 1), want: "Delete ConfigMap a; "},
		"that KUDO applied":                       {live: strings.Replace(live, "%", ", labels: {heritage: kudo, kudo.dev/instance: web}", 1), want: "Delete ConfigMap a; "},
		"being deleted":                           {live: strings.Replace(live, "%", ", "+ours+`, deletionTimestamp: "2026-05-04T09:00:00Z"`, 1), want: "waiting for ConfigMap a to be deleted"},
		"being deleted, and used":                 {live: strings.Replace(live, "%", ", "+ours+`, deletionTimestamp: "2026-05-04T09:00:00Z", finalizers: [kubernetes.io/pvc-protection]`, 1), want: "waiting for ConfigMap a to be deleted; Pods use it"},
		"being deleted, and held":                 {live: strings.Replace(live, "%", ", "+ours+`, deletionTimestamp: "2026-05-04T09:00:00Z", finalizers: [foregroundDeletion, example.com/a, example.com/b]`, 1), want: "waiting for ConfigMap a to be deleted; it has the finalizer example.com/a, example.com/b"},
		"that must not be read":                   {forbidden: true, want: "failed: no permission"},
		"of a kind that is not known":             {template: "{apiVersion: v1, kind: Unknown, metadata: {name: a}}", want: "done"},
		"named in another namespace":              {template: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: kube-system}}", live: strings.Replace(live, "%", ", "+ours, 1), want: "Delete ConfigMap a; "},
		"that the template cannot say":            {template: "{apiVersion: v1, kind: ConfigMap}", want: "fatal: template a: document 1: ConfigMap has no metadata.name"},
	} {
		t.Run(name, func(t *testing.T) {
			template := test.template
			if template == "" {
				template = strings.Replace(live, "%", "", 1)
			}
			r := running(t, "tasks: [{name: t, kind: Delete, spec: {resources: [a]}}]\ntemplates: {a: '"+template+"'}")
			if test.live != "" {
				r.exists(t, test.live)
			}
			if test.forbidden {
				r.Snapshot.Forbidden[refTo("v1", "ConfigMap", "a")] = "no permission"
			}
			f := r.settle("t")
			if got := summary(&f); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
			preconditioned(t, f.Writes)
			for _, ref := range append(f.Removes, refsOf(f.Writes)...) {
				if ref.Namespace != "shop" {
					t.Errorf("it reaches into namespace %s", ref.Namespace)
				}
			}
		})
	}
}

// TestToggle checks that only a parameter that is true or false decides: what is neither
// must not delete.
func TestToggle(t *testing.T) {
	for name, test := range map[string]struct {
		value any
		want  string
	}{
		"true":              {"true", "done"},
		"1":                 {"1", "done"},
		"false":             {"false", "Delete ConfigMap a; "},
		"empty":             {"", "fatal: task t: parameter SWITCH must be true or false"},
		"a word":            {"off", "fatal: task t: parameter SWITCH must be true or false"},
		"no string":         {[]any{"false"}, "fatal: task t: parameter SWITCH must be true or false"},
		"no such parameter": {nil, "fatal: task t: OperatorVersion  has no parameter SWITCH"},
	} {
		t.Run(name, func(t *testing.T) {
			r := running(t, "tasks: [{name: t, kind: Toggle, spec: {parameter: SWITCH, resources: [a]}}]\ntemplates: {a: '{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}'}")
			r.exists(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, "+ours+"}}")
			if test.value != nil {
				r.Values["SWITCH"] = test.value
			}
			f := r.settle("t")
			if got := summary(&f); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
			preconditioned(t, f.Writes)
		})
	}
}

// TestPrune checks that only what the Instance owns, what no plan renders, and what holds
// no data is deleted; and nothing while any of that is not known.
func TestPrune(t *testing.T) {
	const version = `
tasks: [{name: t, kind: Apply, spec: {resources: [a]}}, {name: u, kind: Apply, spec: {resources: [b]}}]
templates: {a: '{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}', b: '{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}'}
plans: {deploy: {phases: [{name: main, steps: [{name: one, tasks: [t]}]}]}, backup: {phases: [{name: main, steps: [{name: one, tasks: [u]}]}]}}`
	configMap := func(name, metadata string) string {
		return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", " + metadata + "}}"
	}
	entry := v1beta1.InventoryEntry{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "old"}
	for name, test := range map[string]struct {
		live   string
		entry  v1beta1.InventoryEntry
		change func(*Run)
		want   string
	}{
		"it is not rendered":           {live: configMap("old", former), want: "Delete ConfigMap old; "},
		"it does not exist":            {want: "done"},
		"it is being deleted":          {live: configMap("old", former+`, deletionTimestamp: "2026-05-04T09:00:00Z"`), want: "waiting for ConfigMap old to be deleted"},
		"it is another client's":       {live: configMap("old", "labels: {x: z}"), want: "done"},
		"a user keeps it":              {live: configMap("old", strings.Replace(former, "{", `{spillway.dev/prune: "false", `, 1)), want: "done"},
		"this plan renders it":         {entry: v1beta1.InventoryEntry{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "a"}, live: configMap("a", former), want: "done"},
		"another plan renders it":      {entry: v1beta1.InventoryEntry{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "b"}, live: configMap("b", former), want: "done"},
		"it holds data":                {entry: v1beta1.InventoryEntry{Version: "v1", Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "old"}, live: "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: old, " + former + "}}", want: "done"},
		"the plan applies no spec":     {live: configMap("old", former), change: func(r *Run) { r.Execution.Advances = false }, want: "done"},
		"the OperatorVersion keeps it": {live: configMap("old", former), change: func(r *Run) { r.Version.KeepsAll = true }, want: "done"},
		"a template is invalid":        {live: configMap("old", former), change: func(r *Run) { r.Version.Spec.Templates["b"] = "{{ .Params.NONE }}" }, want: "done; ConfigMap old may be outdated and is not deleted: plan backup: template b cannot be rendered: template: b:1:10: executing \"b\" at <.Params.NONE>: map has no entry for key \"NONE\""},
		"one is, and nothing is old":   {entry: v1beta1.InventoryEntry{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "a"}, live: configMap("a", former), change: func(r *Run) { r.Version.Spec.Templates["b"] = "{{ .Params.NONE }}" }, want: "done"},
		"it must not be read":          {change: func(r *Run) { r.Snapshot.Forbidden[object.EntryRef(entry)] = "no permission" }, want: "blocked: no permission"},
	} {
		t.Run(name, func(t *testing.T) {
			r, e := running(t, version), entry
			if test.entry.Name != "" {
				e = test.entry
			}
			r.Snapshot.Objects[object.EntryRef(e)] = nil
			if test.live != "" {
				r.exists(t, test.live)
			}
			if test.change != nil {
				test.change(r)
			}
			f := r.Prune([]v1beta1.InventoryEntry{e})
			if got := summary(&f); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
			preconditioned(t, f.Writes)
		})
	}
}

func refsOf(writes []write.Write) []object.Ref {
	refs := make([]object.Ref, 0, len(writes))
	for _, w := range writes {
		refs = append(refs, w.Ref)
	}
	return refs
}
