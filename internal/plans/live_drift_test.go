package plans_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/decision"
)

const (
	documents  = "\n---\n"
	aConfigMap = "{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {a: b}}"
	aService   = "{apiVersion: v1, kind: Service, metadata: {name: app}, spec: {selector: {app: web}, ports: [{name: http, port: 80}]}}"
	aSecret    = "{apiVersion: v1, kind: Secret, metadata: {name: app}, stringData: {password: s3cret}}"
)

// byHand is a change that a user makes.
func (c *cluster) byHand(obj client.Object, name, patch string) {
	c.t.Helper()
	obj.SetNamespace(c.namespace)
	obj.SetName(name)
	if err := c.client.Patch(c.t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("kubectl-edit")); err != nil {
		c.t.Fatal(err)
	}
}

// drifts is that the status says what differs, empty for nothing; the Instance is ready all the same.
func (c *cluster) drifts(want string) {
	c.t.Helper()
	c.barrier.Wait(c.t)
	i := c.now("web")
	got := ""
	if d := i.Status.Drift; d != nil {
		var names []string
		for _, o := range d.Objects {
			names = append(names, strings.TrimSpace(fmt.Sprintf("%s %s %v %s", o.Kind, o.Name, o.Missing, o.By)))
		}
		got = fmt.Sprintf("%d: %s", d.Count, strings.Join(names, ", "))
	}
	if got != want {
		c.t.Fatalf("it differs: %q, want %q", got, want)
	}
	ready := apimeta.FindStatusCondition(i.Status.Conditions, "Ready")
	if ready == nil || ready.Status != metav1.ConditionTrue {
		c.t.Errorf("%+v", ready)
	}
	drifted := apimeta.FindStatusCondition(i.Status.Conditions, decision.ConditionDrifted)
	if want != "" && (drifted == nil || drifted.Status != metav1.ConditionTrue || !strings.Contains(ready.Message, drifted.Message)) || want == "" && drifted != nil && drifted.Status != metav1.ConditionFalse {
		c.t.Errorf("%+v, %+v", drifted, ready)
	}
}

// A Service and a Secret are edited, and a ConfigMap is deleted, by hand. The status counts and names them, also what
// happened while no manager ran, and says so no more once the plan has run again.
func TestWhatDiffersFromWhatWasAppliedIsNamed(t *testing.T) {
	c := newCluster(t)
	c.operator("app-1", one(aConfigMap+documents+aService+documents+aSecret))
	c.manage()
	c.instance("web", "app-1")
	c.rests("web", "deploy Complete")
	c.drifts("")

	c.byHand(&corev1.Service{}, "app", `{"spec": {"selector": {"app": "other"}}}`)
	c.drifts("1: Service app false kubectl-edit")
	c.halt()
	c.remove(&corev1.ConfigMap{}, "app")
	c.byHand(&corev1.Secret{}, "app", `{"stringData": {"password": "other"}}`)
	c.manage()
	c.drifts("3: Secret app false kubectl-edit, ConfigMap app true, Service app false kubectl-edit")

	c.barrier.Wait(t)
	c.faults.Reset()
	c.byHand(&corev1.Secret{}, "app", `{"metadata": {"annotations": {"theirs": "x"}}}`) // a field of theirs is no further difference
	c.barrier.Wait(t)
	c.barrier.Step(t, time.Hour)
	if writes := c.faults.Writes(); len(writes) > 0 {
		t.Errorf("it writes: %v", writes)
	}

	c.change("web", func(i *v1beta1.Instance) { i.Spec.PlanExecution = v1beta1.PlanExecution{PlanName: "deploy"} })
	c.rests("web", "deploy Complete, deploy Complete")
	c.drifts("")
	c.halt()
	c.manage()
	c.drifts("")
}

// What is not applied is no difference: fields that other clients add, replicas that are not in the template, and
// those that what scales the workload has set. A client that writes replicas without scaling has changed them.
func TestWhatIsScaledDoesNotDiffer(t *testing.T) {
	const deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s}, spec: {%sselector: {matchLabels: {app: %[1]s}}, " +
		"template: {metadata: {labels: {app: %[1]s}}, spec: {containers: [{name: app, image: app}]}}}}"
	c := newCluster(t)
	c.operator("app-1", one(fmt.Sprintf(deployment, "free", "")+documents+fmt.Sprintf(deployment, "fixed", "replicas: 1, ")))
	c.manage()
	c.instance("web", "app-1")
	c.rests("web", "deploy Complete")
	for _, name := range []string{"free", "fixed"} {
		scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 2}}
		d := c.deployment(name)
		if err := c.client.SubResource("scale").Update(t.Context(), d, client.WithSubResourceBody(scale), client.FieldOwner("hpa")); err != nil {
			t.Fatal(err)
		}
		c.byHand(&appsv1.Deployment{}, name, `{"metadata": {"labels": {"team": "shop"}}}`)
	}
	c.eventually(func() error {
		for _, name := range []string{"free", "fixed"} {
			if d := c.deployment(name); d.Status.ReadyReplicas != 2 {
				return errors.New(name + " has not 2 replicas")
			}
		}
		return nil
	})
	c.drifts("")
	c.byHand(&appsv1.Deployment{}, "fixed", `{"spec": {"replicas": 1}}`)
	c.eventually(func() error {
		if d := c.deployment("fixed"); d.Status.Replicas != 1 || d.Status.ReadyReplicas != 1 {
			return errors.New("it has not 1 replica")
		}
		return nil
	})
	c.drifts("1: Deployment fixed false kubectl-edit")
}
