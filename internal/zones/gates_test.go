package zones_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/lab/testenv/measured"
	"github.com/spillway-dev/spillway/internal/manager"
)

// gated makes a group of three zones with a gate between them.
func (w *world) gated(strategy, gates string, change ...func(*manager.Options)) {
	w.t.Helper()
	w.manage(change...)
	w.settles(strategy)
	w.patch(&v1alpha1.RolloutGroup{}, ingester, `{"spec":{"gates":`+gates+`}}`)
}

func (w *world) gates() []v1alpha1.RolloutGate {
	w.t.Helper()
	list := &v1alpha1.RolloutGateList{}
	if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// TestGateStopsAtTheSecondZone: the error rate rises once the second zone has the new
// revision. The rollout stops there and says why; when a user goes back, nothing is asked
// of the zone that was good, and what is about the bad revision is deleted.
func TestGateStopsAtTheSecondZone(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, w *world, strategy string) {
		p := measured.New(t)
		p.Says("zone-b", "0.2")
		w.create(p.Template(w.namespace, "error-rate"))
		w.gated(strategy, `[{"name":"error-rate"}]`, measured.Reached(t))
		if len(w.gates()) > 0 {
			t.Error("a group that is complete has gates")
		}
		w.roll("v2")
		w.runs("zone-a: v2 v2 v2", "zone-b: v2 v2 v2", "zone-c: v1 v1 v1")
		w.waitsFor("Failed", "zone-b is stopped: gate error-rate was refused: failed measurements: 1 (failureLimit 0); last: value 0.2")
		if len(p.Asked("zone-a")) != 1 || len(p.Asked("zone-b")) != 1 || len(p.Asked("zone-c")) != 0 {
			t.Errorf("asked: %v", p.Asked(""))
		}
		if l := w.group().Status.Lock; l != nil {
			t.Errorf("it keeps the lock: %+v", l)
		}
		w.rests()
		if err := w.retry(); err == nil || !strings.Contains(err.Error(), "rolloutgroup/ingester is stopped by a gate that was refused, and not by a Pod") {
			t.Errorf("the retry says %v", err)
		}

		w.roll("v1", "zone-b")
		w.roll("v2", "zone-c") // as it is already at v1, this one is news
		w.complete("v2", "zone-c")
		w.barrier.Wait(t)
		for _, g := range w.gates() {
			if g.Spec.Stage == "zone-b" {
				t.Errorf("%s is about %s", g.Name, g.Spec.Revision)
			}
		}
		if len(p.Asked("zone-b")) != 1 || len(p.Asked("zone-c")) != 1 {
			t.Errorf("asked: %v", p.Asked(""))
		}
	})
}

// TestGateDecidedByHand: a gate without a GateTemplate waits for a user.
func TestGateDecidedByHand(t *testing.T) {
	w := newWorld(t)
	w.gated(onDelete, `[{"name":"approve"}]`)
	w.roll("v2")
	w.runs("zone-a: v2 v2 v2", "zone-b: v1 v1 v1")
	w.waitsFor("Waiting", "zone-a is waiting: gate approve is pending")
	w.approvesAll("v2")
	w.goes(9, "zone-a", "zone-b", "zone-c")
}

// TestAGroupDoesNotRollBack: a group has nothing that it returns to automatically, and the API server
// says so.
func TestAGroupDoesNotRollBack(t *testing.T) {
	w := newWorld(t)
	g := &v1alpha1.RolloutGroup{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "returns"}}
	g.Spec.Gates = []v1alpha1.ZoneGate{{GateReference: v1alpha1.GateReference{Name: "approve", OnRefusal: "Rollback"}}}
	err := w.client.Create(t.Context(), g, client.DryRunAll)
	if err == nil || !strings.Contains(err.Error(), "must be Stop or Continue: only a Module returns to the previous revision when a gate is refused") {
		t.Errorf("the API server says %v", err)
	}
}

// approvesAll decides the gates until the group is complete.
func (w *world) approvesAll(image string) {
	w.t.Helper()
	w.eventually(func() error {
		for _, g := range w.gates() {
			if len(g.Status.Conditions) == 0 {
				g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.GatePassed, Status: metav1.ConditionTrue, Reason: "Approved", LastTransitionTime: metav1.Now()}}
				if err := w.client.Status().Update(w.t.Context(), &g); err != nil {
					return err
				}
			}
		}
		if got := w.images("zone-c"); got != strings.TrimSpace(strings.Repeat(image+" ", 3)) {
			return fmt.Errorf("zone-c runs %s: %s", got, w.says())
		}
		return w.isComplete()
	})
}

// TestGateThatIsOnlyNoted: a refusal lets the rollout through if the group says so, or if
// the template is a dry run.
func TestGateThatIsOnlyNoted(t *testing.T) {
	for name, test := range map[string]struct {
		gates  string
		dryRun bool
		want   string
	}{
		"onRefusal: Continue": {`[{"name":"error-rate","onRefusal":"Continue"}]`, false, "False: failed measurements: 1 (failureLimit 0); last: value 0.2"},
		"dryRun":              {`[{"name":"error-rate"}]`, true, "True: dry run: it would be refused: failed measurements: 1 (failureLimit 0); last: value 0.2"},
	} {
		t.Run(name, func(t *testing.T) {
			w, p := newWorld(t), measured.New(t)
			p.Says("zone", "0.2")
			template := p.Template(w.namespace, "error-rate")
			template.Spec.DryRun = test.dryRun
			w.create(template)
			w.gated(onDelete, test.gates, measured.Reached(t))
			w.roll("v2")
			w.complete("v2")
			w.barrier.Wait(t)
			for _, g := range w.gates() {
				if c := g.Status.Conditions[0]; string(c.Status)+": "+c.Message != test.want {
					t.Errorf("%s says %s: %s", g.Spec.Stage, c.Status, c.Message)
				}
			}
		})
	}
}

// TestFaultTheManagerStopsWhileItMeasures stops the manager at each write of a gate of a rollout, and starts another one:
// each zone is measured as often as the template says, and the end is the same.
func TestFaultTheManagerStopsWhileItMeasures(t *testing.T) {
	ofGates := func(r fault.Request) bool { return strings.HasPrefix(r.Resource, "rolloutgates") }
	for _, when := range []fault.When{fault.Before, fault.After} {
		t.Run(when.String(), func(t *testing.T) {
			w := newWorld(t)
			if n := fault.Relay(when, ofGates, w.measuredStory); n != 2*3 { // each gate is created, and measured
				t.Errorf("%d writes of gates", n)
			}
		})
	}
}

// measuredStory rolls three zones with a gate between them, by a manager and its successor.
func (w *world) measuredStory(begin fault.Begin) {
	w.t.Helper()
	p := measured.New(w.t)
	w.create(p.Template(w.namespace, "error-rate"))
	meanwhile := begin(func(i *fault.Injector) func() { return w.managed(i, p.ReachedBy(w.t, i)) })
	w.settles(onDelete, replicas(1))
	w.patch(&v1alpha1.RolloutGroup{}, ingester, `{"spec":{"gates":[{"name":"error-rate"}]}}`)
	w.roll("v2")
	w.eventually(func() error {
		meanwhile()
		if got := w.images("zone-c"); got != "v2" {
			return fmt.Errorf("zone-c runs %s: %s", got, w.says())
		}
		return w.isComplete()
	})
	w.goes(3, "zone-a", "zone-b", "zone-c")
	for _, g := range w.gates() {
		if m := g.Status.Measurement; m == nil || m.Succeeded != 1 || m.Verdict != v1alpha1.VerdictPassed {
			w.t.Errorf("%s: %+v", g.Spec.Stage, m)
		}
	}
	for _, zone := range []string{"zone-a", "zone-b", "zone-c"} {
		if n := len(p.Asked(zone)); n < 1 || n > 2 { // once more if the manager did not live to write it
			w.t.Errorf("%s was asked about %d times", zone, n)
		}
	}
}

// gateOfTwoRevisions rolls a group to a revision that waits for a gate during its zone, and then
// to another one, whose gate takes its place.
func (w *world) gateOfTwoRevisions(group string) {
	w.t.Helper()
	w.patch(&v1alpha1.RolloutGroup{}, group, `{"spec":{"gates":[{"name":"approve","when":"During"}]}}`)
	first := ""
	for _, image := range []string{"v3", "v4"} {
		w.roll(image, group)
		w.eventually(func() error {
			gates := w.gates()
			if len(gates) != 1 || gates[0].Spec.Revision == first || gates[0].Spec.EndedAt == nil {
				return fmt.Errorf("%d gates, the first is about %s, and the zone rolls", len(gates), first)
			}
			return nil
		})
		first = w.gates()[0].Spec.Revision
	}
}
