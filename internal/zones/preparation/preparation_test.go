package preparation_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/zones"
)

func TestMain(m *testing.M) { testenv.Main(m, testenv.Options{}) }

const label = "spillway.dev/prepares-scales"

// world is a user and two namespaces, of which the manager watches both.
type world struct {
	t          *testing.T
	client     client.Client
	namespaces []string
	requests   *fault.Injector
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	c, err := client.New(testenv.Shared().Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, client: c, namespaces: []string{testenv.Namespace(t), testenv.Namespace(t)}, requests: fault.New()}
}

// manage runs a manager until the end of the test, or until stop.
func (w *world) manage() (stop func()) {
	return testenv.Managed(w.t, w.requests, func(ctx context.Context, log logr.Logger) error {
		return manager.Run(ctx, w.requests.Wrap(testenv.Shared().Config()), manager.Options{
			Rings: []string{manager.RingZones}, Namespaces: w.namespaces, Zones: zones.Options{Now: time.Now}, MetricsAddress: "0", ProbeAddress: "0", Log: log,
			Admission: admission.Options{Enabled: true, Address: "127.0.0.1:0", Hosts: []string{"127.0.0.1"}, Namespace: w.namespaces[0], Own: []string{"none"}, Only: []string{"none"}, Now: time.Now},
		})
	})
}

func (w *world) set(namespace, name string, labels map[string]string) *appsv1.StatefulSet {
	w.t.Helper()
	own := map[string]string{"app": name}
	s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
	s.Spec.Replicas, s.Spec.ServiceName, s.Spec.Selector = new(int32), "x", &metav1.LabelSelector{MatchLabels: own}
	s.Spec.Template.Labels = own
	s.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "x"}}
	if err := w.client.Create(w.t.Context(), s); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// budget creates a budget, once its kind is installed.
func (w *world) budget(namespace string) client.Object {
	w.t.Helper()
	kinds, err := manifests.KindsOf([]string{manager.RingZones})
	if err != nil {
		w.t.Fatal(err)
	}
	testenv.Kinds(w.t, w.client, kinds)
	b := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"maxUnavailable": int64(1), "selector": map[string]any{"matchLabels": map[string]any{"a": "b"}}}}}
	b.SetGroupVersionKind(zonesv1.GroupVersion.WithKind("ZoneAwarePodDisruptionBudget"))
	b.SetNamespace(namespace)
	b.SetName("budget")
	if err := w.client.Create(w.t.Context(), b); err != nil {
		w.t.Fatal(err)
	}
	return b
}

// labeled waits until a namespace has the label of Scales, or has not.
func (w *world) labeled(namespace string, want bool) {
	w.t.Helper()
	w.has(namespace, label, want)
}

// has waits until a namespace has a label, or has not.
func (w *world) has(namespace, label string, want bool) {
	w.t.Helper()
	testenv.Eventually(w.t, func(ctx context.Context) error {
		ns := &corev1.Namespace{}
		if err := w.client.Get(ctx, client.ObjectKey{Name: namespace}, ns); err != nil {
			return err
		}
		if got := ns.Labels[label] == "true"; got != want {
			return fmt.Errorf("namespace %s has the label: %v", namespace, got)
		}
		return nil
	})
}

func (w *world) patch(obj client.Object, patch string) {
	w.t.Helper()
	if err := w.client.Patch(w.t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		w.t.Fatal(err)
	}
}

// A namespace has the label as long as it has a StatefulSet whose Pods must be prepared, by
// either name; also if that changed while no manager was running.
func TestTheLabelFollowsTheStatefulSets(t *testing.T) {
	w := newWorld(t)
	a, b := w.namespaces[0], w.namespaces[1]
	first := w.set(a, "first", map[string]string{"grafana.com/prepare-downscale": "true"})
	other := w.set(b, "other", nil)
	stop := w.manage()
	w.labeled(a, true)
	w.labeled(b, false)
	w.patch(other, `{"metadata":{"labels":{"spillway.dev/prepare-downscale":"true"}}}`)
	w.labeled(b, true)
	w.patch(other, `{"metadata":{"labels":{"spillway.dev/prepare-downscale":"false"}}}`)
	w.labeled(b, false)
	stop()

	if err := w.client.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	w.set(a, "second", nil)
	w.patch(other, `{"metadata":{"labels":{"spillway.dev/prepare-downscale":"true"}}}`)
	w.manage()
	w.labeled(a, false)
	w.labeled(b, true)
}

// A namespace has the other label as long as it has a budget: also one that came or went while no
// manager was running, in a namespace with StatefulSets. Neither label changes for the other.
func TestTheLabelFollowsTheBudgets(t *testing.T) {
	w := newWorld(t)
	a, b := w.namespaces[0], w.namespaces[1]
	w.set(a, "first", map[string]string{"grafana.com/prepare-downscale": "true"})
	w.set(b, "other", nil)
	stop := w.manage()
	w.labeled(a, true)
	budget := w.budget(a)
	w.has(a, "spillway.dev/guards-evictions", true)
	w.has(b, "spillway.dev/guards-evictions", false)
	w.labeled(a, true)
	stop()

	if err := w.client.Delete(t.Context(), budget); err != nil {
		t.Fatal(err)
	}
	w.budget(b)
	w.manage()
	w.has(a, "spillway.dev/guards-evictions", false)
	w.has(b, "spillway.dev/guards-evictions", true)
	w.labeled(a, true)
}

// What needs no label costs one read a namespace, however many StatefulSets there are, and
// no write.
func TestOtherNamespacesCostOneRead(t *testing.T) {
	w := newWorld(t)
	w.manage()
	bare, used := w.namespaces[0], w.namespaces[1]
	w.set(bare, "first", nil)
	reads := func() (n int) {
		for _, r := range w.requests.Requests() {
			if r.Resource == "namespaces" && r.Name == bare && r.Verb == "get" {
				n++
			}
		}
		return n
	}
	testenv.Eventually(t, func(context.Context) error {
		if reads() == 0 {
			return fmt.Errorf("the namespace was not read")
		}
		return nil
	})
	for i := range 5 {
		w.set(bare, fmt.Sprintf("more-%d", i), nil)
	}
	w.set(used, "last", map[string]string{"grafana.com/prepare-downscale": "true"}) // its event comes later
	w.labeled(used, true)
	if n := reads(); n != 1 {
		t.Errorf("the namespace was read %d times", n)
	}
	for _, r := range w.requests.Writes() {
		if r.Resource == "namespaces" && r.Name != used {
			t.Errorf("written was %+v", r)
		}
	}
}
