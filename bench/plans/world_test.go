package plans_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubernetes "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/plans"
	"github.com/spillway-dev/spillway/internal/plans/admit"
)

func TestMain(m *testing.M) { testenv.Main(m, testenv.Options{Nodes: 20, Alone: true}) } // more nodes than tests share

// world is a namespace with Instances, and a manager of the ring whose requests are
// counted.
type world struct {
	t         *testing.T
	client    client.Client
	namespace string
	counted   *fault.Injector
}

// newWorld has one OperatorVersion, given as YAML of its spec.
func newWorld(t *testing.T, spec string) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(kubernetes.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(testenv.Shared().Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := manifests.KindsOf([]string{manager.RingPlans})
	if err != nil {
		t.Fatal(err)
	}
	testenv.Kinds(t, c, objects)
	for _, policy := range admit.Policies() {
		testenv.Apply(t, c, policy)
	}
	w := &world{t: t, client: c, namespace: testenv.Namespace(t), counted: fault.New()}
	ov := &v1beta1.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "app-1"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &ov.Spec); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), ov); err != nil {
		t.Fatal(err)
	}
	return w
}

// manage runs a manager until the end of the test.
func (w *world) manage() {
	w.t.Helper()
	testenv.Managed(w.t, w.counted, func(ctx context.Context, _ logr.Logger) error {
		return manager.Run(ctx, w.counted.Wrap(testenv.Shared().Config()), manager.Options{
			Rings: []string{manager.RingPlans}, Namespaces: []string{w.namespace}, Plans: plans.Options{Now: time.Now},
			MetricsAddress: "0", ProbeAddress: "0", Version: "bench", Log: logr.Discard(),
		})
	})
}

// instances makes so many of them.
func (w *world) instances(prefix string, n int) {
	w.t.Helper()
	for i := range n {
		instance := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: fmt.Sprintf("%s-%04d", prefix, i)}}
		instance.Spec.OperatorVersion.Name = "app-1"
		if err := w.client.Create(w.t.Context(), instance); err != nil {
			w.t.Fatal(err)
		}
	}
}

// until waits, for as long as it takes, until so many Instances are as required, and
// returns them.
func (w *world) until(n int, is func(*v1beta1.Instance) bool) []v1beta1.Instance {
	w.t.Helper()
	list, before := &v1beta1.InstanceList{}, -1
	for { // as long as there is progress
		done := 0
		testenv.Eventually(w.t, func(ctx context.Context) error {
			if err := w.client.List(ctx, list, client.InNamespace(w.namespace)); err != nil {
				return err
			}
			done = 0
			for i := range list.Items {
				if is(&list.Items[i]) {
					done++
				}
			}
			if done == before {
				return fmt.Errorf("%d of %d Instances: %s", done, n, list.Items[0].Status.WaitingFor)
			}
			return nil
		})
		if before = done; done >= n {
			return list.Items
		}
	}
}

func isComplete(i *v1beta1.Instance) bool {
	return i.Status.AggregatedStatus.Status == v1beta1.Complete && i.Status.ObservedGeneration == i.Generation
}

// calls are the requests of the manager, but for watches, and for Events and
// leases, each with how often it was made.
func (w *world) calls() map[string]int {
	counts := map[string]int{}
	for _, r := range w.counted.Requests() {
		if r.Verb != "watch" && r.Resource != "events" && r.Resource != "leases" {
			counts[strings.TrimSuffix(r.Verb+" "+r.Resource+"/"+r.Subresource, "/")]++
		}
	}
	return counts
}

func told(counts map[string]int) string {
	var all []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, fmt.Sprintf("%s %d", what, counts[what]))
	}
	return strings.Join(all, ", ")
}
