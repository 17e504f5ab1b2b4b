//go:build prometheus

package hub_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/measured"
	"github.com/spillway-dev/spillway/internal/lab/testenv/receiver"
	"github.com/spillway-dev/spillway/internal/lab/testenv/traced"
	"github.com/spillway-dev/spillway/internal/manager"
)

// TestPrometheus: a real Prometheus sees the errors of a service rise as soon as the canary runs
// the new revision. The rollout stops there, says so in an Event, a message and a metric, and
// returns to the former revision, as the Module asks.
func TestPrometheus(t *testing.T) {
	w, r, spans, fixed := newWorld(t), receiver.New(t), traced.New(t), atomic.Bool{}
	p := measured.NewPrometheus(t, map[string]func() bool{
		"canary": func() bool { return w.player.told("v2") != "" && !fixed.Load() },
	})
	testenv.InstallKinds(t, w.client, "../../../charts/spillway/generated/notify/*.yaml")
	w.create(p.Template(w.namespace, "approve"))
	w.create(r.Notifier(w.namespace)...)
	w.managed(w.requests, measured.Reached(t), func(o *manager.Options) { o.Traces.Receiver = spans.URL() })
	w.clusters("a canary=true", "b")
	spec := strings.Replace(canary, "{name: approve}", "{name: approve, onRefusal: Rollback}", 1)
	w.module("v1", spec)
	w.complete("a:v1 b:v1")
	w.module("v2", spec)
	w.waits("RolledBack", "failed and was rolled back: all clusters are at")
	w.comes("a:v1 b:v1")
	if told := w.player.told("v2"); told != "a" {
		t.Errorf("v2 got to %s", told)
	}
	const why = "gate approve of canary was refused: failed measurements: 1 (failureLimit 0); last: value "
	if events := w.events(); !strings.Contains(events, why) {
		t.Errorf("the Events are %s", events)
	}
	w.eventually(func() error { return r.Heard("Returned Module/app: ") })
	spans.Trace("Rollout Module app: RolledBack")
	p.Has(`spillway_fleet_module_phase{namespace="` + w.namespace + `",module="app",phase="RolledBack"} == 1`)
	p.Has(`spillway_gates_verdicts_total{verdict="Refused"} > 0`)
	p.Has(`spillway_rollouts_total{ring="fleet",outcome="RolledBack"} > 0`)

	fixed.Store(true)
	w.module("v3", spec)
	w.complete("a:v3 b:v3")
	p.Shows("../../../monitoring/dashboards/fleet.json", "Syncs") // clusters have these: see the test there
}
