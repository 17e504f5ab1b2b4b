package config_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/lab/testenv/measured"
)

const gatedDuring = "stages: [{name: all, maxUnavailable: 1, gates: [{name: approve, when: During}]}]"

// tellThroughout tells the story of a release whose gate is measured while its only stage rolls, by
// a manager and its successor. A gate that is refused stops the workloads that have not been
// rolled yet; what they would be rolled for hangs, so that the first one is not ready before.
func tellThroughout(w *world, begin fault.Begin, rate string) *kubelets {
	w.t.Helper()
	w.options.CoalesceWindow = 0
	k, service := underGates(w, gatedDuring), measured.New(w.t)
	w.halt()
	service.Says("all", rate)
	if err := w.client.Create(w.t.Context(), service.Throughout(w.namespace, "approve")); err != nil {
		w.t.Fatal(err)
	}
	w.meanwhile = begin(func(i *fault.Injector) func() { return w.managedWith(i, service.ReachedBy(w.t, i)) })
	w.secret("db", "p", map[string]string{measured.Fine: "fine", measured.Bad: "hangs"}[rate])
	if rate == measured.Fine {
		w.ready("app1", "app2", "app3")
		w.phase("staged", "Complete")
	} else {
		w.saysWhy("app2", "GateRefused", "gate approve was refused: failed measurements: 1 (failureLimit 0)")
		w.eventually(func() error {
			if said := w.status("staged").WaitingFor; !strings.Contains(said, "all is stopped: gate approve was refused: failed measurements: 1") {
				return errors.New(said)
			}
			return nil
		})
		if ran := k.ranWith("hangs"); !slices.Equal(ran, []string{"app1"}) {
			w.t.Errorf("%v ran the value", ran)
		}
	}
	w.eventually(func() error { return service.CheckThroughout(w.gate(), rate) })
	return k
}

// A gate stops a stage while it rolls, until a user approves it after all. The release that
// follows has a gate of its own.
func TestAGateStopsAStageWhileItRolls(t *testing.T) {
	w := newWorld(t)
	k := tellThroughout(w, fault.New().WithSuccessor, measured.Bad)
	g := w.gate()
	if s := g.Spec; s.When != "During" || s.EndedAt != nil || s.Stage != "all" {
		t.Errorf("the gate is %+v", s)
	}
	w.decide(g, metav1.ConditionTrue, "it is the network")
	w.secret("db", "p", "fine")
	w.eventually(func() error {
		if now := w.gate(); now.UID == g.UID || now.Status.Measurement == nil {
			return errors.New("the next content has no gate that is measured")
		}
		return nil
	})
	w.decide(w.gate(), metav1.ConditionTrue, "it is the network")
	w.ready("app1", "app2", "app3")
	w.phase("staged", "Complete")
	if ran := k.ranWith("fine"); len(ran) != 3 {
		t.Errorf("%v ran the value", ran)
	}
}

// TestFaultTheManagerStopsDuringAStage stops the manager at each write of a gate
// that is measured while a stage rolls, and starts another one.
func TestFaultTheManagerStopsDuringAStage(t *testing.T) {
	measured.EachStopDuring(t, 2, func(t *testing.T, begin fault.Begin, rate string) { tellThroughout(newWorld(t), begin, rate) })
}
