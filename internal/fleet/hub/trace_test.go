package hub_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/history"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/lab/testenv/traced"
	"github.com/spillway-dev/spillway/internal/manager"
)

// TestARolloutOfAModuleIsATrace: a module waits for the gate after its canary, the hub is
// restarted, and another one ends the rollout. It is one trace, which says with the sentence of the
// status why the rollout waited, and its id is in the history.
func TestARolloutOfAModuleIsATrace(t *testing.T) {
	w, r := newWorld(t), traced.New(t)
	traces := func(o *manager.Options) { o.Traces.Receiver = r.URL() }
	stop := w.managed(w.requests, traces)
	w.clusters("a canary=true", "b")
	w.module("v1", canary)
	const why = "canary is waiting: gate approve is pending"
	w.waits("Waiting", why)
	const waited = " > GatePending: GatePending " + why
	id := r.Trace(waited)
	stop()
	w.decide("canary", metav1.ConditionTrue)
	w.managed(w.requests, traces)
	w.complete("a:v1 b:v1")
	const root = "Rollout Module app"
	w.eventually(func() error {
		return r.Has(id, root+": Complete", root+" > Stage canary: Complete", root+" > Stage rest: Complete", "Stage canary"+waited)
	})
	entries, err := history.History(t.Context(), w.client, describe.Ref{Kind: model.KindModule, Namespace: w.namespace, Name: app})
	if err != nil || len(entries) == 0 || entries[0].Trace != id {
		t.Errorf("the history is %+v, %v; the trace is %s", entries, err, id)
	}
	if twice := r.Twice(); len(twice) > 0 {
		t.Errorf("spans with one id: %q", twice)
	}
}
