package plans_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/lab/testenv/measured"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// twoPhases is a package whose plan writes an object in each of two phases.
const twoPhases = `
version: "1"
tasks: [{name: a, kind: Apply, spec: {resources: [a.yaml]}}, {name: b, kind: Apply, spec: {resources: [b.yaml]}}]
templates:
  a.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"
  b.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}"
plans: {deploy: {strategy: serial, phases: [{name: one, steps: [{name: a, tasks: [a]}]}, {name: two, steps: [{name: b, tasks: [b]}]}]}}
`

// gated is the plot of a plan with gates before, between and after its phases; the test is
// the user who approves each that it finds.
var gated = plot{
	name: "deploy with gates",
	before: func(c *cluster) {
		c.operator("app-1", twoPhases)
	},
	begin: func(c *cluster) {
		c.instanceWith("web", "app-1", "[{plan: deploy, name: ok, when: Before}, {plan: deploy, phase: one, name: ok}, {plan: deploy, name: ok}]")
	},
	over: func(c *cluster) error {
		c.approves()
		return c.ran("deploy Complete")
	},
	end: func(c *cluster) map[string]string {
		end := c.everything()
		for _, g := range c.gates() {
			end["RolloutGate of "+g.Spec.Stage+" "+g.Spec.When] = string(verdictOf(&g))
		}
		return end
	},
	times: map[string]int{"ConfigMap a": 1, "ConfigMap b": 1},
}

// instanceWith makes an Instance with gates.
func (c *cluster) instanceWith(name, version, gates string) {
	c.t.Helper()
	i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{
		Namespace: c.namespace, Name: name, Annotations: map[string]string{vocabulary.PlanGates.Native: gates},
	}}
	i.Spec.OperatorVersion.Name = version
	if err := c.client.Create(c.t.Context(), i); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) gates() []v1alpha1.RolloutGate {
	c.t.Helper()
	list := &v1alpha1.RolloutGateList{}
	c.list(list)
	return list.Items
}

func verdictOf(g *v1alpha1.RolloutGate) metav1.ConditionStatus {
	for _, c := range g.Status.Conditions {
		if c.Type == v1alpha1.GatePassed {
			return c.Status
		}
	}
	return metav1.ConditionUnknown
}

// approves approves each gate that is not decided.
func (c *cluster) approves() {
	c.t.Helper()
	c.approveEach(func(string) bool { return true })
}

// approveEach approves each gate that is not decided, if its name is one to approve.
func (c *cluster) approveEach(is func(name string) bool) {
	c.t.Helper()
	for _, g := range c.gates() {
		if verdictOf(&g) != metav1.ConditionUnknown || !is(g.Spec.Gate) {
			continue
		}
		c.approve(&g)
	}
}

// approve decides a gate as a user does. One that is measured may have changed meanwhile; the next
// look finds it again.
func (c *cluster) approve(g *v1alpha1.RolloutGate) {
	c.t.Helper()
	g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.GatePassed, Status: metav1.ConditionTrue, Reason: "Approved", LastTransitionTime: metav1.Now()}}
	if err := c.client.Status().Update(c.t.Context(), g); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		c.t.Fatal(err)
	}
}

// TestGateOfAPhase: the plan waits after its first phase until a user approves the gate, and
// writes nothing meanwhile.
func TestGateOfAPhase(t *testing.T) {
	c := newCluster(t)
	c.operator("app-1", twoPhases)
	c.manage()
	c.instanceWith("web", "app-1", "[{plan: deploy, phase: one, name: approve}]")
	c.waits("web", "phase one is waiting: gate approve is pending")
	c.eventually(func() error {
		if len(c.gates()) == 0 {
			return errors.New("there is no RolloutGate")
		}
		return nil
	})
	g := c.gates()[0]
	if s := g.Spec; s.TargetRef.Kind != "Instance" || s.TargetRef.Name != "web" || s.Stage != "deploy/one" || s.Revision != string(c.now("web").Status.Execution.UID) {
		t.Errorf("the gate is about %+v", s)
	}
	if c.data("b") != nil {
		t.Error("the second phase has begun")
	}
	c.approves()
	c.rests("web", "deploy Complete")
	counts := map[string]int{}
	for _, w := range c.faults.Writes() {
		counts[w.Verb+" "+w.Resource]++
	}
	// The status is written when the plan begins, at the gate, after it, and at the end.
	if counts["create rolloutgates"] != 1 || counts["update instances"] > 4 {
		t.Errorf("it wrote %v", counts)
	}
}

// TestGateOfAStepIsMeasured: a plan stops after a step because a URL says no, and says so in
// its conditions. Once the gate is deleted it is measured again, and the plan continues.
func TestGateOfAStepIsMeasured(t *testing.T) {
	healthy := atomic.Bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !healthy.Load() {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	t.Cleanup(server.Close)
	c := newCluster(t)
	c.operator("app-1", twoPhases)
	template := &v1alpha1.GateTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "smoke"},
		Spec:       v1alpha1.GateTemplateSpec{HTTP: &v1alpha1.HTTPGate{URL: server.URL + "/{{ .stage }}"}},
	}
	if err := c.client.Create(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	c.manageWith(fault.New(), measured.Reached(t))
	c.instanceWith("web", "app-1", "[{plan: deploy, phase: one, step: a, name: smoke}]")
	c.eventually(func() error {
		for _, condition := range c.now("web").Status.Conditions {
			if condition.Type == "Stalled" && condition.Reason == "GateRefused" && strings.HasPrefix(condition.Message, "step a is stopped: gate smoke was refused: ") {
				return nil
			}
		}
		return fmt.Errorf("%+v", c.now("web").Status.Conditions)
	})
	c.warns("GateRefused", "step a is stopped: gate smoke was refused")
	if c.data("b") != nil {
		t.Error("the second phase has begun")
	}
	healthy.Store(true)
	c.remove(&v1alpha1.RolloutGate{}, c.gates()[0].Name)
	c.rests("web", "deploy Complete")
}

// TestGatesAreAdmitted: a gate at a place that the OperatorVersion does not have is denied.
func TestGatesAreAdmitted(t *testing.T) {
	c := newCluster(t)
	c.operator("app-1", twoPhases)
	c.serve()
	c.instanceWith("web", "app-1", "[{plan: deploy, name: ok}]")
	err := c.tryChange("web", func(i *v1beta1.Instance) {
		i.Annotations[vocabulary.PlanGates.Native] = "[{plan: deploy, phase: uno, name: ok}]"
	})
	if want := `annotation spillway.dev/gates: gate 1: phase: plan deploy has no phase "uno"`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the answer is %v", err)
	}
}

// tellMeasured tells the story of a plan whose gate between two phases is measured twice, with
// one result, by a manager and its successor.
func (c *cluster) tellMeasured(begin fault.Begin, rate string) {
	c.t.Helper()
	service := measured.New(c.t)
	service.Says("deploy/one", rate)
	service.Runs = func() string {
		if c.data("b") != nil {
			return "one two"
		}
		return "one"
	}
	c.operator("app-1", twoPhases)
	if err := c.client.Create(c.t.Context(), service.TwoWindows(c.namespace, "ok")); err != nil {
		c.t.Fatal(err)
	}
	c.instanceWith("web", "app-1", "[{plan: deploy, phase: one, name: ok}]")
	meanwhile := begin(func(i *fault.Injector) func() { return c.manageWith(i, service.ReachedBy(c.t, i)) })
	c.eventually(func() error {
		meanwhile()
		c.atRest(5 * time.Second)
		if rate != measured.Bad {
			return c.ran("deploy Complete")
		}
		const refused = "phase one is stopped: gate ok was refused: failed measurements: 2 (failureLimit 1)"
		if said := c.now("web").Status.WaitingFor; !strings.HasPrefix(said, refused) {
			return fmt.Errorf("it waits for %q", said)
		}
		return nil
	})
	if rate == measured.Bad && service.Runs() != "one" {
		c.t.Error("the second phase has begun")
	}
	if n := len(c.gates()); n != 1 {
		c.t.Fatalf("there are %d gates", n)
	}
	if err := service.CheckTwoWindows(&c.gates()[0], rate, "one"); err != nil {
		c.t.Error(err)
	}
}

// TestFaultTheManagerStopsWhileItMeasures stops the manager at each write of a gate that passes or is refused, and starts
// another one.
func TestFaultTheManagerStopsWhileItMeasures(t *testing.T) {
	measured.EachStop(t, 3, func(t *testing.T, begin fault.Begin, rate string) { newCluster(t).tellMeasured(begin, rate) })
}
