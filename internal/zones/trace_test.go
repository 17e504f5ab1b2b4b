package zones_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/history"
	"github.com/spillway-dev/spillway/internal/lab/testenv/measured"
	"github.com/spillway-dev/spillway/internal/lab/testenv/receiver"
	"github.com/spillway-dev/spillway/internal/lab/testenv/traced"
	"github.com/spillway-dev/spillway/internal/manager"
)

// traceInHistory is the trace of the newest rollout, as spillway history -o json has it.
func (w *world) traceInHistory() string {
	w.t.Helper()
	entries, err := history.History(w.t.Context(), w.client, describe.Ref{Kind: describe.KindGroup, Namespace: w.namespace, Name: ingester})
	if err != nil || len(entries) == 0 {
		w.t.Fatal(entries, err)
	}
	raw, err := json.Marshal(entries[0])
	printed := struct {
		Trace string `json:"trace"`
	}{}
	if err != nil || json.Unmarshal(raw, &printed) != nil || printed.Trace == "" {
		w.t.Fatalf("%s, %v", raw, err)
	}
	return printed.Trace
}

// TestRolloutIsATrace: a rollout stops at a gate, the manager is restarted, and another one
// ends the rollout. It is one trace, which says why it stopped with the sentence of the status,
// and its id is in the history and in each message.
func TestRolloutIsATrace(t *testing.T) {
	w, p, r, told := newWorld(t), measured.New(t), traced.New(t), receiver.New(t)
	p.Says("zone-b", "0.2")
	w.create(p.Template(w.namespace, "error-rate"))
	stop := w.manage()
	w.settles(onDelete)
	stop()
	traces := func(o *manager.Options) { o.Traces.Receiver = r.URL() }
	stop = w.manage(measured.Reached(t), traces)
	w.patch(&v1alpha1.RolloutGroup{}, ingester, `{"spec":{"gates":[{"name":"error-rate"}]}}`)
	w.create(told.Notifier(w.namespace)...)
	w.roll("v2")
	const why = "zone-b is stopped: gate error-rate was refused: failed measurements: 1 (failureLimit 0); last: value 0.2"
	w.saysEventually("Failed", why)
	id := w.traceInHistory()
	const root = "Rollout RolloutGroup ingester"
	const refused = " > GateRefused: GateRefused " + why + " (error)"
	// The spans around these have not ended, so they have no names yet.
	w.eventually(func() error {
		return r.Has(id, " > Zone zone-a: Complete", "Zone zone-a > Pod zone-a-0: Complete", "Zone zone-a > Pod zone-a-2: Complete", refused)
	})
	if slices.ContainsFunc(r.Spans(id), func(line string) bool { return line == root+": Failed" }) {
		t.Errorf("a rollout that may go on has ended: %q", r.Spans(id))
	}
	stop()
	w.patch(&v1alpha1.RolloutGroup{}, ingester, `{"spec":{"gates":[{"name":"error-rate","onRefusal":"Continue"}]}}`)
	w.manage(measured.Reached(t), traces)
	w.complete("v2")
	w.eventually(func() error {
		return r.Has(id, root+": Complete", root+" > Zone zone-a: Complete", root+" > Zone zone-b: Complete", root+" > Zone zone-c: Complete",
			"Zone zone-c > Pod zone-c-1: Complete", "Zone zone-b"+refused)
	})
	if again := w.traceInHistory(); again != id {
		t.Errorf("the trace is %s, and was %s", again, id)
	}
	if twice := r.Twice(); len(twice) > 0 {
		t.Errorf("spans with one id: %q", twice)
	}
	w.eventually(func() error {
		var sent []string
		for _, m := range told.Told() {
			sent = append(sent, m.Data.Phase+" "+m.Data.TraceID)
		}
		if want := []string{"Started " + id, "Stopped " + id, "Ended " + id}; !slices.Equal(sent, want) {
			return fmt.Errorf("received %q, want %q", sent, want)
		}
		return nil
	})
}
