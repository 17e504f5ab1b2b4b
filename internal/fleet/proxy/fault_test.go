package proxy_test

import (
	"fmt"
	"testing"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

// tell runs the life of what the hub assigns to a cluster in both ways, and checks the
// result of each chapter.
func tell(w *world) {
	w.Helper()
	w.publish("v1")
	w.publish("v2")
	w.publishText("boot", fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: boot, namespace: %s}\n", w.namespace))
	w.create(w.on(0), namespaceOf(w))
	w.join(0)
	w.assign("c0", w.sync("shop", "v1", inCluster))
	w.bootstrap("c0", w.sync("flux", "boot", ""))
	w.becomes(proxied(), "c0", "shop-v1", v1alpha1.StateSucceeded, "")
	w.becomes(remote(), "c0", "flux-boot", v1alpha1.StateSucceeded, "")
	w.data(0, map[string]string{"version": "v1", "where": "in c0"})
	w.assign("c0", w.sync("shop", "v2", inCluster))
	w.becomes(proxied(), "c0", "shop-v2", v1alpha1.StateSucceeded, "")
	w.data(0, map[string]string{"version": "v2", "where": "in c0"})
	w.remove(w.hub, proxied(), "c0")
	w.remove(w.hub, remote(), "c0")
	w.gone(w.hub, proxied(), "c0")
	w.gone(w.hub, remote(), "c0")
	w.data(0, nil)
	w.has(w.on(0), 0, 0)
	w.has(w.hub, 0, 0)
}

// TestFaultTheHubStops tells the story once without a fault, and then stops the manager of the hub
// before and after the first, the middle and the last write of it, and starts another. Each write
// about ProxyAssemblages is tried in memory, and so is each about the objects of Flux.
func TestFaultTheHubStops(t *testing.T) {
	var writes []fault.Request
	t.Run("without a fault", func(t *testing.T) {
		w := newQuietWorld(t)
		w.manage()
		tell(w)
		writes = w.faults.Writes()
	})
	for _, r := range writes {
		t.Log(r)
	}
	for _, n := range []int{1, len(writes) / 2, len(writes)} {
		for _, when := range []fault.When{fault.Before, fault.After} {
			t.Run(fmt.Sprintf("%s write %d", when, n), func(t *testing.T) {
				w, faults := newWorld(t), fault.New()
				faults.StopAt(n, when)
				w.manageWith(faults)
				go w.succeed(faults)
				tell(w)
			})
		}
	}
}

// succeed starts another manager of the hub once the first has stopped.
func (w *world) succeed(first *fault.Injector) {
	stop := w.stop
	select {
	case <-first.Stopped():
		stop()
		w.manage()
	case <-w.Context().Done():
	}
}

// TestFaultTwoHubs has two managers that know nothing of each other.
func TestFaultTwoHubs(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.manage()
	tell(w)
}

// TestFaultAClusterGoesAway stops the API server of a cluster in earnest: the others go
// on, it is said to be unreachable and not to have failed, and when it is back it catches
// up automatically. Then it goes away for good.
func TestFaultAClusterGoesAway(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.join(0)
	w.join(fragile)
	away, cp := fmt.Sprintf("c%d", fragile), testenv.Workload(fragile)
	for _, tag := range []string{"v1", "v2", "v3"} {
		w.publish(tag)
	}
	w.publishText("boot1", fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: boot, namespace: %s}\ndata: {v: '1'}\n", w.namespace))
	w.publishText("boot2", fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: boot, namespace: %s}\ndata: {v: '2'}\n", w.namespace))
	for _, name := range []string{"c0", away} {
		w.assign(name, w.sync("shop", "v1", inCluster))
		w.becomes(proxied(), name, "shop-v1", v1alpha1.StateSucceeded, "")
	}
	w.bootstrap(away, w.sync("flux", "boot1", ""))
	w.becomes(remote(), away, "flux-boot1", v1alpha1.StateSucceeded, "")

	cp.StopAPIServer()
	w.becomes(proxied(), away, "shop-v1", v1alpha1.StateUnreachable, "the cluster does not answer: connection refused")
	w.bootstrap(away, w.sync("flux", "boot2", ""))
	w.becomes(remote(), away, "flux-boot2", v1alpha1.StateUnreachable, "the cluster does not answer: connection refused")
	w.assign(away, w.sync("shop", "v2", inCluster))
	w.becomes(proxied(), away, "shop-v2", v1alpha1.StateUnreachable, "")
	w.assign("c0", w.sync("shop", "v2", inCluster))
	w.becomes(proxied(), "c0", "shop-v2", v1alpha1.StateSucceeded, "")

	if err := cp.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.becomes(proxied(), away, "shop-v2", v1alpha1.StateSucceeded, "")
	w.becomes(remote(), away, "flux-boot2", v1alpha1.StateSucceeded, "")
	w.data(fragile, map[string]string{"version": "v2", "where": "in " + away})

	cp.StopAPIServer()
	w.becomes(proxied(), away, "shop-v2", v1alpha1.StateUnreachable, "")
	w.remove(w.hub, proxied(), away)
	w.remove(w.hub, remote(), away)
	w.concluded(proxied(), away, "cannot be removed: the cluster does not answer: connection refused; annotate it with spillway.dev/abandon-cluster=true to leave everything there")
	w.concluded(remote(), away, "waiting for Flux to remove")
	w.annotate(w.hub, proxied(), away, "spillway.dev/abandon-cluster", "true")
	w.annotate(w.hub, remote(), away, "spillway.dev/abandon-cluster", "true")
	w.gone(w.hub, proxied(), away)
	w.gone(w.hub, remote(), away)
	if err := cp.StartAPIServer(t.Context()); err != nil { // what runs there ends with the test
		t.Fatal(err)
	}
	w.data(fragile, map[string]string{"version": "v2", "where": "in " + away})
}
