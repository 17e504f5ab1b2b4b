package bench_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

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
	o.Config.PinNamespaces = pin.In(ns)
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

// TestPodsWithoutPins creates Pods that do not opt in, as dry runs, so that admission weighs most:
// one in a namespace with pins, one in another namespace, and so on. It does so without the
// policies too, in turn: what that shows between the namespaces is noise.
func TestPodsWithoutPins(t *testing.T) {
	c := newClient(t)
	with, beside := podsIn(t, c), podsIn(t, c)
	var noise, cost, all []float64
	for range podRounds {
		here, there := inTurn(t, with, beside)
		noise = append(noise, here/there)
		for _, obj := range pin.Policy(pin.In(with.namespace)) {
			testenv.Apply(t, c, obj)
		}
		with.waitPinned(t, true)
		pinned, other := inTurn(t, with, beside)
		cost, all = append(cost, pinned/other), append(all, pinned/here)
		for _, obj := range pin.Policy(pin.In(with.namespace)) {
			if err := c.Delete(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
		}
		with.waitPinned(t, false)
	}
	fmt.Printf("| create a Pod that does not opt in: ratio of medians, %d rounds of %d Pods each | median, and the middle half |\n", podRounds, podsInTurn)
	for _, row := range []struct {
		what   string
		ratios []float64
	}{{"a namespace with pins over one beside it, created in turn", cost}, {"the same two namespaces without the policies", noise}, {"a namespace with the policies over itself without", all}} {
		slices.Sort(row.ratios)
		fmt.Printf("| %s | %.3f (%.3f to %.3f) |\n", row.what, median(row.ratios), row.ratios[len(row.ratios)/4], row.ratios[len(row.ratios)*3/4])
	}
}

// pods creates Pods in a namespace.
type pods struct {
	c         client.Client
	namespace string
}

func podsIn(t *testing.T, c client.Client) pods {
	t.Helper()
	p := pods{c, testenv.Namespace(t)}
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: p.namespace}}
	if err := c.Create(t.Context(), sa); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	testenv.Eventually(t, func(ctx context.Context) error { _, err := p.create(ctx, nil); return err })
	return p
}

func (p pods) create(ctx context.Context, annotations map[string]string) (*corev1.Pod, error) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "pod", Annotations: annotations}}
	pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "x", EnvFrom: []corev1.EnvFromSource{useConfigMap("app")}}}
	return pod, p.c.Create(ctx, pod, client.DryRunAll)
}

// waitPinned waits until the policies have an effect, or none any more.
func (p pods) waitPinned(t *testing.T, should bool) {
	t.Helper()
	testenv.Eventually(t, func(ctx context.Context) error {
		pod, err := p.create(ctx, map[string]string{"spillway.dev/pins": "cm/app=0123456789"})
		if err != nil {
			return err
		}
		if ref := pod.Spec.Containers[0].EnvFrom[0].ConfigMapRef.Name; (ref != "app") != should {
			return fmt.Errorf("the Pod refers to %s", ref)
		}
		return nil
	})
}

// inTurn creates Pods in two namespaces, one at a time, first in one and then in the other. It
// returns the median of each in milliseconds.
func inTurn(t *testing.T, a, b pods) (ofA, ofB float64) {
	t.Helper()
	var took [2][]float64
	for i := range podsInTurn {
		for k := range 2 {
			at := (i + k) % 2 // neither is always the first
			begun := time.Now()
			if _, err := [2]pods{a, b}[at].create(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			took[at] = append(took[at], time.Since(begun).Seconds()*1000)
		}
	}
	return median(took[0]), median(took[1])
}
