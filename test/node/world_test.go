//go:build node

package node_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/admit"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/config/snapshots"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/lab/node"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/barrier"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
)

func TestMain(m *testing.M) { testenv.MainNode(m, 6) }

const native = "spillway.dev/"

// staged has one workload go first, which has to stay ready for an hour; its clock is stepped.
const staged = "stages: [{name: first, workloads: 1, soak: 1h}, {name: others}]"

// hour is more than the soak.
const hour = 61 * time.Minute

// How a container uses the key p of the Secret db.
const (
	byEnv     = "env: [{name: VALUE, valueFrom: {secretKeyRef: {name: db, key: p}}}]"
	byEnvFrom = "envFrom: [{prefix: APP_, secretRef: {name: db}}]"
	byMount   = "volumeMounts: [{name: v, mountPath: /config}]"
	bySubPath = "volumeMounts: [{name: v, mountPath: /config/p, subPath: p}]"

	volume    = "volumes: [{name: v, secret: {secretName: db}}]"
	projected = "volumes: [{name: v, projected: {sources: [{secret: {name: db}}]}}]"
)

var three, five = []string{"app1", "app2", "app3"}, []string{"app1", "app2", "app3", "app4", "app5"}

// image is what Pods run: on other clusters the one of this name.
func image() string { return cmp.Or(os.Getenv("IMAGE"), node.Image) }

// world is a namespace with a user, and a manager of its own.
type world struct {
	t         *testing.T
	client    client.Client
	pods      *kubernetes.Clientset
	namespace string
	options   config.Options
	clock     *barrier.Clock
	barrier   *barrier.Barrier
	stop      func()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	c, err := testenv.Shared().Clientset()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, client: testenv.Client(t), pods: c, namespace: testenv.Namespace(t), clock: &barrier.Clock{}}
	if err := kinds(t, w.client); err != nil {
		t.Fatal(err)
	}
	w.barrier = barrier.New(w.client, w.clock)
	w.options = config.Options{
		Namespaces: []string{w.namespace}, LeaseNamespace: w.namespace, LeaseName: manager.LeaseName, Now: w.clock.Now,
		Options: decision.Options{CoalesceWindow: 100 * time.Millisecond},
	}
	t.Cleanup(w.sayStates)
	return w
}

var installed sync.Once

// kinds installs the kinds of the rings that are tested.
func kinds(t *testing.T, c client.Client) (err error) {
	t.Helper()
	installed.Do(func() {
		var objects []*unstructured.Unstructured
		if objects, err = manifests.KindsOf([]string{manager.RingConfig, manager.RingZones, manager.RingPlans}); err == nil {
			testenv.Kinds(t, c, objects)
		}
	})
	return err
}

// sayStates logs the Pods of a test that has failed, and takes its containers from the node.
func (w *world) sayStates() {
	ctx := context.Background()
	if w.t.Failed() {
		list := &corev1.PodList{}
		if err := w.client.List(ctx, list, client.InNamespace(w.namespace)); err != nil {
			w.t.Log(err)
		}
		for i := range list.Items {
			p := &list.Items[i]
			w.t.Logf("%s: %s %+v %+v", p.Name, p.Status.Phase, p.Status.Conditions, p.Status.ContainerStatuses)
		}
	}
	for _, obj := range []client.Object{&appsv1.Deployment{}, &appsv1.StatefulSet{}, &batchv1.CronJob{}, &batchv1.Job{}} {
		if err := w.client.DeleteAllOf(ctx, obj, client.InNamespace(w.namespace), client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			w.t.Log(err)
		}
	}
}

func (w *world) manage(change ...func(*manager.Options)) {
	w.t.Helper()
	o := manager.Options{
		Rings: []string{manager.RingConfig}, Namespaces: w.options.Namespaces, Config: w.options,
		LeaseNamespace: w.namespace, LeaseName: manager.LeaseName,
	}
	for _, c := range change {
		c(&o)
	}
	w.stop = w.barrier.Run(w.t, testenv.Shared().Config(), fault.New(), o)
}

// admit starts a manager that answers webhooks, which the API server calls on this machine.
func (w *world) admit() {
	w.t.Helper()
	w.serve(admit.Declared(pin.Namespaces{}).Webhooks, func(*manager.Options) {})
}

// serve starts a manager that answers webhooks.
func (w *world) serve(hooks []admission.Webhook, change func(*manager.Options)) *testenv.Webhooks {
	w.t.Helper()
	if testenv.Shared().Dir == "" {
		w.t.Skip("the API server of another machine cannot call a webhook of this test")
	}
	served := testenv.RegisterWebhooks(w.t, w.namespace, hooks)
	w.manage(func(o *manager.Options) { o.Admission = served.Options }, change)
	served.WaitServed(w.t)
	return served
}

// pinnable lets workloads of the namespace keep the config of their revisions.
func (w *world) pinnable() {
	w.t.Helper()
	if why, err := snapshots.Refusal(w.client.RESTMapper(), pin.ByPolicy); err != nil || why != "" {
		w.t.Skip(why, err)
	}
	w.options.PinNamespaces = pin.In(w.namespace)
	testenv.Pins(w.t, w.client, w.namespace, w.options.PinNamespaces)
}

func (w *world) apply(manifests ...string) {
	w.t.Helper()
	for _, manifest := range manifests {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(manifest), &obj.Object); err != nil {
			w.t.Fatalf("%v: %s", err, manifest)
		}
		obj.SetNamespace(w.namespace)
		if err := w.client.Apply(w.t.Context(), client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("user"), client.ForceOwnership); err != nil {
			w.t.Fatal(err)
		}
	}
}

// policy applies a ConfigPolicy, and waits until the manager has seen it if there is one.
func (w *world) policy(spec string) {
	w.t.Helper()
	w.apply("apiVersion: spillway.dev/v1alpha1\nkind: ConfigPolicy\nmetadata: {name: staged}\nspec: {" + spec + "}")
	if w.stop != nil {
		w.barrier.Wait(w.t)
	}
}

// secret writes the Secret db.
func (w *world) secret(value string) {
	w.t.Helper()
	w.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {p: " + value + "}")
}

// app is a tracked Deployment of one Pod. More fields of it are given as "replicas: 2".
func app(name, use, volumes string, more ...string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, annotations: {spillway.dev/update-on-config-change: "true"}}
spec:
  replicas: 1
  selector: {matchLabels: {app: %[1]s}}
  %[4]s
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
%[2]s
      %[3]s`, name, indent(container("serve", use)), volumes, strings.Join(more, "\n  "))
}

// container is the spec of a Pod. Its probes are patient with a busy machine.
func container(mode, use string) string {
	probes := ""
	if mode == "serve" {
		probes = `
  readinessProbe: {httpGet: {path: /ready, port: 8080}, periodSeconds: 1, timeoutSeconds: 10}
  livenessProbe: {httpGet: {path: /live, port: 8080}, periodSeconds: 2, timeoutSeconds: 10, failureThreshold: 2}`
	}
	return `automountServiceAccountToken: false
terminationGracePeriodSeconds: 1
containers:
- name: c
  image: ` + image() + `
  imagePullPolicy: IfNotPresent
  args: [` + mode + `]
  ` + use + probes
}

func indent(text string) string { return "      " + strings.ReplaceAll(text, "\n", "\n      ") }

// run has some Deployments ready with the value good, under a policy, and a manager. They
// existed before it, so that it has nothing to roll.
func (w *world) run(policy, use, volumes string, names []string, more ...string) {
	w.t.Helper()
	w.policy(policy)
	w.secret("good")
	for _, name := range names {
		w.apply(app(name, use, volumes, more...))
	}
	w.manage()
	w.reads("good", names...)
	w.complete()
}

func (w *world) eventually(check func() error) {
	w.t.Helper()
	testenv.Eventually(w.t, func(context.Context) error { return check() })
}

func want[T comparable](want, got T) error {
	if want != got {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	return nil
}

func (w *world) get(obj client.Object, name string) error {
	return w.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, obj)
}

func (w *world) deployment(name string) *appsv1.Deployment {
	w.t.Helper()
	d := &appsv1.Deployment{}
	if err := w.get(d, name); err != nil {
		w.t.Fatal(err)
	}
	return d
}

// live are the Pods of an app that are not being deleted.
func (w *world) live(app string) []corev1.Pod {
	w.t.Helper()
	list := &corev1.PodList{}
	if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace), client.MatchingLabels{"app": app}); err != nil {
		w.t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

func (w *world) uids(app string) (uids []types.UID) {
	w.t.Helper()
	for _, p := range w.live(app) {
		uids = append(uids, p.UID)
	}
	slices.Sort(uids)
	return uids
}

// ask has a Pod answer a request, through the API server.
func (w *world) ask(pod, path string) (string, error) {
	raw, err := w.pods.CoreV1().Pods(w.namespace).ProxyGet("http", pod, "8080", path, nil).DoRaw(w.t.Context())
	return strings.TrimSpace(string(raw)), err
}

func (w *world) tell(pod, path string) {
	w.t.Helper()
	w.eventually(func() error {
		_, err := w.ask(pod, path)
		return err
	})
}

// reads waits until the rollouts of some Deployments are done, and their Pods have read a value.
func (w *world) reads(value string, names ...string) {
	w.t.Helper()
	w.eventually(func() error {
		for _, name := range names {
			d := w.deployment(name)
			if s := d.Status; s.ObservedGeneration != d.Generation || s.ReadyReplicas != *d.Spec.Replicas || s.Replicas != *d.Spec.Replicas || s.UpdatedReplicas != *d.Spec.Replicas {
				return fmt.Errorf("%s is not ready: %+v", name, s)
			}
			if err := w.answers(name, "/read", value); err != nil {
				return err
			}
		}
		return nil
	})
}

// answers is nil if all Pods of an app answer with a value: what they have read, or what is mounted.
func (w *world) answers(name, path, value string) error {
	for _, p := range w.live(name) {
		if got, err := w.ask(p.Name, path); err != nil || !strings.HasSuffix(got, "="+value) {
			return fmt.Errorf("%s says %q to %s, want %q (%v)", p.Name, got, path, value, err)
		}
	}
	return nil
}

// died waits until a container of an app has ended that had read a value.
func (w *world) died(name, value string) {
	w.t.Helper()
	w.eventually(func() error {
		for _, p := range w.live(name) {
			for _, s := range p.Status.ContainerStatuses {
				for _, state := range []corev1.ContainerState{s.State, s.LastTerminationState} {
					if state.Terminated != nil && strings.HasSuffix(state.Terminated.Message, "="+value) {
						return nil
					}
				}
			}
		}
		return fmt.Errorf("no container of %s has ended with %q", name, value)
	})
}

func (w *world) explain(name string) config.Explanation {
	w.t.Helper()
	e, err := config.Explain(w.t.Context(), w.client, w.options, workload.Name{Kind: "Deployment", Namespace: w.namespace, Name: name})
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// says waits until a Deployment has a reason, and a text in its sentence.
func (w *world) says(name, reason, text string) {
	w.t.Helper()
	w.eventually(func() error {
		if e := w.explain(name); string(e.Reason) != reason || !strings.Contains(e.Sentence, text) {
			return fmt.Errorf("%s: %s: %s", name, e.Reason, e.Sentence)
		}
		return nil
	})
}

// stopped waits until a release has failed on an app, and that keeps others from it.
func (w *world) stopped(on string, others ...string) {
	w.t.Helper()
	for _, name := range others {
		w.says(name, "ConfigFailed", "failed on deployment/"+on+" (")
	}
	w.barrier.Wait(w.t)
}

// complete waits until all releases are.
func (w *world) complete() {
	w.t.Helper()
	w.eventually(func() error {
		p := &unstructured.Unstructured{}
		p.SetAPIVersion("spillway.dev/v1alpha1")
		p.SetKind("ConfigPolicy")
		if err := w.get(p, "staged"); err != nil {
			return err
		}
		phase, _, _ := unstructured.NestedString(p.Object, "status", "phase")
		waits, _, _ := unstructured.NestedString(p.Object, "status", "waitingFor")
		if phase != "Complete" {
			return fmt.Errorf("the release is %s: %s", phase, waits)
		}
		return nil
	})
}

// goes releases a good value: one has it first, and after the soak all have.
func (w *world) goes(value string, names ...string) {
	w.t.Helper()
	w.secret(value)
	w.step()
	w.reads(value, names...)
	w.complete()
}

// step lets the soak of a stage that is ready pass.
func (w *world) step() {
	w.t.Helper()
	w.eventually(func() error {
		for _, d := range w.deployments() {
			if e := w.explain(d); e.Reason == "Soaking" {
				return nil
			}
		}
		return errors.New("no stage is soaking")
	})
	w.barrier.Step(w.t, hour)
}

func (w *world) deployments() (names []string) {
	w.t.Helper()
	list := &appsv1.DeploymentList{}
	if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// untouched notes the Pods and templates of some apps; the result checks that both are the same.
func (w *world) untouched(names ...string) (check func()) {
	w.t.Helper()
	state := func(name string) string {
		raw, err := json.Marshal(w.deployment(name).Spec.Template)
		return fmt.Sprint(w.uids(name), string(raw), err)
	}
	before := map[string]string{}
	for _, name := range names {
		before[name] = state(name)
	}
	return func() {
		w.t.Helper()
		for _, name := range names {
			if now := state(name); now != before[name] {
				w.t.Errorf("%s was rolled: %s, before %s", name, now, before[name])
			}
		}
	}
}

// undo restores a template, as kubectl rollout undo does.
func (w *world) undo(name string, to *appsv1.Deployment) {
	w.t.Helper()
	raw, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec/template", "value": to.Spec.Template}})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.client.Patch(w.t.Context(), w.deployment(name), client.RawPatch(types.JSONPatchType, raw)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) patch(name, patch string) {
	w.t.Helper()
	if err := w.client.Patch(w.t.Context(), w.deployment(name), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		w.t.Fatal(err)
	}
}

// evict evicts all Pods of an app, as kubectl drain does, and waits until there are others.
func (w *world) evict(names ...string) {
	w.t.Helper()
	for _, name := range names {
		for _, p := range w.live(name) {
			e := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: p.Name}}
			if err := w.pods.CoreV1().Pods(w.namespace).EvictV1(w.t.Context(), e); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}
