package zones_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/zones"
)

func TestMain(m *testing.M) { testenv.Main(m, testenv.Options{Nodes: 6, Alone: true}) } // more nodes than tests share

// theZones are the zones of every group, in their order.
var theZones = []string{"a", "b", "c"}

// world is a namespace with groups of StatefulSets, and a manager of the ring.
type world struct {
	t         *testing.T
	client    client.Client
	namespace string
	counted   *fault.Injector
	clock     *clock
	look      *observer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	c, err := client.New(testenv.Shared().Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	installKinds(t, c)
	w := &world{t: t, client: c, namespace: testenv.Namespace(t), counted: fault.New(), clock: &clock{first: map[string]time.Time{}}}
	w.look = observe(t, w.namespace)
	return w
}

// installKinds makes the kinds of the ring known, as spillway install does.
func installKinds(t *testing.T, c client.Client) {
	t.Helper()
	objects, err := manifests.KindsOf([]string{manager.RingZones})
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range objects {
		if err := c.Create(t.Context(), crd); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
	testenv.Eventually(t, func(context.Context) error {
		fresh, err := client.New(testenv.Shared().Config(), client.Options{})
		if err != nil {
			return err
		}
		_, err = fresh.RESTMapper().RESTMapping(schema.GroupKind{Group: "spillway.dev", Kind: "RolloutGroup"})
		return err
	})
}

// manage runs a manager until the end of the test, or until it is stopped.
func (w *world) manage(change ...func(*manager.Options)) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	cfg := w.clock.wrap(w.counted.Wrap(testenv.Shared().Config()))
	o := manager.Options{
		Rings: []string{manager.RingZones}, Namespaces: []string{w.namespace}, Zones: zones.Options{Now: time.Now},
		MetricsAddress: "0", ProbeAddress: "0", Log: logr.Discard(),
	}
	for _, f := range change {
		f(&o)
	}
	go func() { done <- manager.Run(ctx, cfg, o) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(stop)
	return stop
}

// group makes the StatefulSets of a group.
func (w *world) group(name string, strategy appsv1.StatefulSetUpdateStrategyType, replicas int32) {
	w.t.Helper()
	for _, zone := range theZones {
		labels := map[string]string{"app": name, "zone": zone}
		set := &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name + "-" + zone, Labels: map[string]string{"rollout-group": name}},
			Spec: appsv1.StatefulSetSpec{
				Replicas: &replicas, ServiceName: name, PodManagementPolicy: appsv1.ParallelPodManagement,
				Selector:       &metav1.LabelSelector{MatchLabels: labels},
				UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: strategy},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "x"}}},
				},
			},
		}
		if err := w.client.Create(w.t.Context(), set); err != nil {
			w.t.Fatal(err)
		}
	}
}

// edit changes the template of every zone of a group.
func (w *world) edit(name, value string) {
	w.t.Helper()
	for _, zone := range theZones {
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name + "-" + zone}}
		patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"edit":%q}}}}}`, value)
		if err := w.client.Patch(w.t.Context(), set, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			w.t.Fatal(err)
		}
	}
}

// settled waits until every Pod of the groups has the edit and is Ready, and the
// ring has nothing more to say.
func (w *world) settled(value string, pods int, groups ...string) {
	w.t.Helper()
	testenv.Eventually(w.t, func(ctx context.Context) error {
		if n := w.look.ready(value); n != pods {
			return fmt.Errorf("%d of %d Pods are Ready with edit %q", n, pods, value)
		}
		return w.complete(ctx, groups...)
	})
}

// clock notes when the manager first wrote to each zone since it was reset.
type clock struct {
	mu    sync.Mutex
	first map[string]time.Time
}

func (c *clock) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.first)
}

func (c *clock) at(zone string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.first[zone]
}

func (c *clock) wrap(cfg *rest.Config) *rest.Config {
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			c.see(req)
			return next.RoundTrip(req)
		})
	})
	return cfg
}

// see notes a write to a Pod or a StatefulSet by the name of the StatefulSet.
func (c *clock) see(req *http.Request) {
	parts := strings.Split(req.URL.Path, "/")
	name, kind := parts[len(parts)-1], parts[len(parts)-2]
	switch {
	case req.Method == http.MethodDelete && kind == "pods":
		name = name[:strings.LastIndexByte(name, '-')]
	case req.Method == http.MethodPatch && kind == "statefulsets":
	default:
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.first[name]; !known {
		c.first[name] = time.Now()
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
