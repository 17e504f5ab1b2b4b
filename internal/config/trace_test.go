package config_test

import (
	"slices"
	"strings"
	"testing"

	ref "github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/history"
	"github.com/spillway-dev/spillway/internal/lab/testenv/measured"
	"github.com/spillway-dev/spillway/internal/lab/testenv/traced"
	"github.com/spillway-dev/spillway/internal/manager"
)

// A release that stops at its first workload is a trace, also if the manager is restarted then:
// it says why with the sentence of the status, and its id is in the history of the Secret and in
// the messages. The release that follows the fix is another trace.
func TestAReleaseIsATrace(t *testing.T) {
	w := newWorld(t)
	w.options.CoalesceWindow = 0
	underGates(w, "stages: [{name: first, workloads: 1}, {name: rest}]")
	w.halt()
	r := traced.New(t)
	told := w.notified()
	traces := func(m *manager.Options) { m.Traces.Receiver = r.URL() }
	w.manage(measured.Reached(t), traces)
	w.secret("db", "p", "bad")
	failed := w.phase("staged", "Failed")
	id := w.traceOf("db")
	stopped := " > Failed: Failed " + failed.WaitingFor + " (error)"
	w.eventually(func() error { return r.Has(id, stopped) }) // its stage has not ended, so it has no name yet
	w.halt()
	w.manage(measured.Reached(t), traces)
	if again := w.traceOf("db"); again != id {
		t.Errorf("the trace is %s, and was %s", again, id)
	}
	w.secret("db", "p", "fixed")
	w.ready("app1", "app2", "app3")
	w.phase("staged", "Complete")
	const root = "Rollout Secret db"
	w.eventually(func() error {
		return r.Has(id, "Stage first"+stopped, root+": Superseded", root+" > Stage first: Superseded")
	})
	w.eventually(func() error {
		all := r.Traces()
		if !slices.ContainsFunc(all, func(other string) bool {
			return r.Has(other, root+": Complete", root+" > Stage first: Complete", root+" > Stage rest: Complete") == nil
		}) {
			return r.Has(id, "a trace that is complete, in "+strings.Join(all, ", "))
		}
		return nil
	})
	var ids []string
	for _, m := range told.Told() {
		ids = append(ids, m.Data.TraceID)
	}
	if !slices.Contains(ids, id) || slices.Contains(ids, "") {
		t.Errorf("messages have %q, want %s", ids, id)
	}
}

// traceOf is the trace of the release of a Secret that is under way, as the history has it.
func (w *world) traceOf(name string) string {
	w.t.Helper()
	entries, err := history.History(w.t.Context(), w.client, ref.Ref{Kind: "Secret", Namespace: w.namespace, Name: name})
	if err != nil || len(entries) == 0 || entries[0].Trace == "" {
		w.t.Fatal(entries, err)
	}
	return entries[0].Trace
}
