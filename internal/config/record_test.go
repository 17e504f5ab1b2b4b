package config_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/verdict"
	workloads "github.com/spillway-dev/spillway/internal/config/workload"
)

// record is what is recorded of failures with an object, nil if nothing is.
func (w *world) record(kind content.Kind, name string) *v1alpha1.ConfigRollout {
	w.t.Helper()
	r := &v1alpha1.ConfigRollout{}
	switch err := w.get(r, verdict.Name(content.Object{Kind: kind, Namespace: w.namespace, Name: name})); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		w.t.Error(err)
	}
	return r
}

// failedWith are the workloads that are recorded as failed with an object.
func (w *world) failedWith(kind content.Kind, name string) []string {
	w.t.Helper()
	r := w.record(kind, name)
	if r == nil {
		return nil
	}
	names := map[string]bool{}
	for _, v := range verdict.Read(r) {
		names[v.On.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// replaced writes a Deployment as kubectl replace does: what the manager wrote on it is gone.
func (w *world) replaced(name string, as *appsv1.Deployment) {
	w.t.Helper()
	d := as.DeepCopy()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { // its controller writes it too
		d.ResourceVersion = w.deploymentNow(name).ResourceVersion
		return w.client.Update(w.t.Context(), d)
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// created is a Deployment as its manifest is.
func created(d *appsv1.Deployment) *appsv1.Deployment {
	d = d.DeepCopy()
	d.ObjectMeta = metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name, Labels: d.Labels, Annotations: map[string]string{waveTracked: "true"}}
	delete(d.Spec.Template.Annotations, waveHash)
	d.Status = appsv1.DeploymentStatus{}
	return d
}

// That a content has failed is a fact about the content: whatever is done to the workload that failed,
// or to the Secret without another content, the others are not rolled with it.
func TestNoEditTakesAFailureAway(t *testing.T) {
	for name, edit := range map[string]func(w *world, before *appsv1.Deployment){
		"rollout undo": func(w *world, before *appsv1.Deployment) { w.replaced("app1", before) },
		"replace":      func(w *world, before *appsv1.Deployment) { w.replaced("app1", created(before)) },
		"it opts out": func(w *world, before *appsv1.Deployment) {
			d := created(before)
			d.Annotations = nil
			w.replaced("app1", d)
		},
		"it is deleted": func(w *world, _ *appsv1.Deployment) { w.remove(&appsv1.Deployment{}, "app1") },
		"it is deleted and created": func(w *world, before *appsv1.Deployment) {
			w.remove(&appsv1.Deployment{}, "app1")
			w.settled()
			if err := w.client.Create(w.t.Context(), created(before)); err != nil {
				w.t.Fatal(err)
			}
		},
		"the Secret is deleted and created": func(w *world, _ *appsv1.Deployment) {
			w.remove(&corev1.Secret{}, "db")
			w.settled()
			w.secret("db", "p", "bad")
		},
		"the Secret is created again before the next manager": func(w *world, _ *appsv1.Deployment) {
			w.halt()
			w.remove(&corev1.Secret{}, "db")
			w.secret("db", "p", "bad")
			w.manage()
		},
		"a new manager after an undo": func(w *world, before *appsv1.Deployment) {
			w.halt()
			w.replaced("app1", before)
			w.manage()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.options.MaxRolling = 1
			k := shared(w, five...)
			before := w.deploymentNow("app1")
			w.secret("db", "p", "bad")
			w.stopped("app1", five[1:]...)
			w.settled()
			if f := w.failedWith("Secret", "db"); !slices.Equal(f, five[:1]) || w.record("Secret", "db").Failed != 1 {
				t.Fatalf("the record is %+v", w.record("Secret", "db"))
			}
			edit(w, before)
			w.settled()
			w.rests(func() { w.stopped("app1", five[1:]...) })
			if ran := k.ranWith("bad"); !slices.Equal(ran, five[:1]) {
				t.Errorf("%v ran the bad value", ran)
			}
			w.secret("db", "p", "good2")
			w.ready(five[1:]...)
		})
	}
}

// refuseRecords has the API server refuse each new record, until the function is called.
func (w *world) refuseRecords() (permit func()) {
	w.t.Helper()
	name := "no-records-" + w.namespace
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	policy.Spec.MatchConstraints = &admissionv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.namespace}},
		ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule:       admissionv1.Rule{APIGroups: []string{v1alpha1.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"configrollouts"}},
		}}},
	}
	policy.Spec.Validations = []admissionv1.Validation{{Expression: "false", Message: "no records here"}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
	binding.Spec = admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}
	for _, obj := range []client.Object{policy, binding} {
		if err := w.client.Create(w.t.Context(), obj); err != nil {
			w.t.Fatal(err)
		}
	}
	permit = func() {
		for _, obj := range []client.Object{binding, policy} {
			if err := w.client.Delete(context.WithoutCancel(w.t.Context()), obj); client.IgnoreNotFound(err) != nil {
				w.t.Error(err)
			}
		}
	}
	w.t.Cleanup(permit)
	w.eventually(func() error { // the policy is in force
		failed := workloads.Failed{Kind: content.Secret, Namespace: w.namespace, Name: "probe", Digest: "0123456789", At: time.Now(), Cause: "it crashes"}
		on := workloads.Name{Kind: workloads.Deployment, Namespace: w.namespace, Name: "app"}
		probe := verdict.Record(failed.Object(), failed.Digest, []verdict.Verdict{{On: on, Failed: failed}})
		if err := w.client.Create(w.t.Context(), probe, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "no records here") {
			return fmt.Errorf("not refused: %w", err)
		}
		return nil
	})
	return permit
}

// Without a record of what has failed nothing is done that needs it: the previous config is restored once
// the record can be written.
func TestNothingGoesBackWithoutARecord(t *testing.T) {
	w := newWorld(t)
	pinnable(w)
	startKubelets(w)
	w.secret("db", "p", "good")
	w.apply(returns("Deployment", "app", onFailure, "Rollback"))
	w.manage()
	first := w.pinnedAgain("Deployment", "app", "")
	w.readyWith("app", snapshotOf(t, first), 1)
	permit := w.refuseRecords()

	w.secret("db", "p", "bad")
	w.saysEventually("app", "CrashLoopBackOff")
	w.settled()
	if pins := w.pinsOf("Deployment", "app"); pins == first || w.failedWith("Secret", "db") != nil {
		t.Fatalf("it went back without a record: %s, %+v", pins, w.record("Secret", "db"))
	}
	permit()
	w.isBack("Deployment", "app", first)
	if f := w.failedWith("Secret", "db"); !slices.Equal(f, []string{"app"}) {
		t.Errorf("the record is of %v", f)
	}
}

// What an earlier manager has recorded on a workload is moved: first it is recorded, then removed.
func TestAnEarlierRecordIsMoved(t *testing.T) {
	w := newWorld(t)
	w.options.MaxRolling = 1
	k := shared(w, five...)
	w.halt()
	w.secret("db", "p", "bad")
	w.annotate("app1", native+"config-failed", fmt.Sprintf(
		`[{"kind":"Secret","namespace":%q,"name":"db","digest":%q,"at":"2099-01-01T00:00:00Z","cause":"1 of 1 Pods CrashLoopBackOff"},`+
			`{"kind":"Secret","namespace":"default","name":"other","digest":"x","at":"2026-01-01T00:00:00Z","cause":"x"}]`, w.namespace, w.digest("db")))
	w.manage()
	w.eventually(func() error { return want("", w.deploymentNow("app1").Annotations[native+"config-failed"]) })
	w.stopped("app1", five...)
	w.rests(func() {})
	r := w.record("Secret", "db")
	if r == nil || len(r.Failures) != 1 || r.Failures[0].Digest != w.digest("db") || r.Failures[0].Workloads[0].At.After(time.Now()) {
		t.Errorf("the record is %+v", r)
	}
	if ran := k.ranWith("bad"); len(ran) > 0 {
		t.Errorf("%v ran the bad value", ran)
	}
}

// A record ends with a retry, and is deleted once it says nothing any more.
func TestARecordEnds(t *testing.T) {
	w, _, before := oneFails(t, "app2")
	w.remove(&appsv1.Deployment{}, "app1")
	w.settled()
	w.retry("db", time.Now().Add(time.Second))
	w.annotate("app2", native+"stop-on-failure", "false")
	w.hashed("app2", before)
	w.eventually(func() error {
		if r := w.record("Secret", "db"); r == nil || len(r.Failures) > 0 {
			return fmt.Errorf("the record is %+v", r)
		}
		return nil
	})
}

// The name of a record is valid whatever the name of its object.
func TestTheNameOfARecord(t *testing.T) {
	long := strings.Repeat("a", 250)
	a, b := verdict.Name(content.Object{Kind: content.Secret, Name: long + "b.c"}), verdict.Name(content.Object{Kind: content.Secret, Name: long + "b.d"})
	if len(a) > 253 || a == b || verdict.Name(content.Object{Kind: content.ConfigMap, Name: "app"}) != "configmap-app" {
		t.Errorf("%s and %s", a, b)
	}
}
