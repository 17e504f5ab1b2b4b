//go:build prometheus

package config_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/spillway-dev/spillway/internal/lab/testenv/measured"
	"github.com/spillway-dev/spillway/internal/lab/testenv/traced"
	"github.com/spillway-dev/spillway/internal/manager"
)

// TestPrometheus: a real Prometheus sees the errors of a service rise as soon as the first stage
// runs a value that makes it slow. The release stops there and says so in the status, an Event, a message, a
// metric and a trace; a fixed value is released.
func TestPrometheus(t *testing.T) {
	w := newWorld(t)
	w.options.CoalesceWindow = 0
	k := underGates(w, gatedStages)
	p := measured.NewPrometheus(t, map[string]func() bool{
		"first": func() bool { return len(k.ranWith("slow")) > 0 && len(k.ranWith("fixed")) == 0 },
	})
	w.halt()
	told, spans := w.notified(), traced.New(t)
	if err := w.client.Create(t.Context(), p.Template(w.namespace, "approve")); err != nil {
		t.Fatal(err)
	}
	w.manage(measured.Reached(t), func(o *manager.Options) { o.Traces.Receiver = spans.URL() })
	w.secret("db", "p", "slow")
	const why = "gate approve was refused: failed measurements: 1 (failureLimit 0); last: value "
	w.saysWhy("app2", "WaitingForPrevious", why)
	release := w.phase("staged", "Failed")
	w.hears(told, "Started Secret/db: ", "Stopped Secret/db: "+release.WaitingFor)
	if !strings.Contains(release.WaitingFor, why) {
		t.Errorf("the release says %q", release.WaitingFor)
	}
	w.eventually(func() error {
		said := strings.Replace(why, "approve", "approve of first", 1)
		if !slices.ContainsFunc(w.events("GateRefused"), func(e corev1.Event) bool { return strings.Contains(e.Message, said) }) {
			return errors.New("no Event says that the gate was refused")
		}
		return nil
	})
	spans.Trace(" > Failed: Failed " + release.WaitingFor + " (error)")
	p.Has(`spillway_config_waiting_workloads > 0`)
	p.Has(`spillway_gates_verdicts_total{verdict="Refused"} > 0`)

	w.secret("db", "p", "fixed")
	w.ready("app1", "app2", "app3")
	w.phase("staged", "Complete")
	p.Shows("../../monitoring/dashboards/config.json")
}
