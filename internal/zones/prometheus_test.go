//go:build prometheus

package zones_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/measured"
	"github.com/spillway-dev/spillway/internal/lab/testenv/receiver"
	"github.com/spillway-dev/spillway/internal/lab/testenv/traced"
	"github.com/spillway-dev/spillway/internal/manager"
)

// TestPrometheus: a real Prometheus sees the errors of a service rise as soon as the second zone
// runs the new revision. The rollout stops there and says so in the status, an Event, a message,
// a metric and a trace, until the group lets it continue. Replicas change, and a Pod is evicted, so
// that all panels show something.
func TestPrometheus(t *testing.T) {
	w, r, spans := newWorld(t), receiver.New(t), traced.New(t)
	p := measured.NewPrometheus(t, map[string]func() bool{
		"zone-a": func() bool { return false },
		"zone-b": func() bool { return w.hasPod("zone-b-", "v2") },
		"zone-c": func() bool { return false },
	})
	w.create(p.Template(w.namespace, "error-rate"))
	w.create(r.Notifier(w.namespace)...)
	options := manager.Options{Rings: []string{manager.RingZones}, Namespaces: w.options.Namespaces, Zones: w.options}
	hooks := testenv.RegisterWebhooks(t, w.namespace, options.Declarations(manager.RingZones).Webhooks)
	w.gated(onDelete, `[{"name":"error-rate"}]`, measured.Reached(t), func(o *manager.Options) {
		o.Admission, o.Traces.Receiver = hooks.Options, spans.URL()
	})
	w.roll("v2")
	w.saysEventually("Failed", "zone-b is stopped: gate error-rate was refused: failed measurements: 1 (failureLimit 0); last: value ")
	w.runs("zone-a: v2 v2 v2", "zone-b: v2 v2 v2", "zone-c: v1 v1 v1")
	why := w.group().Status.WaitingFor
	w.eventually(func() error {
		list := &corev1.EventList{}
		if err := w.client.List(t.Context(), list, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		if !slices.ContainsFunc(list.Items, func(e corev1.Event) bool { return strings.Contains(e.Message, why) }) {
			return fmt.Errorf("no Event says %q", why)
		}
		return nil
	})
	w.eventually(func() error { return r.Heard("Stopped RolloutGroup/ingester: " + why) })
	spans.Trace(" > GateRefused: GateRefused " + why + " (error)")
	p.Has(`spillway_zones_group_phase{namespace="` + w.namespace + `",rollout_group="ingester",phase="Failed"} == 1`)
	p.Has(`spillway_gates_verdicts_total{verdict="Refused"} > 0`)

	w.patch(&v1alpha1.RolloutGroup{}, ingester, `{"spec":{"gates":[{"name":"error-rate","onRefusal":"Continue"}]}}`)
	w.complete("v2")
	w.eventually(func() error { return r.Heard("Ended RolloutGroup/ingester: ") })
	p.Has(`spillway_rollouts_total{ring="zones",outcome="Complete"} > 0`)
	spans.Trace("Rollout RolloutGroup ingester: Complete", "Zone zone-b > GateRefused: GateRefused "+why+" (error)")

	// The first rollout is not an increase of what was not counted before.
	w.patch(&v1alpha1.RolloutGroup{}, ingester, `{"spec":{"gates":[]}}`)
	w.roll("v3")
	w.complete("v3")
	hooks.WaitServed(t)
	w.scaleStory(hooks)
	w.scalesOneOfTwo()
	w.holdsTheLock(p)
	p.Shows("../../monitoring/dashboards/zones.json")
	p.Shows("../../monitoring/dashboards/overview.json")
	p.Shows("../../monitoring/dashboards/manager.json")
}

// hasPod tells whether there is a Pod with this prefix and image. It may be asked after the test.
func (w *world) hasPod(prefix, image string) bool {
	list := &corev1.PodList{}
	if err := w.client.List(context.Background(), list, client.InNamespace(w.namespace)); err != nil {
		return false
	}
	return slices.ContainsFunc(list.Items, func(p corev1.Pod) bool {
		return strings.HasPrefix(p.Name, prefix) && p.Spec.Containers[0].Image == image
	})
}

// scalesOneOfTwo scales a zone down whose follower has to wait for an hour after the last time.
func (w *world) scalesOneOfTwo() {
	w.t.Helper()
	w.create(
		zone("first", onDelete, inGroup("less"), replicas(2), annotated("grafana.com/last-downscale", time.Now().UTC().Format(time.RFC3339))),
		zone("second", onDelete, inGroup("less"), replicas(2),
			annotated("grafana.com/rollout-downscale-leader", "first", "grafana.com/min-time-between-zones-downscale", "1h")),
	)
	for _, name := range []string{"first", "second"} {
		w.eventually(func() error { return w.hasReady(name, 2) })
	}
	w.eventually(func() error { return w.scale(&appsv1.StatefulSet{}, "first", 1) })
	w.eventually(func() error { return w.hasReady("first", 1) })
}

// holdsTheLock scales a zone down whose Pod takes its time to be prepared: until Prometheus has
// seen the lock.
func (w *world) holdsTheLock(p *measured.Prometheus) {
	w.t.Helper()
	pods, seen := testenv.ServePods(w.t), make(chan struct{})
	see := sync.OnceFunc(func() { close(seen) })
	w.t.Cleanup(see)
	pods.Answer("slow-1", func(answer http.ResponseWriter, r *http.Request) {
		<-seen
		pods.Obey(answer, r)
	})
	w.create(zone("slow", onDelete, inGroup("slow"), replicas(2), tells(pods)))
	w.eventually(func() error { return w.hasReady("slow", 2) })
	go func() { _ = w.scale(&appsv1.StatefulSet{}, "slow", 1) }() // it is late, and is asked for again
	p.ShowsPanel("../../monitoring/dashboards/zones.json", "Age of the locks")
	see()
	w.eventually(func() error { return w.scale(&appsv1.StatefulSet{}, "slow", 1) })
}
