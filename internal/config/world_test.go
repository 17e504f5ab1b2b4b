package config_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/decision"
	workloads "github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/barrier"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
)

func TestMain(m *testing.M) {
	testenv.Parallel(5)
	testenv.Main(m, testenv.Options{Nodes: 3})
}

const (
	waveTracked   = "wave.pusher.com/update-on-config-change"
	waveHash      = "wave.pusher.com/config-hash"
	waveScheduler = "wave.pusher.com/invalid"
	native        = "spillway.dev/"
)

// world is a namespace of its own, and a user in it.
type world struct {
	t         *testing.T
	client    client.Client
	namespace string
	// requests are what the manager of this world has asked of the API server.
	requests *requests
	// touched is how often [world.touch] was called.
	touched  int
	options  config.Options
	clock    *barrier.Clock
	barrier  *barrier.Barrier
	webhooks *testenv.Webhooks
	// as is how the manager connects; by default it may do anything.
	as   *rest.Config
	stop func()
	// isManaged is true between manage and halt.
	isManaged bool
	// meanwhile is done again and again while something is waited for.
	meanwhile func()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return newWorldNow(t)
}

// newWorldNow is newWorld for a test that others wait for.
func newWorldNow(t *testing.T) *world {
	t.Helper()
	if err := installPolicies(); err != nil {
		t.Fatal(err)
	}
	ns := testenv.Namespace(t)
	w := &world{t: t, client: newClient(t), namespace: ns, requests: &requests{}, options: defaultOptions(ns), clock: &barrier.Clock{}}
	w.options.Now, w.barrier = w.clock.Now, barrier.New(w.client, w.clock)
	t.Cleanup(w.sayStates) // after all that the managers logged
	testenv.KnownReasons(t, w.client, ns, &appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &appsv1.DaemonSetList{})
	return w
}

// sayStates logs what the Deployments and Pods say of a test that has failed.
func (w *world) sayStates() {
	if !w.t.Failed() {
		return
	}
	deployments, pods := &appsv1.DeploymentList{}, &corev1.PodList{}
	for _, list := range []client.ObjectList{deployments, pods} {
		if err := w.client.List(context.Background(), list, client.InNamespace(w.namespace)); err != nil {
			w.t.Log(err)
		}
	}
	for i := range deployments.Items {
		d := &deployments.Items[i]
		w.t.Logf("%s at generation %d: %+v, annotations %v", d.Name, d.Generation, d.Status, d.Annotations)
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		w.t.Logf("%s on %q, hash %v: %s %+v", p.Name, p.Spec.NodeName, p.Annotations, p.Status.Phase, p.Status.Conditions)
	}
}

func newClient(t *testing.T) client.Client {
	t.Helper()
	return clientFor(t, testenv.Shared().Config())
}

// clientFor is a client that knows all kinds.
func clientFor(t *testing.T, cfg *rest.Config) client.Client {
	t.Helper()
	kinds, err := kube.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cfg, client.Options{Scheme: kinds})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func defaultOptions(namespace string) config.Options {
	return config.Options{Namespaces: []string{namespace}, LeaseNamespace: namespace, LeaseName: manager.LeaseName, Now: time.Now, Options: decision.Options{CoalesceWindow: 300 * time.Millisecond, UpdateBurst: 100}}
}

// manage starts a manager, which is stopped at the end of the test or by halt.
func (w *world) manage(change ...func(*manager.Options)) {
	w.t.Helper()
	as := w.as
	if as == nil {
		as = testenv.Shared().Config()
	}
	o := manager.Options{
		Rings: []string{manager.RingConfig}, Namespaces: w.options.Namespaces, Config: w.options,
		LeaseNamespace: w.options.LeaseNamespace, LeaseName: w.options.LeaseName,
	}
	for _, c := range change {
		c(&o)
	}
	w.stop, w.isManaged = w.barrier.Run(w.t, w.requests.wrap(as), fault.New(), o), true
}

// halt stops the manager, and returns once it has stopped.
func (w *world) halt() {
	w.stop()
	w.isManaged = false
}

func (w *world) apply(manifests ...string) {
	w.t.Helper()
	for _, manifest := range manifests {
		for doc := range strings.SplitSeq(manifest, "\n---\n") {
			obj := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(doc), &obj.Object); err != nil {
				w.t.Fatal(err)
			}
			if obj.GetNamespace() == "" {
				obj.SetNamespace(w.namespace)
			}
			err := w.client.Apply(w.t.Context(), client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("user"), client.ForceOwnership)
			if err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

func (w *world) configMap(name string, pairs ...string) {
	w.t.Helper()
	w.applyObject("ConfigMap", name, "data", pairs)
}

func (w *world) secret(name string, pairs ...string) {
	w.t.Helper()
	w.applyObject("Secret", name, "stringData", pairs)
}

func (w *world) applyObject(kind, name, field string, pairs []string) {
	w.t.Helper()
	values := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		values[pairs[i]] = pairs[i+1]
	}
	raw, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name}, field: values,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.apply(string(raw))
}

func (w *world) remove(obj client.Object, name string) {
	w.t.Helper()
	obj.SetNamespace(w.namespace)
	obj.SetName(name)
	if err := w.client.Delete(w.t.Context(), obj); err != nil {
		w.t.Fatal(err)
	}
}

// deployment is a tracked Deployment with this Pod spec.
func deployment(name, podSpec string, annotations ...string) string {
	return workload("Deployment", name, podSpec, annotations...)
}

func workload(kind, name, podSpec string, annotations ...string) string {
	all := waveTracked + `: "true"`
	for i := 0; i+1 < len(annotations); i += 2 {
		all += fmt.Sprintf(", %s: %q", annotations[i], annotations[i+1])
	}
	extra := map[string]string{"Deployment": "replicas: 1", "StatefulSet": "{replicas: 1, serviceName: x}", "DaemonSet": ""}[kind]
	if kind == "StatefulSet" {
		extra = "replicas: 1\n  serviceName: x"
	}
	return fmt.Sprintf(`apiVersion: apps/v1
kind: %s
metadata: {name: %s, annotations: {%s}}
spec:
  %s
  selector: {matchLabels: {app: %s}}
  template:
    metadata: {labels: {app: %s}}
    spec:
%s`, kind, name, all, extra, name, name, indent(podSpec))
}

func indent(text string) string {
	return "      " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n      ")
}

// envFrom is a Pod spec that uses whole objects.
func envFrom(refs ...string) string {
	return "containers:\n- name: c\n  image: x\n  envFrom:\n  - " + strings.Join(refs, "\n  - ")
}

func configMapRef(name string) string { return "configMapRef: {name: " + name + "}" }
func secretRef(name string) string    { return "secretRef: {name: " + name + "}" }

func (w *world) get(obj client.Object, name string) error {
	return w.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, obj)
}

// deploymentNow is the Deployment as it is.
func (w *world) deploymentNow(name string) *appsv1.Deployment {
	w.t.Helper()
	d := &appsv1.Deployment{}
	if err := w.get(d, name); err != nil {
		w.t.Fatal(err)
	}
	return d
}

// hash is that of the template, or the one that was recorded when a Deployment that ran was opted in; empty
// if there is none.
func (w *world) hash(name string) string {
	w.t.Helper()
	d := w.deploymentNow(name)
	template := d.Spec.Template.Annotations
	if hash := cmp.Or(template[native+"config-hash"], template[waveHash]); hash != "" {
		return hash
	}
	recorded := w.adopted(name)
	return cmp.Or(recorded.First, recorded.Scope)
}

// hashed waits until the Deployment has a hash other than the one given, and
// returns it.
func (w *world) hashed(name, before string) string {
	w.t.Helper()
	w.eventually(func() error {
		if h := w.hash(name); h == "" || h == before {
			return fmt.Errorf("%s has still hash %q", name, h)
		}
		return nil
	})
	return w.hash(name)
}

func (w *world) eventually(check func() error) {
	w.t.Helper()
	testenv.Eventually(w.t, func(context.Context) error {
		if w.meanwhile != nil {
			w.meanwhile()
		}
		return check()
	})
}

// replicaSets is how many ReplicaSets a Deployment has had: one more than it was rolled.
func (w *world) replicaSets(name string) int {
	w.t.Helper()
	list := &appsv1.ReplicaSetList{}
	if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace), client.MatchingLabels{"app": name}); err != nil {
		w.t.Fatal(err)
	}
	return len(list.Items)
}

func (w *world) revisions(name string) int {
	w.t.Helper()
	list := &appsv1.ControllerRevisionList{}
	if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace), client.MatchingLabels{"app": name}); err != nil {
		w.t.Fatal(err)
	}
	return len(list.Items)
}

// settledWith waits until the Deployment's rollout is done and it has had n ReplicaSets.
func (w *world) settledWith(name string, n int) {
	w.t.Helper()
	w.eventually(func() error {
		d := w.deploymentNow(name)
		if d.Status.ObservedGeneration != d.Generation || d.Status.ReadyReplicas != *d.Spec.Replicas || d.Status.Replicas != *d.Spec.Replicas {
			return fmt.Errorf("%s is not settled: %+v", name, d.Status)
		}
		if got := w.replicaSets(name); got != n {
			return fmt.Errorf("%s has had %d ReplicaSets, want %d", name, got, n)
		}
		return nil
	})
}

// settled returns once the controllers of workloads have observed them, and the manager has done
// all that follows from what was written so far.
func (w *world) settled() {
	w.t.Helper()
	w.eventually(func() error {
		list := &appsv1.DeploymentList{}
		if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		for i := range list.Items {
			if d := &list.Items[i]; d.Status.ObservedGeneration != d.Generation {
				return fmt.Errorf("%s is not observed by its controller", d.Name)
			}
		}
		return nil
	})
	w.barrier.Wait(w.t)
}

// condition is the condition that the manager wrote on the workload, empty if none.
func (w *world) condition(name string) string {
	w.t.Helper()
	return w.deploymentNow(name).Annotations[native+"config-status"]
}

func (w *world) saysEventually(name, text string) {
	w.t.Helper()
	w.eventually(func() error {
		if c := w.condition(name); !strings.Contains(c, text) {
			return fmt.Errorf("%s says %q, want %q", name, c, text)
		}
		return nil
	})
}

func (w *world) annotate(name string, pairs ...string) {
	w.t.Helper()
	values := []string{}
	for i := 0; i < len(pairs); i += 2 {
		value := fmt.Sprintf("%q", pairs[i+1])
		if pairs[i+1] == "-" {
			value = "null"
		}
		values = append(values, fmt.Sprintf("%q:%s", pairs[i], value))
	}
	patch := `{"metadata":{"annotations":{` + strings.Join(values, ",") + `}}}`
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	if err := w.client.Patch(w.t.Context(), d, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) events(reason string) []corev1.Event {
	w.t.Helper()
	list := &corev1.EventList{}
	if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	var found []corev1.Event
	for _, e := range list.Items {
		if e.Reason == reason {
			found = append(found, e)
		}
	}
	return found
}

func (w *world) explain(name string) config.Explanation {
	w.t.Helper()
	e, err := config.Explain(w.t.Context(), w.client, w.options, workloads.Name{Kind: "Deployment", Namespace: w.namespace, Name: name})
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// requests counts what a client asks for; a watch counts when it begins.
type requests struct {
	mu  sync.Mutex
	all []string
}

func (r *requests) wrap(cfg *rest.Config) *rest.Config {
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if !strings.Contains(req.URL.Path, "/events") && !strings.Contains(req.URL.Path, "/leases") {
				r.mu.Lock()
				r.all = append(r.all, req.Method+" "+req.URL.RequestURI())
				r.mu.Unlock()
			}
			return next.RoundTrip(req)
		})
	})
	return cfg
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// take returns the requests since it was last called, but for watches.
func (r *requests) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var taken []string
	for _, request := range r.all {
		if !strings.Contains(request, "watch=true") {
			taken = append(taken, request)
		}
	}
	r.all = nil
	return taken
}

// asksForRights ends the request that asks what a user may do, which stores nothing.
const asksForRights = "/localsubjectaccessreviews"

// writesIn are those that change something.
func writesIn(requests []string) []string {
	var writes []string
	for _, request := range requests {
		if !strings.HasPrefix(request, "GET ") && !strings.HasSuffix(request, asksForRights) {
			writes = append(writes, request)
		}
	}
	return writes
}

func newNamespace(t *testing.T) string {
	t.Helper()
	return testenv.Namespace(t)
}

// replaceOnce fails loudly where the text to replace is not found.
func replaceOnce(text, old, now string) string {
	if strings.Count(text, old) != 1 {
		panic(fmt.Sprintf("%q is found %d times in %s", old, strings.Count(text, old), text))
	}
	return strings.Replace(text, old, now, 1)
}

// rests waits until the manager is at rest, wakes it again by each workload, and fails if it then writes anything.
// It runs check afterwards.
func (w *world) rests(check func()) {
	w.t.Helper()
	if w.webhooks != nil {
		w.webhooks.WaitConfirmed(w.t)
	}
	w.settled()
	w.silent(w.touch)
	check()
}

// silent fails if the manager writes anything because of what do does.
func (w *world) silent(do func()) {
	w.t.Helper()
	w.requests.take()
	do()
	w.settled()
	if writes := writesIn(w.requests.take()); len(writes) > 0 {
		w.t.Errorf("the manager wrote: %v", writes)
	}
}

// touch changes each workload in what means nothing.
func (w *world) touch() {
	w.t.Helper()
	w.touched++
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"touched":"%d"}}}`, w.touched))
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind(kind + "List"))
		if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
			w.t.Fatal(err)
		}
		for i := range list.Items {
			if err := w.client.Patch(w.t.Context(), &list.Items[i], patch); client.IgnoreNotFound(err) != nil {
				w.t.Fatal(err)
			}
		}
	}
}

func decodeInto(t *testing.T, obj client.Object, manifest string) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(manifest), obj); err != nil {
		t.Fatal(err)
	}
}
