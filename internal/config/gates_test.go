package config_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/lab/testenv/measured"
)

const gatedStages = "stages: [{name: first, workloads: 1, gates: [{name: approve}]}, {name: rest}]"

// underGates makes Deployments that share the Secret db, under a policy with a gate after its first
// stage.
func underGates(w *world, stages string) *kubelets {
	w.t.Helper()
	w.policy("staged", stages)
	k := shared(w, "app1", "app2", "app3")
	w.phase("staged", "Complete")
	return k
}

// gates are the RolloutGates of the world.
func (w *world) gates() []v1alpha1.RolloutGate {
	w.t.Helper()
	list := &v1alpha1.RolloutGateList{}
	if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// gate waits until there is one RolloutGate.
func (w *world) gate() *v1alpha1.RolloutGate {
	w.t.Helper()
	w.eventually(func() error { return want(1, len(w.gates())) })
	return &w.gates()[0]
}

// decide decides a gate, as a user or a program does.
func (w *world) decide(g *v1alpha1.RolloutGate, verdict metav1.ConditionStatus, said string) {
	w.t.Helper()
	apimeta.SetStatusCondition(&g.Status.Conditions, metav1.Condition{Type: v1alpha1.GatePassed, Status: verdict, Reason: "Decided", Message: said})
	if err := w.client.Status().Update(w.t.Context(), g); err != nil {
		w.t.Fatal(err)
	}
}

// A release waits after its first stage until a gate has passed, and says so. The gate of
// another content is another one, and that of the earlier content is deleted.
func TestAGateBetweenStages(t *testing.T) {
	w := newWorld(t)
	k := underGates(w, gatedStages)
	if len(w.gates()) > 0 {
		t.Error("a policy without a release has gates")
	}
	w.secret("db", "p", "fine")
	g := w.gate()
	if s := g.Spec; s.TargetRef.Kind != "ConfigPolicy" || s.TargetRef.Name != "staged" || s.Stage != "first" || s.Gate != "approve" || s.When != "After" ||
		!strings.HasPrefix(s.Revision, "secret/db@"+w.digest("db")[:7]) || s.ReachedAt == nil || !metav1.IsControlledBy(g, w.staged()) {
		t.Errorf("the gate is %+v", g)
	}
	w.saysWhy("app2", "WaitingForPrevious", "ConfigPolicy staged holds Secret db@", "gate approve")
	w.eventually(func() error { return want(true, strings.Contains(w.status("staged").WaitingFor, "gate approve")) })
	w.rests(func() {})
	if ran := k.ranWith("fine"); !slices.Equal(ran, []string{"app1"}) {
		t.Errorf("%v ran the value", ran)
	}
	w.decide(g, metav1.ConditionTrue, "it looks good")
	w.ready("app1", "app2", "app3")
	w.phase("staged", "Complete")
	w.rests(func() { w.gate() }) // it stays as long as the content

	w.secret("db", "p", "next")
	w.eventually(func() error {
		for _, now := range w.gates() {
			if now.UID == g.UID {
				return fmt.Errorf("gate %s is about %s", now.Name, now.Spec.Revision)
			}
		}
		return nil
	})
	w.decide(w.gate(), metav1.ConditionFalse, "errors rise")
	w.saysWhy("app2", "WaitingForPrevious", "gate approve was refused: errors rise")
	r := w.phase("staged", "Failed")
	if !strings.Contains(r.WaitingFor, "gate approve was refused: errors rise") {
		t.Errorf("the release is %+v", r)
	}
	w.rests(func() {})
	if ran := k.ranWith("next"); !slices.Equal(ran, []string{"app1"}) {
		t.Errorf("%v ran the value", ran)
	}
	w.policy("staged", strings.Replace(gatedStages, "{name: approve}", "{name: approve, onRefusal: Continue}", 1))
	w.ready("app1", "app2", "app3")
}

// staged is the policy.
func (w *world) staged() *v1alpha1.ConfigPolicy {
	w.t.Helper()
	p := &v1alpha1.ConfigPolicy{}
	if err := w.get(p, "staged"); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// A gate before a stage keeps all of it.
func TestAGateBeforeAStage(t *testing.T) {
	w := newWorld(t)
	k := underGates(w, "stages: [{name: all, gates: [{name: approve, when: Before}]}]")
	w.secret("db", "p", "fine")
	g := w.gate()
	if g.Spec.When != "Before" {
		t.Errorf("the gate is %+v", g.Spec)
	}
	w.saysWhy("app1", "GatePending", "gate approve")
	if ran := k.ranWith("fine"); len(ran) > 0 {
		t.Errorf("%v ran the value", ran)
	}
	w.decide(g, metav1.ConditionTrue, "")
	w.ready("app1", "app2", "app3")
}

// Another source than a user: Spillway measures the gate, also where the config ring runs alone.
func TestAGateIsMeasured(t *testing.T) {
	w := newWorld(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"errors": 0}`) }))
	t.Cleanup(server.Close)
	w.options.CoalesceWindow = 0
	underGates(w, gatedStages)
	w.halt()
	w.apply("apiVersion: spillway.dev/v1alpha1\nkind: GateTemplate\nmetadata: {name: approve}\nspec: {http: {url: '" + server.URL + "', condition: json.errors == 0}}")
	w.manage(measured.Reached(t))
	w.secret("db", "p", "fine")
	w.ready("app1", "app2", "app3")
	if m := w.gate().Status.Measurement; m == nil {
		t.Errorf("the measurement is %+v", m)
	}
}

// A RolloutGate that a user has made, and that the policy does not control, opens nothing.
func TestAGateOfAUser(t *testing.T) {
	w := newWorld(t)
	k := underGates(w, gatedStages)
	w.secret("db", "p", "fine")
	g := w.gate()
	w.halt()
	if err := w.client.Delete(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	forged := &v1alpha1.RolloutGate{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: g.Name}, Spec: g.Spec}
	if err := w.client.Create(t.Context(), forged); err != nil {
		t.Fatal(err)
	}
	w.decide(forged, metav1.ConditionTrue, "by me")
	w.manage()
	w.saysWhy("app2", "WaitingForPrevious", "gate approve")
	w.settled()
	if ran := k.ranWith("fine"); !slices.Equal(ran, []string{"app1"}) {
		t.Errorf("%v ran the value", ran)
	}
}

// Who could decide the gates of a ClusterConfigPolicy is a user of one namespace: it has none.
func TestAClusterPolicyHasNoGates(t *testing.T) {
	w := newWorld(t)
	if err := installPolicies(); err != nil {
		t.Fatal(err)
	}
	p := &v1alpha1.ClusterConfigPolicy{ObjectMeta: metav1.ObjectMeta{Name: "gated"}}
	p.Spec.Stages = []v1alpha1.ConfigStage{{Name: "first", Gates: []v1alpha1.StageGate{{GateReference: v1alpha1.GateReference{Name: "approve"}}}}}
	err := w.client.Create(t.Context(), p, client.DryRunAll)
	if err == nil || !strings.Contains(err.Error(), "gates are for ConfigPolicies") {
		t.Errorf("the API server says %v", err)
	}
}

// tellGates tells the story of a release that waits for a gate: one gate, decided once.
func tellGates(w *world, k *kubelets) {
	w.t.Helper()
	w.secret("db", "p", "fine")
	g := w.gate()
	if ran := k.ranWith("fine"); !slices.Equal(ran, []string{"app1"}) {
		w.t.Errorf("%v ran the value", ran)
	}
	w.decide(g, metav1.ConditionTrue, "")
	w.ready("app1", "app2", "app3")
	w.phase("staged", "Complete")
	if again := w.gate(); again.UID != g.UID {
		w.t.Error("the gate was created again")
	}
}

// TestFaultGates stops the manager at each write of the story, and starts another one.
func TestFaultGates(t *testing.T) {
	testenv.Story(t, 12, func(t *testing.T, begin fault.Begin) {
		w := newWorld(t)
		w.options.CoalesceWindow = 0
		k := underGates(w, gatedStages)
		w.halt()
		w.meanwhile = begin(w.managedBy)
		tellGates(w, k)
	})
}

// TestFaultTwoManagersAndGates has two managers that know nothing of each other.
func TestFaultTwoManagersAndGates(t *testing.T) {
	w := newWorld(t)
	w.options.CoalesceWindow = 0
	k := underGates(w, gatedStages)
	w.halt()
	w.managedBy(fault.New())
	w.managedBy(fault.New())
	tellGates(w, k)
}

// tellMeasured tells the story of a release whose gate is measured twice, with one result, by a
// manager and its successor.
func tellMeasured(w *world, begin fault.Begin, rate string) {
	w.t.Helper()
	w.options.CoalesceWindow = 0
	k, service := underGates(w, gatedStages), measured.New(w.t)
	w.halt()
	service.Runs = func() string { return strings.Join(k.ranWith("fine"), " ") }
	service.Says("first", rate)
	if err := w.client.Create(w.t.Context(), service.TwoWindows(w.namespace, "approve")); err != nil {
		w.t.Fatal(err)
	}
	w.meanwhile = begin(func(i *fault.Injector) func() {
		return w.managedWith(i, service.ReachedBy(w.t, i))
	})
	w.secret("db", "p", "fine")
	if rate == measured.Bad {
		w.saysWhy("app2", "WaitingForPrevious", "gate approve was refused: failed measurements: 2 (failureLimit 1)")
		w.phase("staged", "Failed")
		if ran := service.Runs(); ran != "app1" {
			w.t.Errorf("%s ran the value", ran)
		}
	} else {
		w.ready("app1", "app2", "app3")
		w.phase("staged", "Complete")
	}
	if err := service.CheckTwoWindows(w.gate(), rate, "app1"); err != nil {
		w.t.Error(err)
	}
}

// TestFaultTheManagerStopsWhileItMeasures stops the manager at each write of a gate that passes or is refused, and
// starts another one.
func TestFaultTheManagerStopsWhileItMeasures(t *testing.T) {
	measured.EachStop(t, 3, func(t *testing.T, begin fault.Begin, rate string) { tellMeasured(newWorld(t), begin, rate) })
}
