package zones_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv/measured"
	"github.com/spillway-dev/spillway/internal/lab/testenv/receiver"
)

// TestNotifierTellsOfARollout: a rollout that begins, stops at a gate, continues and ends gives
// exactly these messages, with the sentence of the status and of the Event.
func TestNotifierTellsOfARollout(t *testing.T) {
	w, p, r := newWorld(t), measured.New(t), receiver.New(t)
	p.Says("zone-b", "0.2")
	w.create(p.Template(w.namespace, "error-rate"))
	w.gated(onDelete, `[{"name":"error-rate"}]`, measured.Reached(t))
	w.create(r.Notifier(w.namespace)...)
	w.roll("v2")
	const why = "zone-b is stopped: gate error-rate was refused: failed measurements: 1 (failureLimit 0); last: value 0.2"
	w.saysEventually("Failed", why)
	message := func(phase, sentence, verb string) (m receiver.Message) {
		m.Subject, m.Data.Phase, m.Data.Sentence = "RolloutGroup/ingester", phase, sentence
		m.Data.Next = "spillway " + verb + " rolloutgroup/ingester -n " + w.namespace
		return m
	}
	want := []receiver.Message{message("Started", "", "explain"), message("Stopped", why, "explain")}
	tells := func() {
		t.Helper()
		w.eventually(func() error {
			told := r.Told()
			for i := range told {
				told[i].ID, told[i].Data.Reason = "", ""
			}
			if !slices.Equal(told, want) {
				return fmt.Errorf("told %+v, want %+v", told, want)
			}
			return nil
		})
	}
	tells()
	w.patch(&v1alpha1.RolloutGroup{}, ingester, `{"spec":{"gates":[{"name":"error-rate","onRefusal":"Continue"}]}}`)
	w.complete("v2")
	want = append(want, message("Ended", "", "history"))
	tells()
	w.eventually(func() error { // what was received is then recorded as delivered
		n := &v1alpha1.Notifier{}
		if err := w.get(n, receiver.Name); err != nil {
			return err
		}
		if len(n.Status.Queue) > 0 {
			return fmt.Errorf("%d messages are not recorded as delivered", len(n.Status.Queue))
		}
		return nil
	})
	w.rests()
	tells()
}
