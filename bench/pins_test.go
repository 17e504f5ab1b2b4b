package bench_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

// TestOneConfigMapOfManyPinnedWorkloads is [TestOneConfigMapOfManyWorkloads] with workloads
// that keep the config of their revisions: one snapshot more, and as many writes.
func TestOneConfigMapOfManyPinnedWorkloads(t *testing.T) {
	c, ns := newClient(t), testenv.Namespace(t)
	if err := c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "app"}}); err != nil {
		t.Fatal(err)
	}
	each(t, 2*workloads, func(i int) error {
		if i%2 == 0 {
			pinned := map[string]string{tracked: "true", "spillway.dev/pin-config": "true"}
			return c.Create(t.Context(), deployment(ns, name("tracked", i/2), useConfigMap("app"), pinned))
		}
		return c.Create(t.Context(), deployment(ns, name("bare", i/2), useConfigMap("app"), map[string]string{"tracked": "no"}))
	})
	counted, timed, o := fault.New(), &stopwatch{}, options(ns)
	o.Config.PinNamespaces = []string{ns}
	manage(t, timed.wrap(counted.Wrap(testenv.Shared().Config())), o)
	wait(t, c, ns, "")

	ratios, spillway, bare := edits(t, c, ns, counted, timed, checkPinned)
	fmt.Printf("| %d pinned workloads on one ConfigMap | median of %d rounds |\n", workloads, rounds)
	fmt.Printf("| from the edit to the last write | %.2f s |\n| a bare loop of patches | %.2f s |\n", median(spillway), median(bare))
	fmt.Printf("| ratio | %.2f, of %s |\n| writes of workloads, snapshots | %d, 1 |\n", median(ratios), list(ratios), workloads)
}

// checkPinned fails unless there was one snapshot, and one write for each workload.
func checkPinned(t *testing.T, counted *fault.Injector) {
	t.Helper()
	n := map[string]int{}
	for _, r := range counted.Requests() {
		n[r.Verb+" "+r.Resource]++
	}
	if n["create configmaps"] != 1 || n["patch deployments"] != workloads || n["get configmaps"] > 3 || n["delete configmaps"] > 0 {
		t.Errorf("%v for %d workloads", n, workloads)
	}
}
