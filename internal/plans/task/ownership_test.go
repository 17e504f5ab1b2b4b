package task

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/write"
)

// TestAClusterScopedObjectOfKUDO checks that an object without a namespace that KUDO applied belongs
// to the Instance whose plan KUDO ran, and not to each Instance of that name.
func TestAClusterScopedObjectOfKUDO(t *testing.T) {
	const byKUDO = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a, labels: {heritage: kudo, kudo.dev/instance: web}, annotations: {kudo.dev/last-plan-execution-uid: UID}}}"
	for name, test := range map[string]struct{ uid, apply, remove string }{
		"by its last plan":                         {"deploy-uid", "Apply ClusterRole a; ", "Delete ClusterRole a; "},
		"by a plan that Spillway has run since":    {"former-uid", "Apply ClusterRole a; ", "Delete ClusterRole a; "},
		"by the Instance of another namespace":     {"other-uid", "blocked: ClusterRole a exists and does not belong to Instance web; to adopt it, annotate it with spillway.dev/adopt=true", "done; ClusterRole a is not deleted: it does not belong to Instance web"},
		"by an execution that is not known at all": {`""`, "blocked: ClusterRole a exists and does not belong to Instance web; to adopt it, annotate it with spillway.dev/adopt=true", "done; ClusterRole a is not deleted: it does not belong to Instance web"},
	} {
		for kind, want := range map[string]string{"Apply": test.apply, "Delete": test.remove} {
			r := running(t, "tasks: [{name: t, kind: "+kind+", spec: {resources: [a]}}]\ntemplates: {a: '{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}}'}")
			r.Snapshot.Kinds[schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}] = object.ClusterScoped
			r.Snapshot.Instance.Status = v1beta1.InstanceStatus{
				PlanStatus: map[string]v1beta1.PlanStatus{"deploy": {UID: "deploy-uid"}}, KUDOExecutions: []types.UID{"former-uid"},
			}
			u := manifest(t, strings.Replace(byKUDO, "UID", test.uid, 1))
			u.SetUID(theUID)
			r.Snapshot.Objects[object.RefOf(u)] = u
			if f := r.settle("t"); summary(&f) != want {
				t.Errorf("%s, %s: %s, want %s", name, kind, summary(&f), want)
			}
		}
	}
}

// TestARefusalAnswersWhatWasSent checks that a refusal means nothing for another execution, nor for
// another content of the same object, nor for its deletion.
func TestARefusalAnswersWhatWasSent(t *testing.T) {
	const version = "tasks: [{name: t, kind: KIND, spec: {resources: [a]}}]\n" +
		`templates: {a: '{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {spillway.dev/on-immutable: recreate}}, data: {k: CONTENT}}'}`
	text := func(kind, content string) string {
		return strings.NewReplacer("KIND", kind, "CONTENT", content).Replace(version)
	}
	asked := running(t, text("Apply", "x"))
	asked.exists(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, "+former+"}}")
	f := asked.settle("t")
	asked.refuse(&f.Writes[0], write.Refusal{Reason: "it is immutable", Immutable: theUID})
	for name, test := range map[string]struct {
		kind, content string
		execution     types.UID
		want          string
	}{
		"the same":             {"Apply", "x", "run", "Delete ConfigMap a; "},
		"of another execution": {"Apply", "x", "next", "Apply ConfigMap a; "},
		"with another content": {"Apply", "y", "run", "Apply ConfigMap a; "},
		"the deletion of it":   {"Delete", "x", "run", "Delete ConfigMap a; "},
	} {
		r := running(t, text(test.kind, test.content))
		r.Snapshot.Objects, r.Snapshot.Refusals, r.Execution.UID = asked.Snapshot.Objects, asked.Snapshot.Refusals, test.execution
		f := r.settle("t")
		if got := summary(&f); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
		if _, refused := r.Snapshot.Refusals.Of(&f.Writes[0]); refused {
			t.Errorf("%s: it is refused already", name)
		}
	}
}

// TestWhatHoldsDataIsNotReplaced checks that what is lost for good is replaced only by permission
// to lose it.
func TestWhatHoldsDataIsNotReplaced(t *testing.T) {
	const keep = `to replace it and lose its data, annotate it in its template with spillway.dev/on-immutable=recreate and spillway.dev/lose-data-on-recreate=true`
	for text, holds := range map[string]bool{
		"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}}":                                                                 true,
		"{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}}":                                                                      true,
		"{apiVersion: v1, kind: Namespace, metadata: {name: a}}":                                                                             true,
		"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}}":                                         true,
		"{apiVersion: kudo.dev/v1beta1, kind: Instance, metadata: {name: a}}":                                                                true,
		"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}}}": true,
		"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain}}}": false,
		"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}}":                                                                      false,
		"{apiVersion: v1, kind: Secret, metadata: {name: a, annotations: {spillway.dev/generate-once: token=8}}}":                            true,
		"{apiVersion: v1, kind: Secret, metadata: {name: a}}":                                                                                false,
		"{apiVersion: batch/v1, kind: Job, metadata: {name: a}}":                                                                             false,
	} {
		live, rendered := manifest(t, text), manifest(t, text)
		annotate := func(pairs ...string) {
			annotations := rendered.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			for _, key := range pairs {
				annotations[key] = map[bool]string{true: "recreate", false: "true"}[strings.HasSuffix(key, "on-immutable")]
			}
			rendered.SetAnnotations(annotations)
		}
		annotate("spillway.dev/on-immutable")
		if got, want := ReplaceAction(rendered, live), map[bool]string{true: keep}[holds]; got != want {
			t.Errorf("%s: %q", text, got)
		}
		annotate("spillway.dev/lose-data-on-recreate")
		if got := ReplaceAction(rendered, live); got != "" {
			t.Errorf("%s, with both permissions: %q", text, got)
		}
		rendered = manifest(t, text)
		annotate("spillway.dev/lose-data-on-recreate")
		if got := ReplaceAction(rendered, live); got == "" {
			t.Errorf("%s is replaced though nothing asks for it", text)
		}
	}
}

// TestNamesThatNoRequestCanHave checks that a task with such a name fails the plan, with the field.
func TestNamesThatNoRequestCanHave(t *testing.T) {
	for field, want := range map[string]string{
		"package: ../x":                     `fatal: task t: spec.package: invalid value "../x": may not contain '/'`,
		"package: x, operatorVersion: ../1": `fatal: task t: spec.operatorVersion: invalid value "../1": may not contain '/'`,
		"package: x, appVersion: a%b":       `fatal: task t: spec.appVersion: invalid value "a%b": may not contain '%'`,
		"package: x, instanceName: '..'":    `fatal: task t: spec.instanceName: invalid value "..": may not be '..'`,
	} {
		r := running(t, "tasks: [{name: t, kind: KudoOperator, spec: {"+field+"}}]")
		if f := r.settle("t"); summary(&f) != want {
			t.Errorf("%s: %s", field, summary(&f))
		}
	}
	r := running(t, "tasks: [{name: t, kind: Apply, spec: {resources: [a]}}]\ntemplates: {a: '{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}'}")
	r.Snapshot.Impossible = map[object.Ref]string{refTo("v1", "ConfigMap", "a"): "ConfigMap a: it cannot be read"}
	if f := r.settle("t"); summary(&f) != "fatal: ConfigMap a: it cannot be read" {
		t.Error(summary(&f))
	}
}
