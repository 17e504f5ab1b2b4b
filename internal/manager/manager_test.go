package manager_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/lab/controlplane"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/ring"
)

// TestMain has a control plane of its own: rings wait for kinds that must not be installed yet.
func TestMain(m *testing.M) { testenv.Main(m, testenv.Options{Alone: true}) }

func options(namespace string) manager.Options {
	return manager.Options{
		Rings: []string{manager.RingConfig}, Namespaces: []string{namespace}, Config: config.Options{Now: time.Now},
		LeaderElect: true, LeaseName: manager.LeaseName, LeaseNamespace: namespace,
		MetricsAddress: "0", ProbeAddress: "0", Version: "test", Log: logr.Discard(),
	}
}

// run runs a manager and returns how to stop it; stop returns its error.
func run(t *testing.T, cp *controlplane.ControlPlane, o manager.Options) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	done := make(chan error, 1)
	go func() { done <- manager.Run(ctx, cp.Config(), o) }()
	return func() error { cancel(); return <-done }
}

func newClient(t *testing.T, cp *controlplane.ControlPlane) client.Client {
	t.Helper()
	c, err := client.New(cp.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// stopping is a transport whose first request comes when the manager is to stop.
type stopping struct{ stop func() }

func (s stopping) RoundTrip(*http.Request) (*http.Response, error) {
	s.stop()
	return nil, context.Canceled
}

// A manager that is stopped while it starts has not failed.
func TestAStopDuringTheStartIsNoError(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	cfg := &rest.Config{Host: "https://127.0.0.1:1", Transport: stopping{stop}}
	if err := manager.Run(ctx, cfg, options("default")); err != nil {
		t.Error(err)
	}
}

// replica runs a manager, and returns what is closed once it knows that it leads, and how to stop it.
// One that is stopped before its request for the Lease is answered has nothing to release that it knows of.
func replica(t *testing.T, o manager.Options) (leads <-chan struct{}, stop func() error) {
	t.Helper()
	elected := make(chan (<-chan struct{}), 1)
	o.Observed = func(m ctrl.Manager, _ cache.Options) ctrl.Manager {
		elected <- m.Elected()
		return m
	}
	stop = run(t, testenv.Shared(), o)
	return <-elected, stop
}

// An empty name would be all namespaces.
func TestANamespaceHasAName(t *testing.T) {
	t.Parallel()
	o := options("default")
	o.Namespaces = []string{"default", ""}
	if err := manager.Run(t.Context(), testenv.Shared().Config(), o); err == nil || err.Error() != "one of the namespaces to watch has no name" {
		t.Error(err)
	}
}

// holder is what holds the Lease, empty if it is free.
func holder(t *testing.T, c client.Client, namespace string) string {
	t.Helper()
	lease := &coordinationv1.Lease{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: manager.LeaseName}, lease); err != nil {
		t.Fatal(err)
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

func TestOneReplicaLeadsAndHandsOver(t *testing.T) {
	c, ns, log := newClient(t, testenv.Shared()), testenv.Namespace(t), &lockedBuffer{}
	o := options(ns)
	o.Log = logr.FromSlogHandler(slog.NewTextHandler(log, nil))
	leads, stopFirst := replica(t, o)
	<-leads
	first := holder(t, c, ns)
	testenv.Eventually(t, func(context.Context) error { return works(log.String()) })
	leads, stopSecond := replica(t, options(ns))
	if err := stopFirst(); err != nil {
		t.Errorf("the first did not stop cleanly: %v", err)
	}
	if said := log.String(); strings.Contains(said, "level=ERROR") || !strings.Contains(said, "msg=stopped") {
		t.Errorf("a clean stop says %s", said)
	}
	<-leads
	if second := holder(t, c, ns); second == "" || second == first {
		t.Errorf("the second leads, and %q holds the Lease, which %q has held", second, first)
	}
	if err := stopSecond(); err != nil {
		t.Errorf("the second did not stop cleanly: %v", err)
	}
	if last := holder(t, c, ns); last != "" {
		t.Errorf("the Lease was not released: %s holds it", last)
	}
}

// works is nil once every controller of the config ring is at work, or its kinds are not installed. A stop before that
// ends caches that are being filled, and controller-runtime logs that as an error.
func works(said string) error {
	for name, missing := range map[string]string{"config": "", "gates": "logger=gates missing=", "notify": "logger=notify missing=Notifier."} {
		isMissing := missing != "" && strings.Contains(said, missing)
		if !isMissing && !strings.Contains(said, `msg="Starting workers" controller=`+name) {
			return fmt.Errorf("the controller %s is not at work yet", name)
		}
	}
	return nil
}

func TestProbesAndMetrics(t *testing.T) {
	o := options(testenv.Namespace(t))
	o.ProbeAddress, o.MetricsAddress = address(t), address(t)
	stop := run(t, testenv.Shared(), o)
	for url, text := range map[string]string{
		"http://" + o.ProbeAddress + "/healthz":   "ok",
		"http://" + o.ProbeAddress + "/readyz":    "ok",
		"http://" + o.MetricsAddress + "/metrics": "spillway_config_tracked_workloads 0",
	} {
		testenv.Eventually(t, func(context.Context) error { return serves(url, text) })
	}
	end := ring.UnderWay.BeginAt("a ring that hangs", time.Now().Add(-time.Hour))
	res, err := http.Get("http://" + o.ProbeAddress + "/healthz")
	end()
	if err != nil || res.StatusCode != http.StatusInternalServerError {
		t.Errorf("while a pass hangs: %v, %v", res, err)
	} else if res.Body.Close(); serves("http://"+o.ProbeAddress+"/healthz", "ok") != nil {
		t.Error("it has ended, and the manager is not alive")
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// With webhooks a workload has its hash before it is stored, from a replica that
// does not lead as well; and readiness knows of them.
func TestWebhooksAreServed(t *testing.T) {
	c, ns := newClient(t, testenv.Shared()), testenv.Namespace(t)
	w := testenv.RegisterWebhooks(t, ns, manager.Options{}.Declarations(manager.RingConfig).Webhooks)
	elected, leads := replica(t, options(ns))
	<-elected
	o := options(ns)
	o.Admission, o.ProbeAddress = w.Options, address(t)
	waits := run(t, testenv.Shared(), o)
	w.WaitServed(t)
	testenv.Eventually(t, func(context.Context) error { return serves("http://"+o.ProbeAddress+"/readyz", "ok") })
	d := web()
	d.Namespace = ns
	if err := c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "app"}}); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if d.Spec.Template.Annotations["spillway.dev/config-hash"] == "" {
		t.Error("it was stored without a hash")
	}
	for _, stop := range []func() error{waits, leads} {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
}

func address(t *testing.T) string {
	t.Helper()
	port, err := controlplane.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return "127.0.0.1:" + strconv.Itoa(port)
}

func serves(url, text string) error {
	res, err := http.Get(url)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	var b strings.Builder
	if err := res.Write(&b); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK || !strings.Contains(b.String(), text) {
		return fmt.Errorf("%s answers %s", url, b.String())
	}
	return nil
}

// The API server goes away in earnest, and comes back; what was changed in the
// last moment is done.
func TestTheAPIServerGoesAway(t *testing.T) {
	cp := testenv.Own(t, controlplane.Options{})
	c, o := newClient(t, cp), options("default")
	o.LeaderElect = false
	stop := run(t, cp, o)
	hash := func() (string, error) {
		d := &appsv1.Deployment{}
		err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "web"}, d)
		return d.Spec.Template.Annotations["spillway.dev/config-hash"], err
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "app"}}
	if err := c.Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), web()); err != nil {
		t.Fatal(err)
	}
	var first string
	testenv.Eventually(t, func(context.Context) error {
		var err error
		if first, err = hash(); first == "" {
			return fmt.Errorf("no hash: %w", err)
		}
		return nil
	})
	cm.Data = map[string]string{"a": "2"}
	if err := c.Update(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	cp.StopAPIServer()
	if err := cp.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, func(context.Context) error {
		if now, err := hash(); err != nil || now == first {
			return fmt.Errorf("hash %q: %w", now, err)
		}
		return nil
	})
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func web() *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Annotations: map[string]string{"spillway.dev/update-on-config-change": "true"}},
	}
	d.Spec.Selector, d.Spec.Template.Labels = &metav1.LabelSelector{MatchLabels: labels}, labels
	from := corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "app"}}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "x", EnvFrom: []corev1.EnvFromSource{from}}}
	return d
}
