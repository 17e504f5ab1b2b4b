package hub_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/lab/testenv/measured"
)

const (
	gatedDuring   = `selector: {}, strategy: Incremental, rollout: {progressDeadlineSeconds: 3600, maxUnreadyClusters: 1, stages: [{name: all, gates: [{name: approve, when: During}]}]}`
	refusedDuring = "all is stopped: gate approve was refused: failed measurements: 1 (failureLimit 0)"
)

// tellThroughout tells the story of a module whose gate is measured while its only stage rolls, by
// a hub and its successor. Where it is refused, the first cluster is not ready before, so that the
// second one still waits for its turn.
func (w *world) tellThroughout(begin fault.Begin, rate string) *measured.Service {
	w.t.Helper()
	service := measured.New(w.t)
	service.Says("all", rate)
	if rate == measured.Bad {
		w.player.decree(v1alpha1.StateUpdating, "v1")
	}
	w.create(service.Throughout(w.namespace, "approve"))
	w.clusters("a", "b")
	w.module("v1", gatedDuring)
	meanwhile := begin(func(i *fault.Injector) func() { return w.managed(i, service.ReachedBy(w.t, i)) })
	w.eventually(func() error {
		meanwhile()
		w.atRest(5 * time.Second)
		s := w.status()
		if rate == measured.Bad && strings.HasPrefix(s.WaitingFor, refusedDuring) || rate == measured.Fine && s.Phase == "Complete" && w.runs() == "a:v1 b:v1" {
			return nil
		}
		return errors.New(w.says())
	})
	if told := w.player.told("v1"); rate == measured.Bad && len(told) != 1 {
		w.t.Errorf("%q got it", told)
	}
	if n := len(w.gates()); n != 1 {
		w.t.Fatalf("there are %d gates", n)
	}
	if err := service.CheckThroughout(&w.gates()[0], rate); err != nil {
		w.t.Error(err)
	}
	return service
}

// TestGateStopsAStageWhileItRolls: a gate stops a stage after its first cluster, until the gate is
// deleted, and measured again.
func TestGateStopsAStageWhileItRolls(t *testing.T) {
	w := newWorld(t)
	service := w.tellThroughout(fault.New().WithSuccessor, measured.Bad)
	w.player.decree(v1alpha1.StateSucceeded, "v1")
	w.waits("Failed", refusedDuring)
	service.Says("all", measured.Fine)
	g := w.gates()[0]
	w.remove(&g, g.Name)
	w.barrier.Step(t, time.Minute) // it is measured once more at the end of the stage
	w.complete("a:v1 b:v1")
	if err := service.CheckThroughout(&w.gates()[0], measured.Fine); err != nil && !strings.Contains(err.Error(), "it was asked") {
		t.Error(err)
	}
}

// TestARefusalDuringAStageRollsBack: a gate is refused while the first cluster of a stage is updating,
// and it returns to the revision that all clusters had.
func TestARefusalDuringAStageRollsBack(t *testing.T) {
	w, service := newWorld(t), measured.New(t)
	spec := strings.Replace(gatedDuring, "when: During", "when: During, onRefusal: Rollback", 1)
	w.create(service.Throughout(w.namespace, "approve"))
	w.managed(w.requests, measured.Reached(t))
	w.clusters("a", "b")
	w.module("v1", spec)
	w.barrier.Step(t, time.Minute) // it is measured once more at the end of the stage
	w.complete("a:v1 b:v1")
	service.Says("all", measured.Bad)
	w.player.decree(v1alpha1.StateUpdating, "v2")
	w.module("v2", spec)
	w.waits("RolledBack", "failed and was rolled back: all clusters are at")
	w.comes("a:v1 b:v1")
	if told := w.player.told("v2"); len(told) != 1 {
		t.Errorf("v2 got to %q", told)
	}
}

// TestFaultTheManagerStopsDuringAStage stops the hub at each write of a gate that is measured
// while a stage rolls, and starts another one.
func TestFaultTheManagerStopsDuringAStage(t *testing.T) {
	measured.EachStopDuring(t, 3, func(t *testing.T, begin fault.Begin, rate string) { newWorld(t).tellThroughout(begin, rate) })
}
