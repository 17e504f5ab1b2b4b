package explain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/decision"
	workloads "github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/describetest"
	"github.com/spillway-dev/spillway/internal/describe/snapshot"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/rollout"
)

// someWorkloads makes tracked workloads, each with a ConfigMap of its own.
func someWorkloads(t *testing.T, c client.Client, namespace string, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		name := fmt.Sprintf("w%d", i)
		d := describetest.Tracked(namespace, name)
		d.Spec.Replicas = new(int32)
		d.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}}
		for _, obj := range []client.Object{d, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"k": "v"}}} {
			if err := c.Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// What it costs to explain a workload depends on the kinds, not on how many others wait
// for the same budget.
func TestExplainListsOnce(t *testing.T) {
	c, requests := describetest.ClientAs(t, "")
	namespace := testenv.Namespace(t)
	someWorkloads(t, c, namespace, 0, 2*snapshot.Singly)
	o := config.Options{Now: time.Now, Namespaces: []string{namespace}, Options: decision.Options{MaxRollingPerNamespace: 1}}
	ask := func() int {
		t.Helper()
		describetest.Pass(t, c, o)
		before := len(requests.Requests())
		chain, err := Explain(t.Context(), World{Client: c, Options: o}, describe.Ref{Kind: workloads.Deployment, Namespace: namespace, Name: "w9"})
		if err != nil || chain.Links[0].Reason != rollout.ReasonBudget {
			t.Errorf("%+v, %v", chain.Links, err)
		}
		return len(requests.Requests()) - before
	}
	few := ask()
	someWorkloads(t, c, namespace, 2*snapshot.Singly, 4*snapshot.Singly)
	if more := ask(); more > few+2 || few > snapshot.Singly+15 { // what is read at the same time may be asked for once more
		t.Errorf("%d requests where there is little, and %d where there is more", few, more)
	}
}

// What many workloads wait for is said once.
func TestExplainOfWhatManyUse(t *testing.T) {
	const many = 399
	c, namespace := testenv.Client(t), testenv.Namespace(t)
	shared := describe.Ref{Kind: "ConfigMap", Namespace: namespace, Name: "shared"}
	objects := []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: shared.Name}}}
	for i := range many {
		d := describetest.Tracked(namespace, fmt.Sprintf("w%03d", i))
		d.Spec.Replicas = new(int32)
		d.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: shared.Name}}},
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}}},
		}
		objects = append(objects, d)
	}
	for _, o := range objects {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	o := config.Options{Now: time.Now, Namespaces: []string{namespace}}
	describetest.Pass(t, c, o)
	found, err := Explain(t.Context(), World{Client: c, Options: o}, shared)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, f := range found.Facts {
		if f.Name == "rolled for it" {
			said = append(said, f.Values...)
		}
	}
	if len(said) != 1 || !strings.HasPrefix(said[0], "Deployment w000, ") || !strings.HasSuffix(said[0], " more: each is waiting: Secret db not found") || len(found.Facts) > 20 {
		t.Errorf("%d facts: %q", len(found.Facts), said)
	}
}
