package fleet_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/fleet/cluster"
)

// TestConnections has a hub connect to clusters that answer, and prints what one costs it: requests to the API
// server of the hub in a first rollout, and memory once all is done.
func TestConnections(t *testing.T) {
	few, many := connect(t, fewConnected), connect(t, connected)
	each := func(of func(memoryOf) float64) float64 {
		return (of(many) - of(few)) / (connected - fewConnected) * 1024
	}
	fmt.Printf("| a connected cluster, of %d beside %d: live heap; with stacks; resident; resident at its most | %.0f KiB; %.0f KiB; %.0f KiB; %.0f KiB |\n", connected, fewConnected,
		each(func(m memoryOf) float64 { return m.Heap }), each(func(m memoryOf) float64 { return m.Heap + m.Stacks }),
		each(func(m memoryOf) float64 { return m.Resident }), each(func(m memoryOf) float64 { return m.Peak }))
	fmt.Printf("| a manager with %d connected clusters: resident; at its most | %.0f MiB; %.0f MiB |\n", connected, many.Resident, many.Peak)
}

// perCluster is exactly what a first rollout to a connected cluster costs the hub: the assemblage is made, the kubeconfig
// is read, what the cluster has already is noted, the module is assigned, the finalizer is added, and that it is being sent
// and that it has succeeded is noted.
var perCluster = map[string]int{
	"create proxyassemblages": 1, "get secrets": 1, "patch proxyassemblages": 2, "update proxyassemblages/status": 3,
}

func connect(t *testing.T, n int) memoryOf {
	t.Helper()
	w := emptyWorld(t, n)
	s := serve(t)
	w.each(n, func(i int) {
		w.create(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: cluster.SecretName(fmt.Sprintf("c%d", i)), Labels: map[string]string{"spillway.dev/cluster": "true"}},
			Data:       map[string][]byte{cluster.KubeconfigKey: s.kubeconfig(t, i)},
		})
	})
	w.watched = watched(t, w.client, w.namespace)
	w.create(module(w.namespace))
	p := w.process(connectedTask)
	w.complete("v1")
	calls := p.settled(t)
	fmt.Printf("| a first rollout to %d clusters that are connected: requests on the hub | %s |\n", n, told(calls))
	all := 0
	for what, k := range calls {
		all += k
		if is := strings.HasSuffix(what, "secrets") || strings.Contains(what, "proxyassemblages"); is && k != perCluster[what]*n {
			t.Errorf("%d times %s for %d clusters", k, what, n)
		}
	}
	fmt.Printf("| ... a cluster | %.2f |\n", float64(all)/float64(n))
	if most := n/2 + 20; calls["create events"] > most || calls["update modules/status"] > n+20 {
		t.Errorf("other requests: %v", calls)
	}
	return p.memory(t)
}
