package hub_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	spillway "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/lab/testenv/measured"
)

const gated = `selector: {}, strategy: Incremental, rollout: {progressDeadlineSeconds: 3600, stages: [{name: all, gates: [{name: approve}]}]}`

// gateIsReached rolls a module to a revision whose gate a user decides only once the rollout
// has come to it.
func (w *world) gateIsReached(tag string) {
	w.t.Helper()
	w.module(tag, gated)
	w.then(func() error {
		for _, g := range w.gates() {
			if g.Spec.Stage == "all" && g.Spec.ReachedAt != nil {
				return nil
			}
		}
		return errors.New("no gate is reached: " + w.says())
	})
	w.arrives(fmt.Sprintf("a:%[1]s b:%[1]s c:%[1]s", tag), noFault)
}

// TestGateIsMeasured: the gate after the canary is measured once the canary is ready, stops
// the rollout, and is measured again when a user has deleted it.
func TestGateIsMeasured(t *testing.T) {
	w := newWorld(t)
	status, early := atomic.Int32{}, atomic.Bool{}
	status.Store(http.StatusNotFound)
	source404 := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		if w.runs() != "a:v1" {
			early.Store(true)
		}
		rw.WriteHeader(int(status.Load()))
	}))
	t.Cleanup(source404.Close)
	w.create(&spillway.GateTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "approve"},
		Spec:       spillway.GateTemplateSpec{HTTP: &spillway.HTTPGate{URL: source404.URL + "/{{ .stage }}/{{ .revision }}"}},
	})
	w.managed(w.requests, measured.Reached(t))
	w.clusters("a canary=true", "b")
	w.module("v1", canary)
	const refused = "canary is stopped: gate approve was refused: failed measurements: 1 (failureLimit 0); last: status 404"
	w.then(func() error {
		if s := w.status(); s.Phase != "Failed" || s.WaitingFor != refused {
			return errors.New(w.says())
		}
		return nil
	})
	if early.Load() || w.runs() != "a:v1" {
		t.Errorf("it was measured too early, or %s", w.runs())
	}
	status.Store(http.StatusOK)
	for _, g := range w.gates() {
		if err := w.client.Delete(t.Context(), &g); err != nil {
			t.Fatal(err)
		}
	}
	w.complete("a:v1 b:v1")
}

// tellMeasured tells the story of a module whose gate after the canary is measured twice, with
// one result, by a hub and its successor.
func (w *world) tellMeasured(begin fault.Begin, rate string) {
	w.t.Helper()
	service := measured.New(w.t)
	service.Says("canary", rate)
	service.Runs = w.runs
	w.create(service.TwoWindows(w.namespace, "approve"))
	w.clusters("a canary=true", "b")
	w.module("v1", canary)
	meanwhile := begin(func(i *fault.Injector) func() { return w.managed(i, service.ReachedBy(w.t, i)) })
	w.eventually(func() error {
		meanwhile()
		w.atRest(5 * time.Second)
		s := w.status()
		if rate != measured.Bad {
			if s.Phase != "Complete" || w.runs() != "a:v1 b:v1" {
				return errors.New(w.says())
			}
			return nil
		}
		const refused = "canary is stopped: gate approve was refused: failed measurements: 2 (failureLimit 1)"
		if s.Phase != "Failed" || !strings.HasPrefix(s.WaitingFor, refused) {
			return errors.New(w.says())
		}
		return nil
	})
	if ran := w.runs(); rate == measured.Bad && ran != "a:v1" {
		w.t.Errorf("they run %s", ran)
	}
	if n := len(w.gates()); n != 1 {
		w.t.Fatalf("there are %d gates", n)
	}
	if err := service.CheckTwoWindows(&w.gates()[0], rate, "a:v1"); err != nil {
		w.t.Error(err)
	}
}

// TestFaultTheManagerStopsWhileItMeasures stops the hub at each write of a gate
// that passes or is refused, and starts another one.
func TestFaultTheManagerStopsWhileItMeasures(t *testing.T) {
	measured.EachStop(t, 4, func(t *testing.T, begin fault.Begin, rate string) { newWorld(t).tellMeasured(begin, rate) })
}

// TestARefusedGateRollsBack: errors rise after the canary, and the clusters return to the revision
// that all of them had; another revision is tried again.
func TestARefusedGateRollsBack(t *testing.T) {
	w, service := newWorld(t), measured.New(t)
	spec := strings.Replace(canary, "{name: approve}", "{name: approve, onRefusal: Rollback}", 1)
	w.create(service.Template(w.namespace, "approve"))
	w.managed(w.requests, measured.Reached(t))
	w.clusters("a canary=true", "b")
	w.module("v1", spec)
	w.complete("a:v1 b:v1")
	service.Says("canary", measured.Bad)
	w.module("v2", spec)
	w.happens("a:v2")
	w.comes("a:v1 b:v1")
	w.waits("RolledBack", "failed and was rolled back: all clusters are at")
	if told := w.player.told("v2"); told != "a" {
		t.Errorf("v2 got to %s", told)
	}
	w.still("it was rolled back")
	service.Says("canary", measured.Fine)
	w.module("v3", spec)
	w.complete("a:v3 b:v3")
}
