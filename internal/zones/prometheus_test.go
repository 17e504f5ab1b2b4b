//go:build prometheus

package zones_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv/measured"
	"github.com/spillway-dev/spillway/internal/lab/testenv/receiver"
)

// TestPrometheus: a real Prometheus sees the errors of a service rise as soon as the second zone
// runs the new revision. The rollout stops there and says so in the status, an Event, a message
// and a metric, until the group lets it continue.
func TestPrometheus(t *testing.T) {
	w, r := newWorld(t), receiver.New(t)
	p := measured.NewPrometheus(t, map[string]func() bool{
		"zone-a": func() bool { return false },
		"zone-b": func() bool { return w.hasPod("zone-b-", "v2") },
		"zone-c": func() bool { return false },
	})
	w.create(p.Template(w.namespace, "error-rate"))
	w.create(r.Notifier(w.namespace)...)
	w.gated(onDelete, `[{"name":"error-rate"}]`, measured.Reached(t))
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
	p.Has(`spillway_zones_group_phase{namespace="` + w.namespace + `",rollout_group="ingester",phase="Failed"} == 1`)
	p.Has(`spillway_gates_verdicts_total{verdict="Refused"} > 0`)

	w.patch(&v1alpha1.RolloutGroup{}, ingester, `{"spec":{"gates":[{"name":"error-rate","onRefusal":"Continue"}]}}`)
	w.complete("v2")
	w.eventually(func() error { return r.Heard("Ended RolloutGroup/ingester: ") })
	p.Has(`spillway_rollouts_total{ring="zones",outcome="Complete"} > 0`)
	p.Shows("../../monitoring/dashboards/zones.json", "Replicas", "Replicas that wait", "Evictions", "Age of the locks")
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
