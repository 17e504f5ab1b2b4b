package bench_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/pin"
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

// TestPodsWithoutPins creates Pods of a namespace with pins that do not opt in, as dry runs, so
// that admission weighs most: with and without the policy, in turn, and as a ratio.
func TestPodsWithoutPins(t *testing.T) {
	c, ns := newClient(t), testenv.Namespace(t)
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: ns}}
	if err := c.Create(t.Context(), sa); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	create := func(ctx context.Context, annotations map[string]string) (*corev1.Pod, error) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "pod", Annotations: annotations}}
		pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "x", EnvFrom: []corev1.EnvFromSource{useConfigMap("app")}}}
		return pod, c.Create(ctx, pod, client.DryRunAll)
	}
	testenv.Eventually(t, func(ctx context.Context) error { _, err := create(ctx, nil); return err })
	var typical, rare []float64
	for range rounds {
		without := podLatencies(t, create)
		for _, obj := range pin.Policy([]string{ns}) {
			testenv.Apply(t, c, obj)
		}
		applies(t, create, true)
		with := podLatencies(t, create)
		for _, obj := range pin.Policy([]string{ns}) {
			if err := c.Delete(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
		}
		applies(t, create, false)
		typical, rare = append(typical, with.p50/without.p50), append(rare, with.p99/without.p99)
	}
	fmt.Printf("| create a Pod that does not opt in, with the policy over without it: p50, p99 | %.2f, %.2f; of %s and %s |\n",
		median(typical), median(rare), list(typical), list(rare))
}

// applies waits until the policy has an effect, or none any more.
func applies(t *testing.T, create func(context.Context, map[string]string) (*corev1.Pod, error), should bool) {
	t.Helper()
	testenv.Eventually(t, func(ctx context.Context) error {
		pod, err := create(ctx, map[string]string{"spillway.dev/pins": "cm/app=0123456789"})
		if err != nil {
			return err
		}
		if ref := pod.Spec.Containers[0].EnvFrom[0].ConfigMapRef.Name; (ref != "app") != should {
			return fmt.Errorf("the Pod refers to %s", ref)
		}
		return nil
	})
}

// podLatencies creates many Pods, some at a time.
func podLatencies(t *testing.T, create func(context.Context, map[string]string) (*corev1.Pod, error)) measured {
	t.Helper()
	return latencies(t, "create a Pod", func() error { _, err := create(t.Context(), nil); return err })
}
