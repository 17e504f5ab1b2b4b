package guard_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kubernetes "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllers "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/admission/certificate"
	"github.com/spillway-dev/spillway/internal/lab/controlplane"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/zones/guard"
)

// TestMain lets more tests run at a time than there are processors: they wait for
// controllers, most of the time.
func TestMain(m *testing.M) {
	testenv.Parallel(6)
	testenv.Main(m, testenv.Options{Nodes: 3})
}

const (
	ingester = "ingester"
	// preparesScales labels the namespaces in which the webhook about Scales is asked.
	preparesScales = "spillway.dev/prepares-scales"
)

// world is a namespace of its own whose downscales and evictions are guarded, and a
// user in it.
type world struct {
	t         *testing.T
	client    client.Client
	namespace string
	options   guard.Options
	requests  *fault.Injector
	webhooks  *testenv.Webhooks
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	w := newWorldOn(t, testenv.Shared(), testenv.Namespace(t))
	installKinds(t, w.client)
	testenv.KnownReasons(t, w.client, w.namespace, &v1alpha1.RolloutGroupList{})
	return w
}

func newWorldOn(t *testing.T, cp *controlplane.ControlPlane, namespace string) *world {
	t.Helper()
	c, err := client.New(cp.Config(), client.Options{Scheme: scheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	o := guard.Options{Now: time.Now, PodTimeout: 10 * time.Second} // for a machine that has much else to do
	return &world{t: t, client: c, namespace: namespace, options: o, requests: fault.New()}
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(kubernetes.AddToScheme(s), v1alpha1.AddToScheme(s), zonesv1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return s
}

// installKinds applies the kinds of the ring, and waits until they are served.
func installKinds(t *testing.T, c client.Client) {
	t.Helper()
	files, err := filepath.Glob("../../../charts/spillway/generated/zones/*.grafana.com_*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, "../../../charts/spillway/generated/zones/spillway.dev_rolloutgroups.yaml") {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(raw, &obj.Object); err != nil {
			t.Fatal(err)
		}
		err = c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("user"), client.ForceOwnership)
		if err != nil {
			t.Fatal(err)
		}
	}
	testenv.Eventually(t, func(ctx context.Context) error {
		return errors.Join(c.List(ctx, &v1alpha1.RolloutGroupList{}), c.List(ctx, &zonesv1.ZoneAwarePodDisruptionBudgetList{}), c.List(ctx, &zonesv1.ReplicaTemplateList{}))
	})
}

// guarded registers the webhooks and serves them.
func (w *world) guarded() {
	w.t.Helper()
	w.unanswered()
	w.webhooks = testenv.RegisterWebhooks(w.t, w.namespace, guard.Declare(w.options).Webhooks)
	w.serve(w.webhooks.Options, w.requests)
	w.webhooks.WaitServed(w.t)
	w.webhooks.Select(w.t, preparesScales, "true")
}

// serve runs a manager that answers, until the end of the test or the stop.
func (w *world) serve(o admission.Options, inj *fault.Injector) (stop func()) {
	w.t.Helper()
	log, yes := &testenv.Buffer{}, true
	cfg := inj.Wrap(testenv.Shared().Config())
	cfg.QPS = -1
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme(w.t), Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: controllers.Controller{SkipNameValidation: &yes},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{w.namespace: {}}},
		Logger:     logr.FromSlogHandler(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.Level(-1)})),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	routes, err := guard.Routes(mgr, w.options)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := certificate.Setup(mgr, o, guard.Declare(w.options).Webhooks, routes); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := mgr.Start(ctx); err != nil {
			w.t.Log(err)
		}
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
		if w.t.Failed() {
			w.t.Log(log.String())
		}
	})
	w.t.Cleanup(stop)
	return stop
}

type option func(*appsv1.StatefulSet)

// zone is a StatefulSet of the group ingester.
func zone(name string, replicas int32, change ...option) *appsv1.StatefulSet {
	labels := map[string]string{"name": name, "rollout-group": ingester}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"rollout-group": ingester}, Annotations: map[string]string{},
	}}
	set.Spec = appsv1.StatefulSetSpec{
		Replicas: &replicas, ServiceName: "ingester", Selector: &metav1.LabelSelector{MatchLabels: labels},
		PodManagementPolicy: appsv1.ParallelPodManagement, UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
	}
	set.Spec.Template.Labels, set.Spec.Template.Annotations = labels, map[string]string{}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "v1"}}
	zero := int64(0)
	set.Spec.Template.Spec.TerminationGracePeriodSeconds = &zero
	for _, c := range change {
		c(set)
	}
	return set
}

// told makes the Pods that go be told at a server.
func told(pods *testenv.Pods) option {
	return func(s *appsv1.StatefulSet) {
		s.Labels["grafana.com/prepare-downscale"] = "true"
		s.Annotations["grafana.com/prepare-downscale-http-path"] = "ingester/prepare-shutdown"
		s.Annotations["grafana.com/prepare-downscale-http-port"] = pods.Port
		s.Spec.Template.Annotations[testenv.PodIP] = pods.IP
	}
}

func labeled(key, value string) option {
	return func(s *appsv1.StatefulSet) { s.Labels[key] = value }
}

func annotated(key, value string) option {
	return func(s *appsv1.StatefulSet) { s.Annotations[key] = value }
}

func (w *world) create(objects ...client.Object) {
	w.t.Helper()
	for _, obj := range objects {
		obj.SetNamespace(w.namespace)
		if err := w.client.Create(w.t.Context(), obj); err != nil {
			w.t.Fatal(err)
		}
	}
}

// group creates the RolloutGroup, and zones, and waits until these are ready.
func (w *world) group(sets ...*appsv1.StatefulSet) {
	w.t.Helper()
	w.create(&v1alpha1.RolloutGroup{ObjectMeta: metav1.ObjectMeta{Name: ingester}})
	for _, s := range sets {
		w.create(s)
	}
	for _, s := range sets {
		w.ready(s.Name, int(*s.Spec.Replicas))
	}
}

// ready waits until a StatefulSet has so many Pods, and all of them are ready.
func (w *world) ready(name string, replicas int) {
	w.t.Helper()
	testenv.Eventually(w.t, func(context.Context) error {
		s := w.set(name)
		if int(s.Status.Replicas) != replicas || int(s.Status.ReadyReplicas) != replicas || s.Status.ObservedGeneration != s.Generation {
			return fmt.Errorf("%s has %d of %d replicas ready", name, s.Status.ReadyReplicas, s.Status.Replicas)
		}
		return nil
	})
}

func (w *world) set(name string) *appsv1.StatefulSet {
	w.t.Helper()
	s := &appsv1.StatefulSet{}
	w.get(name, s)
	return s
}

func (w *world) get(name string, obj client.Object) {
	w.t.Helper()
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, obj); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) status() v1alpha1.RolloutGroupStatus {
	w.t.Helper()
	g := &v1alpha1.RolloutGroup{}
	w.get(ingester, g)
	return g.Status
}

// scale does as an autoscaler does: it reads the Scale and writes it back.
func (w *world) scale(name string, replicas int32, options ...client.SubResourceUpdateOption) error {
	w.t.Helper()
	set, scale := w.set(name), &autoscalingv1.Scale{}
	sub := w.client.SubResource("scale")
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error { // controllers write its status
		if err := sub.Get(w.t.Context(), set, scale); err != nil {
			w.t.Fatal(err)
		}
		scale.Spec.Replicas = replicas
		return sub.Update(w.t.Context(), set, append(options, client.WithSubResourceBody(scale))...)
	})
}

// patch does as kubectl edit does.
func (w *world) patch(name string, replicas int32) error {
	w.t.Helper()
	set := w.set(name)
	changed := set.DeepCopy()
	changed.Spec.Replicas = &replicas
	return w.client.Patch(w.t.Context(), changed, client.MergeFrom(set))
}

// wantError checks that an error says something.
func wantError(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want an error with %q", err, text)
	}
}

func wantNo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// Short names for what stands in many tables.
type (
	sts      = appsv1.StatefulSet
	ordinals = appsv1.StatefulSetOrdinals
	ctxT     = context.Context
)

// rounds is how often two zones are scaled down at the same instant.
var rounds = flag.Int("rounds", 200, "how often what races is tried")
