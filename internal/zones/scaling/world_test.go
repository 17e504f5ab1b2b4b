package scaling_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kubernetes "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllers "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/admission/certificate"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/barrier"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/zones/guard"
	"github.com/spillway-dev/spillway/internal/zones/scaling"
)

// TestMain lets more tests run at a time than there are processors: they wait for
// controllers, most of the time.
func TestMain(m *testing.M) {
	testenv.Parallel(6)
	testenv.Main(m, testenv.Options{Nodes: 3})
}

const (
	ingester = "ingester"
	grafana  = "grafana.com/"
)

// world is a namespace of its own whose groups are scaled, and a user in it.
type world struct {
	t         *testing.T
	client    client.Client
	namespace string
	requests  *fault.Injector
	webhooks  *testenv.Webhooks
	// clock is that of the managers, which the barrier waits for.
	clock   *barrier.Clock
	barrier *barrier.Barrier
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	c, err := client.New(testenv.Shared().Config(), client.Options{Scheme: scheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, client: c, namespace: testenv.Namespace(t), requests: fault.New(), clock: &barrier.Clock{}}
	w.barrier = barrier.New(c, w.clock)
	w.installKinds()
	testenv.KnownReasons(t, c, w.namespace, &v1alpha1.RolloutGroupList{})
	w.create(&v1alpha1.RolloutGroup{ObjectMeta: metav1.ObjectMeta{Name: ingester}})
	return w
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(kubernetes.AddToScheme(s), v1alpha1.AddToScheme(s), zonesv1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return s
}

func (w *world) installKinds() {
	w.t.Helper()
	files, err := filepath.Glob("../../../charts/spillway/generated/zones/*_*.yaml")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			w.t.Fatal(err)
		}
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(raw, &obj.Object); err != nil {
			w.t.Fatal(err)
		}
		err = w.client.Apply(w.t.Context(), client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("user"), client.ForceOwnership)
		if err != nil {
			w.t.Fatal(err)
		}
	}
	testenv.Eventually(w.t, func(ctx context.Context) error {
		return errors.Join(w.client.List(ctx, &v1alpha1.RolloutGroupList{}), w.client.List(ctx, &zonesv1.ReplicaTemplateList{}),
			w.client.List(ctx, &zonesv1.ZoneAwarePodDisruptionBudgetList{}))
	})
}

// guarded registers the guards' webhooks; the managers that follow serve them.
func (w *world) guarded() {
	w.t.Helper()
	w.webhooks = testenv.RegisterWebhooks(w.t, w.namespace, guard.Declared().Webhooks)
}

// manage runs a manager until the end of the test or the stop.
func (w *world) manage() (stop func()) {
	w.t.Helper()
	stop = w.managed(w.requests)
	if w.webhooks != nil {
		w.webhooks.WaitServed(w.t)
		w.webhooks.Select(w.t, "spillway.dev/prepares-scales", "true")
	}
	return stop
}

func (w *world) managed(inj *fault.Injector) (stop func()) {
	w.t.Helper()
	yes, cfg := true, inj.Wrap(testenv.Shared().Config())
	cfg.QPS = -1
	o := ctrl.Options{
		Scheme: scheme(w.t), Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: controllers.Controller{SkipNameValidation: &yes},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{w.namespace: {}}},
		Client:     client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: &yes}},
	}
	return w.barrier.Managed(w.t, inj, func(ctx context.Context, log logr.Logger, m *barrier.Manager) error {
		o.Logger = log
		mgr, err := ctrl.NewManager(cfg, o)
		if err != nil {
			return err
		}
		mgr = m.Observed(mgr, o.Cache)
		err = errors.Join(scaling.Setup(ctx, mgr, scaling.Options{Now: w.clock.Now, PodTimeout: 10 * time.Second}), w.answer(mgr), mgr.Start(ctx))
		if ctx.Err() == nil { // a stop while it starts is no failure
			return err
		}
		return nil
	})
}

// answer answers the guards' webhooks, if they are registered.
func (w *world) answer(mgr ctrl.Manager) error {
	if w.webhooks == nil {
		return nil
	}
	routes, err := guard.Routes(mgr, guard.Options{Now: w.clock.Now, PodTimeout: 10 * time.Second})
	return errors.Join(err, certificate.Setup(mgr, w.webhooks.Options, guard.Declared().Webhooks, routes))
}

type option func(*appsv1.StatefulSet)

func annotated(pairs ...string) option {
	return func(s *appsv1.StatefulSet) {
		for i := 0; i < len(pairs); i += 2 {
			s.Annotations[pairs[i]] = pairs[i+1]
		}
	}
}

// zone is a StatefulSet of the group ingester.
func zone(name string, replicas int32, change ...option) *appsv1.StatefulSet {
	labels := map[string]string{"name": name}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"rollout-group": ingester}, Annotations: map[string]string{},
	}}
	zero := int64(0)
	set.Spec = appsv1.StatefulSetSpec{
		Replicas: &replicas, ServiceName: "ingester", Selector: &metav1.LabelSelector{MatchLabels: labels},
		PodManagementPolicy: appsv1.ParallelPodManagement, UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
	}
	set.Spec.Template.Labels, set.Spec.Template.Annotations = labels, map[string]string{}
	set.Spec.Template.Spec = corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "v1"}}, TerminationGracePeriodSeconds: &zero}
	for _, c := range change {
		c(set)
	}
	return set
}

// prepared makes the Pods that go be told at a server, by the guards.
func prepared(pods *testenv.Pods) option {
	return func(s *appsv1.StatefulSet) {
		s.Labels[grafana+"prepare-downscale"] = "true"
		s.Annotations[grafana+"prepare-downscale-http-path"] = "prepare"
		s.Annotations[grafana+"prepare-downscale-http-port"] = pods.Port
		s.Spec.Template.Annotations[testenv.PodIP] = pods.IP
	}
}

// mirrors makes a StatefulSet mirror the ReplicaTemplate ingester.
func mirrors(s *appsv1.StatefulSet) {
	annotated(grafana+"rollout-mirror-replicas-from-resource-name", ingester, grafana+"rollout-mirror-replicas-from-resource-kind", "ReplicaTemplate",
		grafana+"rollout-mirror-replicas-from-resource-api-version", "rollout-operator.grafana.com/v1")(s)
}

// delayed makes a downscale wait.
func delayed(pods *testenv.Pods, by string) option {
	return func(s *appsv1.StatefulSet) {
		s.Annotations[grafana+"rollout-delayed-downscale"] = by
		s.Annotations[grafana+"rollout-prepare-delayed-downscale-url"] = "http://pod:" + pods.Port + "/prepare-delayed"
		s.Spec.Template.Annotations[testenv.PodIP] = pods.IP
	}
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

func template(replicas int32) *zonesv1.ReplicaTemplate {
	return &zonesv1.ReplicaTemplate{ObjectMeta: metav1.ObjectMeta{Name: ingester}, Spec: zonesv1.ReplicaTemplateSpec{Replicas: &replicas, LabelSelector: "name=ingester"}}
}

func (w *world) get(name string, obj client.Object) {
	w.t.Helper()
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, obj); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) set(name string) *appsv1.StatefulSet {
	w.t.Helper()
	s := &appsv1.StatefulSet{}
	w.get(name, s)
	return s
}

func (w *world) status() v1alpha1.RolloutGroupStatus {
	w.t.Helper()
	g := &v1alpha1.RolloutGroup{}
	w.get(ingester, g)
	return g.Status
}

// replicas waits until a StatefulSet is to have so many, and has them.
func (w *world) replicas(name string, n int32) {
	w.t.Helper()
	testenv.Eventually(w.t, func(context.Context) error {
		s := w.set(name)
		if *s.Spec.Replicas != n || s.Status.Replicas != n || s.Status.ReadyReplicas != n {
			return fmt.Errorf("%s: %d replicas are wanted, %d exist, %d ready; want %d", name, *s.Spec.Replicas, s.Status.Replicas, s.Status.ReadyReplicas, n)
		}
		return nil
	})
}

// scale does as an autoscaler or a user does.
func (w *world) scale(obj client.Object, n int32) {
	w.t.Helper()
	obj.SetNamespace(w.namespace)
	testenv.Eventually(w.t, func(ctx context.Context) error { return testenv.Scale(ctx, w.client, obj, n) })
}

func (w *world) eventually(check func() error) {
	w.t.Helper()
	testenv.Eventually(w.t, func(context.Context) error { return check() })
}
