package config_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/lab/testenv/measured"
	"github.com/spillway-dev/spillway/internal/lab/testenv/traced"
	"github.com/spillway-dev/spillway/internal/manager"
)

// No beginning and no end of releases that follow one another is lost: a Notifier tells them, and both are traces that
// have ended.
func TestTheEndOfARelease(t *testing.T) {
	w := newWorldNow(t)
	w.options.CoalesceWindow = 0
	underGates(w, "stages: [{name: first, workloads: 1}, {name: rest}]")
	w.halt()
	told, spans := w.notified(), traced.New(t)
	w.managedWith(fault.New(), measured.Reached(t), func(m *manager.Options) { m.Traces.Receiver = spans.URL() })
	for _, value := range []string{"fine", "next"} {
		w.secret("db", "p", value)
		w.ready("app1", "app2", "app3")
		w.phase("staged", "Complete")
	}
	w.eventually(func() error {
		var ids, said []string
		for _, m := range told.Told() {
			if !slices.Contains(ids, m.ID) { // at least once
				ids, said = append(ids, m.ID), append(said, m.Data.Phase+" "+m.Data.Reason)
			}
		}
		slices.Sort(said)
		if want := []string{"Ended Complete", "Ended Complete", "Started Running", "Started Running"}; !slices.Equal(said, want) {
			return fmt.Errorf("told %q", said)
		}
		return nil
	})
	w.eventually(func() error {
		ended := 0
		for _, id := range spans.Traces() {
			if spans.Has(id, "Rollout Secret db: Complete", "Rollout Secret db > Stage first: Complete", "Rollout Secret db > Stage rest: Complete") == nil {
				ended++
			}
		}
		if ended < 2 { // the release with which the world began may be one more
			return fmt.Errorf("%d traces have ended, of %s", ended, strings.Join(spans.Traces(), ", "))
		}
		return nil
	})
}
