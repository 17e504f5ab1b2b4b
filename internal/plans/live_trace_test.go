package plans_test

import (
	"errors"
	"testing"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/history"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/lab/testenv/traced"
	"github.com/spillway-dev/spillway/internal/manager"
)

// TestAPlanIsATrace: a plan waits for a gate, the manager is restarted, and another one ends the
// plan. It is one trace, which says with the sentence of the status why the plan waited, and its id
// is in the history.
func TestAPlanIsATrace(t *testing.T) {
	c, r := newCluster(t), traced.New(t)
	traces := func(o *manager.Options) { o.Traces.Receiver = r.URL() }
	c.operator("app-1", twoPhases)
	stop := c.manageWith(fault.New(), traces)
	c.instanceWith("web", "app-1", "[{plan: deploy, phase: one, name: ok}]")
	const why = "phase one is waiting: gate ok is pending"
	c.waits("web", why)
	c.eventually(func() error {
		if len(c.gates()) == 0 {
			return errors.New("there is no RolloutGate")
		}
		return nil
	})
	const waited = " > GatePending: GatePending " + why
	id := r.Trace(waited)
	stop()
	c.approveEach(func(string) bool { return true })
	c.manageWith(fault.New(), traces)
	c.rests("web", "deploy Complete")
	const root = "Rollout Instance web"
	c.eventually(func() error {
		return r.Has(id, root+": Complete", root+" > Phase one: Complete", "Phase one > Step a: Complete", root+" > Phase two: Complete", "Phase two > Step b: Complete", root+waited)
	})
	entries, err := history.History(t.Context(), c.client, describe.Ref{Kind: describe.KindInstance, Namespace: c.namespace, Name: "web"})
	if err != nil || len(entries) == 0 || entries[0].Trace != id {
		t.Errorf("the history is %+v, %v; the trace is %s", entries, err, id)
	}
	if twice := r.Twice(); len(twice) > 0 {
		t.Errorf("spans with one id: %q", twice)
	}
}
