package bench_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

const (
	// ofSize is how many bytes of live heap a byte of a workload may cost, as JSON: as an
	// object in the cache it takes up to two, and what is read from it shares its strings.
	ofSize = 3
	// ofReference is how many bytes each object that is followed may cost. Their number is
	// bounded, so that the rest of a long list costs only its place in the cache.
	ofReference = 512
	// hostile is how many there are.
	hostile = 20
	// annotationSize is about what the API server takes as annotations.
	annotationSize = 250 << 10
)

// TestMemoryOfHostileWorkloads measures the live heap of a manager with workloads as large
// as the API server takes them, above that without: it is bounded by their size, and by how many
// objects are followed for one.
func TestMemoryOfHostileWorkloads(t *testing.T) {
	c, ns := newClient(t), testenv.Namespace(t)
	if err := c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "app"}, Data: map[string]string{"k": "v"}}); err != nil {
		t.Fatal(err)
	}
	p := startProcess(t, ns)
	empty, before := p.live(t), p.resident(t)
	each(t, hostile, func(i int) error { return c.Create(t.Context(), hostileDeployment(ns, i)) })
	testenv.Eventually(t, func(context.Context) error {
		if n := hashes(atRest(t, c, ns), "hostile")[""]; n > 0 {
			return fmt.Errorf("%d workloads have no hash yet", n)
		}
		return nil
	})
	size, references := 0, 0
	for i, d := range atRest(t, c, ns) {
		d.ManagedFields = nil
		raw, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		size += len(raw)
		references += []int{1000, 0, 0, 2000}[i%4]
	}
	above, bound := 0.0, float64(ofSize*size+ofReference*references)/(1<<20)
	testenv.Eventually(t, func(context.Context) error { // during a pass, objects are alive that the cache has replaced
		if above = p.live(t) - empty; above > bound {
			return fmt.Errorf("%.1f MiB of live heap, want at most %.1f", above, bound)
		}
		return nil
	})
	after := p.resident(t)
	p.stop(t)
	empties(t, c, ns)
	fmt.Printf("| %d workloads of %d KiB each: live heap above none (bound by their size and their references: %.1f MiB) | %.1f MiB |\n", hostile, size/hostile>>10, bound, above)
	fmt.Printf("| … resident memory of the process without and with them | %.0f MiB, %.0f MiB |\n", before, after)
}

// TestMemoryOfLargeConfig measures the most memory of a manager that hashes ConfigMaps as large as the
// API server takes them, above that without: what is held at a time is bounded, however many there are.
func TestMemoryOfLargeConfig(t *testing.T) {
	c, ns := newClient(t), testenv.Namespace(t)
	p := startProcess(t, ns)
	before := p.memory(t, "VmHWM:")
	each(t, large, func(i int) error {
		return c.Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name("large", i)}, Data: map[string]string{"k": strings.Repeat(string(rune('a'+i%26)), 950_000)},
		})
	})
	each(t, 10, func(i int) error {
		d := deployment(ns, name("reader", i), useConfigMap(name("large", i)), map[string]string{tracked: "true"})
		for j := range 30 {
			d.Spec.Template.Spec.Containers[0].EnvFrom = append(d.Spec.Template.Spec.Containers[0].EnvFrom, corev1.EnvFromSource{
				ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name("large", (i*30+j)%large)}},
			})
		}
		return c.Create(t.Context(), d)
	})
	testenv.Eventually(t, func(context.Context) error {
		if n := hashes(atRest(t, c, ns), "reader")[""]; n > 0 {
			return fmt.Errorf("%d workloads have no hash yet", n)
		}
		return nil
	})
	peak := p.memory(t, "VmHWM:")
	p.stop(t)
	empties(t, c, ns)
	if err := c.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(ns)); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("| ten workloads that use 30 of %d ConfigMaps of 950 kB each: memory of the process at its most, before and with them | %.0f MiB, %.0f MiB |\n", large, before, peak)
}

// empties removes the Deployments, so that other measurements do not count them.
func empties(t *testing.T, c client.Client, namespace string) {
	t.Helper()
	if err := c.DeleteAllOf(t.Context(), &appsv1.Deployment{}, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, func(ctx context.Context) error {
		list := &appsv1.DeploymentList{}
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil || len(list.Items) > 0 {
			return errors.Join(fmt.Errorf("%d Deployments are left", len(list.Items)), err)
		}
		return nil
	})
}

// live is the MiB of live heap of a process.
func (p *process) live(t *testing.T) float64 {
	t.Helper()
	mib, err := strconv.ParseFloat(p.ask(t, "heap"), 64)
	if err != nil {
		t.Fatal(err)
	}
	return mib
}

// hostileDeployment asks for as much as it can: a long list of objects, a long list of what
// are no objects, a long value, or a Pod with thousands of references.
func hostileDeployment(namespace string, i int) *appsv1.Deployment {
	annotations := map[string]string{tracked: "true"}
	d := deployment(namespace, name("hostile", i), useConfigMap("app"), annotations)
	switch i % 4 {
	case 0:
		var names strings.Builder
		for n := 0; names.Len() < annotationSize; n++ {
			fmt.Fprintf(&names, "n%d,", n)
		}
		annotations["spillway.dev/extra-configmaps"] = names.String()
	case 1:
		annotations["spillway.dev/extra-secrets"] = strings.Repeat("_,", annotationSize/2)
	case 2:
		annotations["spillway.dev/priority"] = strings.Repeat("x", annotationSize)
	case 3:
		for n := range 3000 {
			yes := true
			d.Spec.Template.Spec.Containers[0].Env = append(d.Spec.Template.Spec.Containers[0].Env, corev1.EnvVar{
				Name: fmt.Sprintf("E%d", n), ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
					LocalObjectReference: corev1.LocalObjectReference{Name: fmt.Sprintf("m%d", n)}, Key: "a", Optional: &yes,
				}},
			})
		}
	}
	return d
}
