//go:build prometheus

package plans_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/lab/testenv/measured"
	"github.com/spillway-dev/spillway/internal/lab/testenv/receiver"
	"github.com/spillway-dev/spillway/internal/lab/testenv/traced"
	"github.com/spillway-dev/spillway/internal/manager"
)

// TestPrometheus: a real Prometheus sees the errors of a service rise after a step. The plan
// stops there and says so in the status, an Event, a message, a metric and a trace; once the service is
// healthy, and the gate is asked again, the plan continues.
func TestPrometheus(t *testing.T) {
	c, r, spans, ill := newCluster(t), receiver.New(t), traced.New(t), atomic.Bool{}
	ill.Store(true)
	p := measured.NewPrometheus(t, map[string]func() bool{"deploy/one/a": ill.Load})
	c.operator("app-1", twoPhases)
	for _, obj := range append(r.Notifier(c.namespace), p.Template(c.namespace, "smoke")) {
		if err := c.client.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	c.manageWith(fault.New(), measured.Reached(t), func(o *manager.Options) {
		o.Notify.Off, o.Traces.Receiver = false, spans.URL()
	})
	c.instanceWith("web", "app-1", "[{plan: deploy, phase: one, step: a, name: smoke}]")
	const refused = "step a is stopped: gate smoke was refused: failed measurements: 1 (failureLimit 0); last: value "
	c.eventually(func() error {
		if said := c.now("web").Status.WaitingFor; !strings.HasPrefix(said, refused) {
			return fmt.Errorf("it waits for %q", said)
		}
		return nil
	})
	why := c.now("web").Status.WaitingFor
	c.warns("GateRefused", why)
	c.eventually(func() error { return r.Heard("Stopped Instance/web: " + why) })
	spans.Trace(" > GateRefused: GateRefused " + why + " (error)")
	p.Has(`spillway_waiting_units{ring="plans",reason="GateRefused"} > 0`)
	if c.data("b") != nil {
		t.Error("the second phase has begun")
	}

	ill.Store(false)
	c.remove(&v1alpha1.RolloutGate{}, c.gates()[0].Name)
	c.rests("web", "deploy Complete")
	c.eventually(func() error { return r.Heard("Ended Instance/web: ") })
	p.Has(`spillway_rollouts_total{ring="plans",outcome="Complete"} > 0`)
	// The first execution is not an increase of what was not counted before.
	c.operator("app-2", strings.NewReplacer("{name: a}}", "{name: c}}", "{name: b}}", "{name: d}}").Replace(twoPhases))
	c.instanceWith("again", "app-2", "[]")
	c.rests("again", "deploy Complete")
	p.Shows("../../monitoring/dashboards/plans.json")
}
