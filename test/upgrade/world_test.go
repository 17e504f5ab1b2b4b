//go:build upgrade

package upgrade_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m, testenv.Options{Nodes: 3}) }

// world is a namespace with workloads of all rings, and a namespace for the manager.
type world struct {
	t                 *testing.T
	client            client.WithWatch
	namespace, system string
	// before are the hashes of Deployments before the last change.
	before map[string]string

	mu sync.Mutex
	// pods are the UIDs of all Pods that ever were, by the name of their StatefulSet's Pod.
	pods map[string]map[types.UID]bool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	c, err := client.NewWithWatch(testenv.Shared().Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, client: c, namespace: testenv.Namespace(t), pods: map[string]map[types.UID]bool{}}
	w.system = w.namespace + "-system"
	w.witness()
	return w
}

// witness writes down each Pod that there ever is.
func (w *world) witness() {
	events, err := w.client.Watch(w.t.Context(), &corev1.PodList{}, client.InNamespace(w.namespace))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(events.Stop)
	go func() {
		for event := range events.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok {
				continue
			}
			w.mu.Lock()
			if w.pods[pod.Name] == nil {
				w.pods[pod.Name] = map[types.UID]bool{}
			}
			w.pods[pod.Name][pod.UID] = true
			w.mu.Unlock()
		}
	}()
}

const (
	deployments = 4
	hash        = "spillway.dev/config-hash"
)

func configMap(value int) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {a: "%d"}}`, value)
}

// deployment is one of several that use the same ConfigMap, of which one is rolled at a time.
func deployment(n int) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web-%[1]d, annotations: {spillway.dev/update-on-config-change: "true"}},
spec: {replicas: 1, selector: {matchLabels: {app: web-%[1]d}}, template: {metadata: {labels: {app: web-%[1]d}, annotations: {testenv.spillway.dev/ready-after: 1s}},
spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: x, envFrom: [{configMapRef: {name: app}}]}]}}}}`, n)
}

// zone is one of three zones, which are rolled one after the other.
func zone(name string, value int) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: %[1]s, labels: {rollout-group: store}},
spec: {replicas: 2, serviceName: store, podManagementPolicy: Parallel, updateStrategy: {type: OnDelete}, selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s, rollout-group: store}, annotations: {testenv.spillway.dev/ready-after: 1s}},
spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: x, env: [{name: V, value: "%[2]d"}]}]}}}}`, name, value)
}

func zones() []string { return []string{"zone-a", "zone-b", "zone-c"} }

// operator has a plan of three steps, of which each is a Deployment that must be ready.
const operator = `{apiVersion: kudo.dev/v1beta1, kind: OperatorVersion, metadata: {name: app-1}, spec: {operator: {name: app}, version: "1",
parameters: [{name: value, default: "0", trigger: deploy}],
plans: {deploy: {strategy: serial, phases: [{name: main, strategy: serial, steps: [{name: one, tasks: [one]}, {name: two, tasks: [two]}, {name: three, tasks: [three]}]}]}},
tasks: [{name: one, kind: Apply, spec: {resources: [one.yaml]}}, {name: two, kind: Apply, spec: {resources: [two.yaml]}}, {name: three, kind: Apply, spec: {resources: [three.yaml]}}],
templates: {one.yaml: %q, two.yaml: %q, three.yaml: %q}}}`

const part = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: "{{ .Name }}-%[1]s"}, spec: {replicas: 1, selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s}, annotations: {value: "{{ .Params.value }}", testenv.spillway.dev/ready-after: 1s}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: x}]}}}}`

func parts() []string { return []string{"one", "two", "three"} }

func instance(value int) string {
	return fmt.Sprintf(`{apiVersion: kudo.dev/v1beta1, kind: Instance, metadata: {name: db, labels: {kudo.dev/operator: app}}, spec: {operatorVersion: {name: app-1}, parameters: {value: "%d"}}}`, value)
}

// change gives all rings something to roll.
func (w *world) change(value int) {
	w.t.Helper()
	list := &appsv1.DeploymentList{}
	if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	w.before = map[string]string{}
	for i := range list.Items {
		w.before[list.Items[i].Name] = list.Items[i].Spec.Template.Annotations[hash]
	}
	w.apply(configMap(value), instance(value))
	for _, name := range zones() {
		w.apply(zone(name, value))
	}
}

// create makes the workloads, and waits until nothing is left to roll.
func (w *world) create() {
	w.t.Helper()
	var steps []any
	for _, name := range parts() {
		steps = append(steps, fmt.Sprintf(part, name))
	}
	w.apply(fmt.Sprintf(operator, steps...))
	w.change(0)
	for n := range deployments {
		w.apply(deployment(n))
	}
	w.settled(0)
}

func (w *world) object(manifest string) *unstructured.Unstructured {
	w.t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &obj.Object); err != nil {
		w.t.Fatalf("%v: %s", err, manifest)
	}
	obj.SetNamespace(w.namespace)
	return obj
}

func (w *world) apply(manifests ...string) {
	w.t.Helper()
	for _, manifest := range manifests {
		obj := w.object(manifest)
		testenv.Eventually(w.t, func(ctx context.Context) error { // a kind may not be served yet
			return w.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj.DeepCopy()), client.FieldOwner("user"), client.ForceOwnership)
		})
	}
}

// settled waits until a change is rolled everywhere.
func (w *world) settled(value int) {
	w.t.Helper()
	testenv.Eventually(w.t, func(ctx context.Context) error {
		done, all, err := w.progress(ctx, value)
		if err == nil && done != all {
			err = fmt.Errorf("of change %d, %s is done of %s", value, done, all)
		}
		return err
	})
}

// progress is how much is rolled.
type progress struct{ deployments, zones, parts int }

func (p progress) String() string {
	return fmt.Sprintf("%d Deployments, %d Pods of zones and %d steps of the plan", p.deployments, p.zones, p.parts)
}

func (w *world) progress(ctx context.Context, value int) (done, all progress, err error) {
	all = progress{deployments, 2 * len(zones()), len(parts())} //nolint:mnd // a zone has two Pods
	list := &appsv1.DeploymentList{}
	if err := w.client.List(ctx, list, client.InNamespace(w.namespace)); err != nil {
		return done, all, err
	}
	for i := range list.Items {
		d := &list.Items[i]
		ready := d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == 1 && d.Status.ReadyReplicas == 1 && d.Status.Replicas == 1
		annotations := d.Spec.Template.Annotations
		switch {
		case ready && annotations["value"] == fmt.Sprint(value):
			done.parts++
		case ready && annotations[hash] != "" && annotations[hash] != w.before[d.Name]:
			done.deployments++
		}
	}
	pods := &corev1.PodList{}
	if err := w.client.List(ctx, pods, client.InNamespace(w.namespace), client.MatchingLabels{"rollout-group": "store"}); err != nil {
		return done, all, err
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		if p.DeletionTimestamp == nil && p.Spec.Containers[0].Env[0].Value == fmt.Sprint(value) && isReady(p) {
			done.zones++
		}
	}
	if done == all {
		return done, all, errors.Join(
			w.is(ctx, `{apiVersion: spillway.dev/v1alpha1, kind: RolloutGroup, metadata: {name: store}}`, "Complete", "status", "phase"),
			w.is(ctx, instance(value), "COMPLETE", "status", "aggregatedStatus", "status"))
	}
	return done, all, nil
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// is is an error unless a field says something.
func (w *world) is(ctx context.Context, manifest, want string, path ...string) error {
	_, err := testenv.Field(ctx, w.client, w.object(manifest), func(s string) bool { return s == want }, path...)
	return err
}

// underWay waits until each ring has rolled something of a change.
func (w *world) underWay(value int) {
	w.t.Helper()
	testenv.Eventually(w.t, func(ctx context.Context) error {
		done, _, err := w.progress(ctx, value)
		if err == nil && (done.deployments == 0 || done.zones == 0 || done.parts == 0) {
			err = fmt.Errorf("only %s are done", done)
		}
		return err
	})
}

// stillUnderWay fails if some ring has rolled all: then nothing was tried.
func (w *world) stillUnderWay(value int) {
	w.t.Helper()
	done, all, err := w.progress(w.t.Context(), value)
	if err != nil || done.deployments == all.deployments || done.zones == all.zones || done.parts == all.parts {
		w.t.Fatalf("nothing is tried: %s are done: %v", done, err)
	}
}

// rolls counts how often everything was rolled: ReplicaSets of Deployments, and Pods of zones.
func (w *world) rolls() map[string]int {
	w.t.Helper()
	list := &appsv1.ReplicaSetList{}
	if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	counts := map[string]int{}
	for i := range list.Items {
		counts["deployment "+list.Items[i].OwnerReferences[0].Name]++
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, uids := range w.pods {
		if strings.HasPrefix(name, "zone-") {
			counts["pod "+name] = len(uids)
		}
	}
	return counts
}

// rolledOnce fails unless everything was rolled once more than before.
func (w *world) rolledOnce(before map[string]int) map[string]int {
	w.t.Helper()
	now, want := w.rolls(), maps.Clone(before)
	for name := range want {
		want[name]++
	}
	if !maps.Equal(now, want) {
		w.t.Errorf("rolled so often: %v, want %v", now, want)
	}
	return now
}
