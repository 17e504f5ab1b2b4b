package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/barrier"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

func TestMain(m *testing.M) { testenv.Main(m, testenv.Options{}) }

// copier is a manager that copies the datum "in" of ConfigMaps to "out".
type copier struct {
	t         *testing.T
	namespace string
	client    client.Client
	requests  *fault.Injector
	clock     *barrier.Clock
	barrier   *barrier.Barrier
	// matters is what wakes it, each pass is called at its beginning, and soak is how long it
	// waits after the time that a ConfigMap says.
	matters predicate.Predicate
	pass    func()
	soak    time.Duration
}

func newCopier(t *testing.T, change func(*copier)) *copier {
	t.Helper()
	t.Parallel()
	return newCopierNow(t, change)
}

// newCopierNow is newCopier for a test that has one already.
func newCopierNow(t *testing.T, change func(*copier)) *copier {
	t.Helper()
	c := &copier{
		t: t, namespace: testenv.Namespace(t), client: testenv.Client(t), requests: fault.New(), clock: &barrier.Clock{},
		matters: predicate.Funcs{}, pass: func() {},
	}
	c.barrier = barrier.New(c.client, c.clock)
	change(c)
	c.barrier.Managed(t, c.requests, c.run)
	return c
}

func (c *copier) run(ctx context.Context, log logr.Logger, m *barrier.Manager) error {
	yes := true
	o := ctrl.Options{
		Logger: log, Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &yes},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{c.namespace: {}}},
	}
	mgr, err := ctrl.NewManager(c.requests.Wrap(testenv.Shared().Config()), o)
	if err != nil {
		return err
	}
	mgr = m.Observed(mgr, o.Cache)
	err = ctrl.NewControllerManagedBy(mgr).Named("copier").For(&corev1.ConfigMap{}, builder.WithPredicates(c.matters)).
		Complete(reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			c.pass()
			return c.reconcile(ctx, mgr.GetClient(), r)
		}))
	return errors.Join(err, mgr.Start(ctx))
}

func (c *copier) reconcile(ctx context.Context, cached client.Client, r reconcile.Request) (reconcile.Result, error) {
	cm := &corev1.ConfigMap{}
	if err := cached.Get(ctx, r.NamespacedName, cm); err != nil || cm.Data["in"] == cm.Data["out"] {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if wait := cm.CreationTimestamp.Add(c.soak).Sub(c.clock.Now()); wait > 0 && c.soak > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	cm.Data["out"] = cm.Data["in"]
	return reconcile.Result{}, cached.Update(ctx, cm)
}

// in writes the datum that is to be copied.
func (c *copier) in(value string) {
	c.t.Helper()
	testenv.Apply(c.t, c.client, &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "a"},
		Data: map[string]string{"in": value},
	})
}

// out asserts once what was copied.
func (c *copier) out(want string) {
	c.t.Helper()
	cm := &corev1.ConfigMap{}
	if err := c.client.Get(c.t.Context(), client.ObjectKey{Namespace: c.namespace, Name: "a"}, cm); err != nil || cm.Data["out"] != want {
		c.t.Errorf("out is %q, want %q: %v", cm.Data["out"], want, err)
	}
}

// blocks checks that the barrier does not let through, and why.
func (c *copier) blocks(why string) {
	c.t.Helper()
	for range 10 {
		if err := c.barrier.Passed(c.t.Context()); err == nil || !strings.Contains(err.Error(), why) {
			c.t.Fatalf("the barrier says %v, want %q", err, why)
		}
	}
}

func TestAWriteIsObservedAndDone(t *testing.T) {
	c := newCopier(t, func(*copier) {})
	for i := range 20 {
		c.in(fmt.Sprint(i))
		c.barrier.Wait(t)
		c.out(fmt.Sprint(i))
	}
	if n := len(c.requests.Writes()); n != 20 {
		t.Errorf("%d writes", n)
	}
}

// A manager whose watches lag is waited for, whether something is new, has changed or is gone.
func TestAManagerThatLags(t *testing.T) {
	c := newCopier(t, func(*copier) {})
	for _, write := range []func(){
		func() { c.in("1") }, func() { c.in("2") },
		func() { _ = c.client.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(c.namespace)) },
	} {
		c.barrier.Wait(t)
		release := c.requests.HoldWatches("configmaps")
		write()
		c.blocks("observed")
		release()
	}
	c.barrier.Wait(t)
	if n := len(c.requests.Writes()); n != 2 {
		t.Errorf("%d writes", n)
	}
}

func TestAPassThatRunsIsWaitedFor(t *testing.T) {
	begun, end := make(chan bool, 10), make(chan bool)
	c := newCopier(t, func(c *copier) {
		c.matters = predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == "a" })
		c.pass = func() { begun <- true; <-end }
	})
	c.in("1")
	<-begun
	c.blocks("running")
	close(end)
	c.barrier.Wait(t)
	c.out("1")
}

// What a manager fails to notice it does not notice because a test waits.
func TestAChangeThatIsMissedStaysMissed(t *testing.T) {
	c := newCopier(t, func(c *copier) {
		c.matters = predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
	})
	c.in("1")
	c.barrier.Wait(t)
	c.in("2")
	c.barrier.Wait(t)
	c.out("1")
}

func TestAnHourIsStepped(t *testing.T) {
	c := newCopier(t, func(c *copier) { c.soak = time.Hour })
	c.in("1")
	c.barrier.Wait(t)
	c.out("")
	c.barrier.Step(t, 59*time.Minute)
	c.out("")
	c.barrier.Step(t, time.Minute)
	c.out("1")
}

// A manager is waited for also at the barrier of another API server.
func TestManagersOfAllServersAreWaitedFor(t *testing.T) {
	here := newCopier(t, func(*copier) {})
	there := newCopierNow(t, func(c *copier) { c.barrier = here.barrier.Beside(c.client) })
	here.barrier.Wait(t)
	release := there.requests.HoldWatches("configmaps")
	there.in("1")
	here.blocks("observed")
	release()
	here.barrier.Wait(t)
	there.out("1")
}

// What a process of the test answers to a manager, and the manager to that, is waited for.
func TestAProcessOfTheTestIsWaitedFor(t *testing.T) {
	c := newCopier(t, func(*copier) {})
	c.barrier.Also(func(ctx context.Context) error {
		cm := &corev1.ConfigMap{}
		if err := c.client.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: "a"}, cm); err != nil || cm.Data["out"] == "5" {
			return err
		}
		n, _ := strconv.Atoi(cm.Data["out"])
		c.in(strconv.Itoa(n + 1))
		return fmt.Errorf("it has answered %d", n)
	})
	c.in("1")
	c.barrier.Wait(t)
	c.out("5")
	if n := len(c.requests.Writes()); n != 5 {
		t.Errorf("%d writes", n)
	}
}

func TestWithoutAManagerThereIsNothingToWaitFor(t *testing.T) {
	t.Parallel()
	if err := barrier.New(testenv.Client(t), &barrier.Clock{}).Passed(t.Context()); err == nil {
		t.Error("the barrier lets through without a manager")
	}
}
