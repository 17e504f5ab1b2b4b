package plans_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/decision"
)

func corrects(i *v1beta1.Instance) { i.Spec.Drift = v1beta1.DriftCorrect }

// corrected has an Instance of one plan that applies the manifests, and that corrects what differs.
func (c *cluster) corrected(manifests ...string) {
	c.t.Helper()
	c.operator("app-1", one(strings.Join(manifests, documents)))
	c.manage()
	c.instance("web", "app-1")
	c.change("web", corrects)
	c.rests("web", "deploy Complete")
}

// differs is that the Instance is not ready, and says this; stalled says that a user must act.
func (c *cluster) differs(says string, stalled metav1.ConditionStatus) {
	c.t.Helper()
	c.barrier.Wait(c.t)
	i := c.now("web")
	for kind, want := range map[string]metav1.ConditionStatus{
		"Ready": metav1.ConditionFalse, "Stalled": stalled, "Reconciling": map[metav1.ConditionStatus]metav1.ConditionStatus{"True": "False", "False": "True"}[stalled],
		decision.ConditionDrifted: metav1.ConditionTrue,
	} {
		is := apimeta.FindStatusCondition(i.Status.Conditions, kind)
		if is == nil || is.Status != want || !strings.Contains(is.Message, says) {
			c.t.Fatalf("%s, want %s, %q: %+v", kind, want, says, is)
		}
	}
}

// A Service is edited, a Secret changed and a ConfigMap deleted, also while no manager runs, and after the
// OperatorVersion was edited: each is as it was applied, without a plan.
func TestWhatDiffersIsAppliedAgain(t *testing.T) {
	c := newCluster(t)
	c.corrected(aConfigMap, aService, aSecret)
	ov := &v1beta1.OperatorVersion{}
	if err := c.get(ov, "app-1"); err != nil {
		t.Fatal(err)
	}
	for name, text := range ov.Spec.Templates {
		ov.Spec.Templates[name] = strings.ReplaceAll(text, "a: b", "a: later")
	}
	if err := c.client.Update(t.Context(), ov); err != nil {
		t.Fatal(err)
	}
	c.byHand(&corev1.Service{}, "app", `{"spec": {"selector": {"app": "other"}}}`)
	c.drifts("")
	c.halt()
	c.remove(&corev1.ConfigMap{}, "app")
	c.byHand(&corev1.Secret{}, "app", `{"stringData": {"password": "other"}, "metadata": {"annotations": {"theirs": "x"}}}`)
	c.manage()
	c.drifts("")

	service, secret := &corev1.Service{}, &corev1.Secret{}
	for _, err := range []error{c.get(service, "app"), c.get(secret, "app")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if service.Spec.Selector["app"] != "web" || string(secret.Data["password"]) != "s3cret" || c.data("app")["a"] != "b" {
		t.Errorf("%v, %q, %v", service.Spec.Selector, secret.Data["password"], c.data("app"))
	}
	if secret.Annotations["theirs"] != "x" {
		t.Error("a field of another client is gone")
	}
	c.rests("web", "deploy Complete")
	c.faults.Reset()
	c.barrier.Step(t, time.Hour)
	if writes := c.faults.Writes(); len(writes) > 0 {
		t.Errorf("it writes: %v", writes)
	}
}

// A client changes a ConfigMap each time that it is applied again: that becomes ever later, and the condition names
// the client. Other objects do not wait for that.
func TestClientsThatFightAreNamed(t *testing.T) {
	c := newCluster(t)
	c.corrected(aConfigMap, aService)
	fight := func() { c.byHand(&corev1.ConfigMap{}, "app", `{"data": {"a": "theirs"}}`) }
	for range 10 {
		c.barrier.Step(t, 5*time.Minute)
		fight()
		c.drifts("")
		if c.data("app")["a"] != "b" {
			t.Fatal("it is not applied again")
		}
	}
	c.faults.Reset()
	fight()
	c.differs("ConfigMap app (changed by kubectl-edit); ConfigMap app is waiting: applied again 10 times, and changed again by kubectl-edit; next try at", "False")
	if writes := c.faults.Writes(); len(writes) != 1 {
		t.Errorf("it writes: %v", writes) // the status
	}
	c.remove(&corev1.Service{}, "app")
	c.differs("ConfigMap app (changed by kubectl-edit); ConfigMap app is waiting", "False")
	if err := c.get(&corev1.Service{}, "app"); err != nil {
		t.Error(err)
	}
	c.halt()
	c.manage()
	c.differs("applied again 10 times", "False")
	c.barrier.Step(t, 5*time.Minute)
	c.drifts("")

	c.barrier.Step(t, time.Hour) // it stayed so: the next difference is a new one
	fight()
	c.drifts("")
	if got := c.data("app")["a"]; got != "b" {
		t.Error(got)
	}
}

// What held data, belongs to others, or cannot be changed back is left as it is, and the Instance says what to do.
func TestWhatIsNotCorrected(t *testing.T) {
	const generated = "{apiVersion: v1, kind: Secret, metadata: {name: app, annotations: {spillway.dev/generate-once: password=24%s}}}"
	for name, test := range map[string]struct {
		manifest string
		change   func(c *cluster)
		says     string
		stalled  metav1.ConditionStatus
	}{
		"generated values": {
			strings.Replace(generated, "%s", "", 1), func(c *cluster) { c.remove(&corev1.Secret{}, "app") },
			"Secret app (deleted); Secret app is waiting: it held data, which is lost; to have it created again without it, run its plan, or annotate it in its template with spillway.dev/lose-data-on-recreate=true", "True",
		},
		"an object of another client": {
			aConfigMap, func(c *cluster) {
				c.halt()
				c.remove(&corev1.ConfigMap{}, "app")
				c.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {a: theirs}}")
				c.manage()
			},
			"ConfigMap app exists and does not belong to Instance web; to adopt it, annotate it with spillway.dev/adopt=true", "True",
		},
		"an immutable field": {
			aConfigMap, func(c *cluster) {
				c.byHand(&corev1.ConfigMap{}, "app", `{"immutable": true, "data": {"a": "theirs"}}`)
				c.barrier.Wait(c.t)
			},
			"field is immutable when `immutable` is set", "False",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.corrected(test.manifest)
			test.change(c)
			c.differs(test.says, test.stalled)
			c.rests("web", "deploy Complete")
			if cm := c.data("app"); cm != nil && cm["a"] != "theirs" {
				t.Error(cm)
			}
		})
	}
	t.Run("unless its template permits it", func(t *testing.T) {
		c := newCluster(t)
		c.corrected(strings.Replace(generated, "%s", `, spillway.dev/lose-data-on-recreate: "true"`, 1))
		c.remove(&corev1.Secret{}, "app")
		c.drifts("")
		secret := &corev1.Secret{}
		if err := c.get(secret, "app"); err != nil || len(secret.Data["password"]) != 24 {
			t.Error(err, secret.Data)
		}
	})
}

// Nothing is corrected while a plan runs, after one that was abandoned, and while the Instance is paused.
func TestNothingIsCorrectedBesideAPlan(t *testing.T) {
	c := newCluster(t)
	c.operator("app-1", `
plans:
  deploy: {strategy: serial, phases: [{name: p, strategy: serial, steps: [{name: first, tasks: [first]}, {name: next, tasks: [next]}]}]}
tasks: [{name: first, kind: Apply, spec: {resources: [first]}}, {name: next, kind: Apply, spec: {resources: [next]}}]
templates:
  first: '`+aConfigMap+`'
  next: '{apiVersion: v1, kind: Pod, metadata: {name: never}, spec: {schedulerName: none, containers: [{name: app, image: app}]}}'
`)
	c.manage()
	c.instance("web", "app-1")
	c.change("web", corrects)
	c.waits("web", "Pod never")
	c.remove(&corev1.ConfigMap{}, "app")
	stays := func(when string) {
		t.Helper()
		c.barrier.Wait(t)
		c.barrier.Step(t, time.Hour)
		if err := c.get(&corev1.ConfigMap{}, "app"); !apierrors.IsNotFound(err) {
			t.Fatalf("%s it is applied again: %v", when, err)
		}
		if apimeta.IsStatusConditionTrue(c.now("web").Status.Conditions, "Ready") {
			t.Errorf("%s it is ready", when)
		}
	}
	stays("while a plan runs")
	c.change("web", annotate("spillway.dev/abandon-plan", string(c.now("web").Status.Execution.UID)))
	stays("after a plan that was abandoned")

	c = newQuietCluster(t)
	c.corrected(aConfigMap)
	c.change("web", annotate("spillway.dev/pause", "true"))
	c.remove(&corev1.ConfigMap{}, "app")
	stays("paused")
	c.change("web", annotate("spillway.dev/pause", ""))
	c.drifts("")
	if c.data("app")["a"] != "b" {
		t.Error("resumed, it is not applied again")
	}
}
