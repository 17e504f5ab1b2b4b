package plans_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/gates"
	"github.com/spillway-dev/spillway/internal/lab/controlplane"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/barrier"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/notify"
	"github.com/spillway-dev/spillway/internal/plans"
	"github.com/spillway-dev/spillway/internal/plans/admit"
	"github.com/spillway-dev/spillway/internal/plans/pipe"
	"github.com/spillway-dev/spillway/internal/zones"
)

// cluster is a namespace of its own on the real API server, and a user in it.
type cluster struct {
	t         *testing.T
	cp        *controlplane.ControlPlane
	client    client.Client
	namespace string
	// faults is the transport of the manager that was started last.
	faults *fault.Injector
	// files answer the exec of Pipes, which simulated nodes cannot.
	files pipe.Files
	// config is how the manager connects.
	config *rest.Config
	// webhooks are those of the ring; nil if the manager is to serve none.
	webhooks *testenv.Webhooks
	// rings are those that the manager runs.
	rings []string
	stop  func()
	// clock is that of the managers, which the barrier waits for.
	clock   *barrier.Clock
	barrier *barrier.Barrier
}

// installed has the kinds and the guard installed once for all tests.
var installed sync.Once

func newCluster(t *testing.T) *cluster {
	t.Helper()
	t.Parallel()
	return newQuietCluster(t)
}

// newQuietCluster is for a test that others wait for.
func newQuietCluster(t *testing.T) *cluster {
	t.Helper()
	installed.Do(func() { install(t, newClient(t, testenv.Shared())) })
	return newClusterOn(t, testenv.Shared())
}

func newClusterOn(t *testing.T, cp *controlplane.ControlPlane) *cluster {
	t.Helper()
	c := &cluster{
		t: t, cp: cp, client: newClient(t, cp), namespace: testenv.NamespaceOn(t, cp), files: filesOf{}, config: cp.Config(),
		rings: []string{manager.RingPlans}, clock: &barrier.Clock{},
	}
	c.barrier = barrier.New(c.client, c.clock)
	testenv.KnownReasons(t, c.client, c.namespace, &v1beta1.InstanceList{})
	return c
}

// filesOf are the files of all Pods, by path.
type filesOf map[string]string

func (f filesOf) Read(_ context.Context, _, _, _, path string, _ int) ([]byte, error) {
	if content, ok := f[path]; ok {
		return []byte(content), nil
	}
	return []byte("content of " + path), nil
}

// manage starts a manager, which is stopped at the end of the test or by halt.
func (c *cluster) manage() {
	c.t.Helper()
	c.faults = fault.New()
	c.stop = c.manageWith(c.faults)
}

func (c *cluster) manageWith(inj *fault.Injector, change ...func(*manager.Options)) (stop func()) {
	c.t.Helper()
	o := manager.Options{
		Rings: c.rings, Namespaces: []string{c.namespace}, Plans: plans.Options{Now: c.clock.Now, Files: c.files},
		Config: config.Options{Now: c.clock.Now}, Zones: zones.Options{Now: c.clock.Now}, Gates: gates.Options{Off: true}, Notify: notify.Options{Off: true},
	}
	if c.webhooks != nil {
		o.Admission = c.webhooks.Options
	}
	for _, f := range change {
		f(&o)
	}
	return c.barrier.Run(c.t, c.config, inj, o)
}

// serve is manage with the ring's webhook, and waits until the API server calls.
func (c *cluster) serve() {
	c.t.Helper()
	c.webhooks = testenv.RegisterWebhooks(c.t, c.namespace, admit.Declared().Webhooks)
	c.manage()
	c.webhooks.WaitServed(c.t)
}

// halt stops the manager, and returns once it has stopped.
func (c *cluster) halt() { c.stop() }

// operator installs an OperatorVersion, given as YAML of its spec.
func (c *cluster) operator(name, spec string) {
	c.t.Helper()
	ov := &v1beta1.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name}}
	if err := yaml.UnmarshalStrict([]byte(spec), &ov.Spec); err != nil {
		c.t.Fatal(err)
	}
	ov.Spec.Operator.Name, _, _ = strings.Cut(name, "-")
	if err := c.client.Create(c.t.Context(), ov); err != nil {
		c.t.Fatal(err)
	}
}

// instance makes an Instance of an OperatorVersion.
func (c *cluster) instance(name, version string, parameters ...string) {
	c.t.Helper()
	i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name}}
	i.Spec.OperatorVersion.Name = version
	set(parameters...)(i)
	if err := c.client.Create(c.t.Context(), i); err != nil {
		c.t.Fatal(err)
	}
}

func set(pairs ...string) func(*v1beta1.Instance) {
	return func(i *v1beta1.Instance) {
		for n := 0; n < len(pairs); n += 2 {
			if i.Spec.Parameters == nil {
				i.Spec.Parameters = map[string]string{}
			}
			i.Spec.Parameters[pairs[n]] = pairs[n+1]
		}
	}
}

func use(version string) func(*v1beta1.Instance) {
	return func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = version }
}

func ask(plan string) func(*v1beta1.Instance) {
	return func(i *v1beta1.Instance) { i.Spec.PlanExecution = v1beta1.PlanExecution{PlanName: plan} }
}

func annotate(key, value string) func(*v1beta1.Instance) {
	return func(i *v1beta1.Instance) {
		if i.Annotations == nil {
			i.Annotations = map[string]string{}
		}
		i.Annotations[key] = value
	}
}

// change changes an Instance as a user does.
func (c *cluster) change(name string, changes ...func(*v1beta1.Instance)) {
	c.t.Helper()
	if err := c.tryChange(name, changes...); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) tryChange(name string, changes ...func(*v1beta1.Instance)) error {
	i := c.now(name)
	before := i.DeepCopy()
	for _, change := range changes {
		change(i)
	}
	return c.client.Patch(c.t.Context(), i, client.MergeFrom(before))
}

func (c *cluster) now(name string) *v1beta1.Instance {
	c.t.Helper()
	i := &v1beta1.Instance{}
	if err := c.get(i, name); err != nil {
		c.t.Fatal(err)
	}
	return i
}

func (c *cluster) get(obj client.Object, name string) error {
	return c.client.Get(c.t.Context(), client.ObjectKey{Namespace: c.namespace, Name: name}, obj)
}

func (c *cluster) eventually(check func() error) {
	c.t.Helper()
	testenv.Eventually(c.t, func(context.Context) error { return check() })
}

// history are the executions that have ended, oldest first: "deploy Complete".
func (c *cluster) history(name string) string {
	c.t.Helper()
	return historyOf(c.now(name))
}

func historyOf(i *v1beta1.Instance) string {
	var all []string
	for _, past := range slices.Backward(i.Status.History) {
		all = append(all, past.Plan+" "+string(past.Result))
	}
	return strings.Join(all, ", ")
}

// rests waits until no plan runs and the spec was looked at, which takes other processes too, and
// compares the history. Nothing more follows.
func (c *cluster) rests(name, history string) {
	c.t.Helper()
	c.eventually(func() error { return c.isAtRest(name, history) })
	if errors.Is(c.barrier.Passed(c.t.Context()), barrier.ErrNone) {
		return
	}
	c.barrier.Wait(c.t)
	if err := c.isAtRest(name, history); err != nil {
		c.t.Errorf("it rested, and then %v", err)
	}
}

func (c *cluster) isAtRest(name, history string) error {
	i := c.now(name)
	s := &i.Status
	if s.ObservedGeneration != i.Generation || s.AggregatedStatus.ActivePlan != "" || i.Spec.PlanExecution.PlanName != "" {
		return fmt.Errorf("plan %q at %q waits for %q, generation %d of %d", s.AggregatedStatus.ActivePlan, s.Place, s.WaitingFor, s.ObservedGeneration, i.Generation)
	}
	if got := historyOf(i); got != history {
		return fmt.Errorf("the history is %q, not %q; it waits for %q", got, history, s.WaitingFor)
	}
	return nil
}

// atRest steps the clock if nothing is left to do until then.
func (c *cluster) atRest(by time.Duration) {
	if c.barrier.Passed(c.t.Context()) == nil {
		c.clock.Step(by)
	}
}

// waits waits until the Instance says that it waits for this.
func (c *cluster) waits(name, sentence string) {
	c.t.Helper()
	c.eventually(func() error {
		if got := c.now(name).Status.WaitingFor; !strings.Contains(got, sentence) {
			return fmt.Errorf("it waits for %q, not %q", got, sentence)
		}
		return nil
	})
}

// data returns the data of a ConfigMap; nil if it does not exist.
func (c *cluster) data(name string) map[string]string {
	c.t.Helper()
	cm := &corev1.ConfigMap{}
	if err := c.get(cm, name); err != nil && !apierrors.IsNotFound(err) {
		c.t.Fatal(err)
	}
	return cm.Data
}

func (c *cluster) list(list client.ObjectList) {
	c.t.Helper()
	if err := c.client.List(c.t.Context(), list, client.InNamespace(c.namespace)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) gone(obj client.Object, name string) {
	c.t.Helper()
	c.eventually(func() error {
		if err := c.get(obj, name); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%T %s still exists: %w", obj, name, err)
		}
		return nil
	})
}

func (c *cluster) remove(obj client.Object, name string) {
	c.t.Helper()
	obj.SetNamespace(c.namespace)
	obj.SetName(name)
	if err := c.client.Delete(c.t.Context(), obj); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) apply(manifest string) {
	c.t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &u.Object); err != nil {
		c.t.Fatal(err)
	}
	u.SetNamespace(c.namespace)
	testenv.Apply(c.t, c.client, u)
}

func (c *cluster) deployment(name string) *appsv1.Deployment {
	c.t.Helper()
	d := &appsv1.Deployment{}
	if err := c.get(d, name); err != nil {
		c.t.Fatal(err)
	}
	return d
}

// replace replaces a text, which must occur.
func replace(text, old, now string) string {
	if !strings.Contains(text, old) {
		panic(fmt.Sprintf("%q is not in %s", old, text))
	}
	return strings.ReplaceAll(text, old, now)
}
