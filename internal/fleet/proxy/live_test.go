package proxy_test

import (
	"testing"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
)

// From a ProxyAssemblage of the hub to what runs in a workload cluster, and back again.
func TestFromTheHubToWhatRuns(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.join(0)
	first, second := w.publish("v1"), w.publish("v2")
	w.assign("c0", w.sync("shop", "v1", inCluster))
	s := w.becomes(proxied(), "c0", "shop-v1", v1alpha1.StateSucceeded, "applied "+first)
	if s.Resolved != first || s.LastSucceededRevision != "shop-v1" {
		t.Errorf("%+v", s)
	}
	w.data(0, map[string]string{"version": "v1", "where": "in c0"})
	w.assign("c0", w.sync("shop", "v2", inCluster))
	w.becomes(proxied(), "c0", "shop-v2", v1alpha1.StateSucceeded, "applied "+second)
	w.data(0, map[string]string{"version": "v2", "where": "in c0"})
	w.remove(w.hub, proxied(), "c0")
	w.gone(w.hub, proxied(), "c0")
	w.gone(w.on(0), &v1alpha1.Assemblage{}, "c0")
	w.data(0, nil)
	w.has(w.on(0), 0, 0)
}

// From a RemoteAssemblage of the hub, by the Flux of the hub.
func TestTheHubAppliesToACluster(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.join(0)
	first, second := w.publish("v1"), w.publish("v2")
	w.create(w.on(0), namespaceOf(w))
	w.bootstrap("c0", w.sync("flux", "v1", inCluster))
	w.becomes(remote(), "c0", "flux-v1", v1alpha1.StateSucceeded, "applied "+first)
	w.data(0, map[string]string{"version": "v1", "where": "in c0"})
	w.bootstrap("c0", w.sync("flux", "v2", inCluster))
	w.becomes(remote(), "c0", "flux-v2", v1alpha1.StateSucceeded, "applied "+second)
	w.has(w.hub, 1, 1)
	w.remove(w.hub, remote(), "c0")
	w.gone(w.hub, remote(), "c0")
	w.data(0, nil)
	w.has(w.hub, 0, 0)
}
