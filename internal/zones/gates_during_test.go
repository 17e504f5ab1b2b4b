package zones_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/lab/testenv/measured"
)

// throughout is a gate that is measured while a zone rolls, and Pods of which the second waits
// until the gate can have been measured.
const throughout = `"gates":[{"name":"error-rate","when":"During"}],"minReadySeconds":%d`

// TestGateStopsWithinAZone: the error rate rises while a zone rolls. The Pods that have not
// been replaced stay, no other zone is begun, and the group says why. A user approves
// the gate after all, and the rollout continues. Each Pod of the zone becomes ready when the test
// lets it, so that no load decides how far the zone is when its gate is measured.
func TestGateStopsWithinAZone(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, w *world, strategy string) {
		p := measured.New(t)
		w.create(p.Throughout(w.namespace, "error-rate"))
		w.manage(measured.Reached(t))
		w.settles(strategy, replicas(2))
		w.patch(&v1alpha1.RolloutGroup{}, ingester, `{"spec":{`+fmt.Sprintf(throughout, 0)+`}}`)
		w.behave("v2", "never-ready", "zone-b")
		// A StatefulSet begins with the highest, the manager with the lowest.
		first, second, half := "zone-b-0", "zone-b-1", "zone-b: v2 v1"
		if strategy == rollingUpdate {
			first, second, half = second, first, "zone-b: v1 v2"
		}
		w.runs(strings.Replace(half, "v2", "v2!", 1))
		w.roll("v2", "zone-a", "zone-c")
		p.Says("zone-b", measured.Bad)
		const refused = "zone-b is stopped: gate error-rate was refused: failed measurements: 1 (failureLimit 0); last: value 0.2"
		w.saysEventually("Progressing", refused) // the first Pod is not ready yet
		w.becomesReady(first, "v2")
		w.saysEventually("Failed", refused)
		w.rests()
		w.runs("zone-a: v1 v1", half, "zone-c: v1 v1")
		if l := w.group().Status.Lock; l != nil {
			t.Errorf("it keeps the lock: %+v", l)
		}
		if g := w.gates(); len(g) != 1 || g[0].Spec.EndedAt != nil || g[0].Spec.When != "During" {
			t.Errorf("the gates are %+v", g)
		}
		w.approves("zone-b")
		w.becomesReady(second, "v2")
		w.complete("v2")
		for _, g := range w.gates() {
			if g.Spec.Stage == "zone-b" {
				continue
			}
			if err := p.CheckThroughout(&g, measured.Fine); err != nil {
				t.Error(err)
			}
		}
	})
}

// approves approves the gates of a zone, whatever was measured.
func (w *world) approves(zone string) {
	w.t.Helper()
	for _, g := range w.gates() {
		if g.Spec.Stage != zone {
			continue
		}
		g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.GatePassed, Status: metav1.ConditionTrue, Reason: "Approved", LastTransitionTime: metav1.Now()}}
		if err := w.client.Status().Update(w.t.Context(), &g); err != nil {
			w.t.Fatal(err)
		}
	}
}

// TestFaultTheManagerStopsDuringAZone stops the manager at each write of a gate that is
// measured while a zone rolls, and starts another one.
func TestFaultTheManagerStopsDuringAZone(t *testing.T) {
	measured.EachStopDuring(t, 2, func(t *testing.T, begin fault.Begin, rate string) { newWorld(t).measuredThroughout(begin, rate) })
}

// measuredThroughout rolls a zone with a gate during it, by a manager and its successor.
func (w *world) measuredThroughout(begin fault.Begin, rate string) {
	w.t.Helper()
	p := measured.New(w.t)
	p.Says("zone-a", rate)
	w.create(p.Throughout(w.namespace, "error-rate"))
	meanwhile := begin(func(i *fault.Injector) func() { return w.managed(i, p.ReachedBy(w.t, i)) })
	w.create(zone("zone-a", onDelete, replicas(2)))
	w.complete("v1", "zone-a")
	seconds := map[string]int{measured.Fine: 0, measured.Bad: 60}[rate]
	w.patch(&v1alpha1.RolloutGroup{}, ingester, `{"spec":{`+fmt.Sprintf(throughout, seconds)+`}}`)
	w.roll("v2", "zone-a")
	w.eventually(func() error {
		meanwhile()
		const refused = "zone-a is stopped: gate error-rate was refused: failed measurements: 1 (failureLimit 0)"
		switch got := w.images("zone-a"); {
		case rate == measured.Bad && strings.HasPrefix(w.group().Status.WaitingFor, refused) && got != "v2 v2":
			return nil
		case rate == measured.Bad || got != "v2 v2":
			return fmt.Errorf("zone-a runs %s: %s", got, w.says())
		}
		return w.isComplete()
	})
	if n := len(w.gates()); n != 1 {
		w.t.Fatalf("there are %d gates", n)
	}
	if err := p.CheckThroughout(&w.gates()[0], rate); err != nil {
		w.t.Error(err)
	}
}
