//go:build node

package node_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/zones"
	"github.com/spillway-dev/spillway/internal/zones/guard"
)

// zone is a StatefulSet of the group store whose Pods run the program with a value, and are prepared
// for their removal. More annotations and fields of its spec may be given.
func zone(name, value string, replicas int, annotations, spec string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: %[1]s
  labels: {rollout-group: store, grafana.com/prepare-downscale: "true"}
  annotations: {grafana.com/prepare-downscale-http-path: prepare, grafana.com/prepare-downscale-http-port: "8080"%[4]s}
spec:
  replicas: %[3]d
  serviceName: store
  updateStrategy: {type: OnDelete}
  selector: {matchLabels: {app: %[1]s}}
  %[5]s
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
%[2]s`, name, indent(container("serve", "env: [{name: VALUE, value: "+value+"}]")), replicas, annotations, spec)
}

const (
	parallel = "podManagementPolicy: Parallel"
	// delayed has the replicas of the ReplicaTemplate store, and prepares Pods for an hour.
	delayed = `, grafana.com/rollout-mirror-replicas-from-resource-name: store, grafana.com/rollout-mirror-replicas-from-resource-kind: ReplicaTemplate, ` +
		`grafana.com/rollout-mirror-replicas-from-resource-api-version: rollout-operator.grafana.com/v1, ` +
		`grafana.com/rollout-delayed-downscale: 1h, grafana.com/rollout-prepare-delayed-downscale-url: "http://pod:8080/prepare"`
)

// group runs a manager of the zones ring, whose webhooks prepare Pods.
func (w *world) group() {
	w.t.Helper()
	hooks := w.serve(guard.Declared().Webhooks, func(o *manager.Options) {
		o.Rings, o.Zones = []string{manager.RingZones}, zones.Options{Now: w.clock.Now}
	})
	hooks.Select(w.t, "spillway.dev/prepares-scales", "true")
}

// runs waits until all Pods of a zone, and no others, are ready with a value.
func (w *world) runs(name, value string, replicas int) {
	w.t.Helper()
	w.eventually(func() error {
		set := &appsv1.StatefulSet{}
		if err := w.get(set, name); err != nil {
			return err
		}
		if s := set.Status; int(*set.Spec.Replicas) != replicas || int(s.ReadyReplicas) != replicas || int(s.Replicas) != replicas || s.ObservedGeneration != set.Generation {
			return fmt.Errorf("%s is to have %d replicas: %d, %+v; %s", name, replicas, *set.Spec.Replicas, s, w.waits())
		}
		return w.answers(name, "/read", value)
	})
}

// waits is what the group says.
func (w *world) waits() string {
	g := &v1alpha1.RolloutGroup{}
	if err := w.get(g, "store"); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s: %s, lock %+v, downscale %+v", g.Status.Phase, g.Status.WaitingFor, g.Status.Lock, g.Status.Downscale)
}

// scale does as an autoscaler does.
func (w *world) scale(obj client.Object, name string, n int32) error {
	obj.SetNamespace(w.namespace)
	obj.SetName(name)
	return testenv.Scale(w.t.Context(), w.client, obj, n)
}

// prepared waits until exactly these Pods of the zones say that they are prepared.
func (w *world) prepared(names ...string) {
	w.t.Helper()
	w.eventually(func() error {
		var prepared []string
		for _, zone := range []string{"zone-a", "zone-b"} {
			for _, p := range w.live(zone) {
				said, err := w.ask(p.Name, "/prepare")
				if err != nil {
					return err
				}
				if strings.Contains(said, "timestamp") {
					prepared = append(prepared, p.Name)
				}
			}
		}
		slices.Sort(prepared)
		return want(strings.Join(names, " "), strings.Join(prepared, " "))
	})
}

// The Pods of a group roll zone by zone, those that are to go are prepared by the program that runs in
// them, they stay if they are to stay, and go an hour later if not; and one that cannot be prepared
// keeps its zone as it is.
func TestAGroupPreparesItsPods(t *testing.T) {
	w := newWorld(t)
	w.apply("apiVersion: rollout-operator.grafana.com/v1\nkind: ReplicaTemplate\nmetadata: {name: store}\nspec: {replicas: 2}")
	for _, name := range []string{"zone-a", "zone-b"} {
		w.apply(zone(name, "one", 2, delayed, parallel))
	}
	w.group()
	for _, name := range []string{"zone-a", "zone-b"} {
		w.runs(name, "one", 2)
	}
	for _, name := range []string{"zone-a", "zone-b"} {
		w.apply(zone(name, "two", 2, delayed, parallel))
	}
	for _, name := range []string{"zone-a", "zone-b"} {
		w.runs(name, "two", 2)
	}
	template := &zonesv1.ReplicaTemplate{}
	w.eventually(func() error { return w.scale(template, "store", 1) })
	w.prepared("zone-a-1", "zone-b-1")
	w.eventually(func() error { return w.scale(template, "store", 2) })
	w.prepared()
	w.eventually(func() error { return w.scale(template, "store", 1) })
	w.prepared("zone-a-1", "zone-b-1")
	w.barrier.Step(t, hour)
	for _, name := range []string{"zone-a", "zone-b"} {
		w.runs(name, "two", 1)
	}
	set := &appsv1.StatefulSet{}
	if err := w.get(set, "zone-a"); err != nil {
		t.Fatal(err)
	}
	closed := set.DeepCopy()
	closed.Annotations["grafana.com/prepare-downscale-http-port"] = "8081" // where the program does not listen
	if err := w.client.Patch(t.Context(), closed, client.MergeFrom(set)); err != nil {
		t.Fatal(err)
	}
	w.eventually(func() error { // once no other downscale is under way
		err := w.scale(&appsv1.StatefulSet{}, "zone-a", 0)
		if err == nil || !strings.Contains(err.Error(), "one or more pods failed to prepare for shutdown") {
			return fmt.Errorf("a Pod that cannot be prepared: %w", errors.Join(err, errors.New(w.waits())))
		}
		return nil
	})
	w.runs("zone-a", "two", 1)
}

// A zone of which no Pod was ever ready, as a kubelet says it: the corrected template does not wait
// until the first one counts as stuck.
func TestACorrectedTemplateIsRolled(t *testing.T) {
	w := newWorld(t)
	w.group()
	w.apply(zone("zone-a", "unready", 2, "", ""))
	w.eventually(func() error { // it runs, and its probe fails
		if n := len(w.live("zone-a")); n != 1 {
			return fmt.Errorf("%d Pods", n)
		}
		return w.answers("zone-a", "/read", "unready")
	})
	w.apply(zone("zone-a", "good", 2, "", ""))
	w.runs("zone-a", "good", 2)
}

// The one node has no place for a second Pod. That is taken back while the rollout of another zone
// has the lock, which waits for a Pod that is not ready.
func TestAnUpscaleWithoutANodeIsTakenBack(t *testing.T) {
	w := newWorld(t)
	w.group()
	for _, name := range []string{"zone-a", "zone-b"} {
		w.apply(apart(name, "good"))
	}
	for _, name := range []string{"zone-a", "zone-b"} {
		w.runs(name, "good", 1)
	}
	w.apply(apart("zone-b", "unready"))
	w.eventually(func() error {
		g := &v1alpha1.RolloutGroup{}
		if err := w.get(g, "store"); err != nil || g.Status.Lock == nil || g.Status.Lock.Zone != "zone-b" {
			return errors.Join(err, errors.New(w.waits()))
		}
		return nil
	})
	w.eventually(func() error { return w.scale(&appsv1.StatefulSet{}, "zone-a", 2) })
	w.eventually(func() error {
		p := &corev1.Pod{}
		if err := w.get(p, "zone-a-1"); err != nil {
			return err
		}
		if !slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Reason == corev1.PodReasonUnschedulable }) {
			return fmt.Errorf("%+v", p.Status)
		}
		return nil
	})
	w.eventually(func() error { return w.scale(&appsv1.StatefulSet{}, "zone-a", 1) })
	w.runs("zone-a", "good", 1)
	if err := w.scale(&appsv1.StatefulSet{}, "zone-a", 0); err == nil || !strings.Contains(err.Error(), "the lock is held by rollout/store") {
		t.Errorf("the Pod that runs: %v", err)
	}
}

// apart is a zone whose Pods are on nodes of their own.
func apart(name, value string) string {
	const affinity = "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: %s}}}]}}\n      "
	return strings.Replace(zone(name, value, 1, "", parallel), "automountServiceAccountToken", fmt.Sprintf(affinity, name)+"automountServiceAccountToken", 1)
}
