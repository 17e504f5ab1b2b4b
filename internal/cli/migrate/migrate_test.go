package migrate_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/cli"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manifests"
)

// TestMain has a control plane of its own: the command speaks of all namespaces, and installs for all.
func TestMain(m *testing.M) { testenv.MainFlux(m, testenv.Options{Nodes: 3}) }

// world is a cluster with a former controller, of which a stand-in writes what the real one writes while a Pod of it is ready, and
// with the manager that was installed, if its Pods are ready.
type world struct {
	t      *testing.T
	client client.WithWatch
	// namespace is that of the workloads, and of the former controller; others have workloads, too.
	namespace string
	others    []string

	mu sync.Mutex
	// wrong is what was seen at some instant that must never be.
	wrong []string
	// acting are the manager while it runs, and former controllers while they are in the middle of a pass, each with the namespaces
	// where they act, none for all.
	acting map[string][]string
	// idle is true if the manager that is installed never begins to work.
	idle bool
	// pods are all Pods of workloads that there ever were, and explained how many each may have had by now, nil for any number.
	pods      map[types.UID]string
	explained map[string]int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	scheme, err := kube.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(testenv.Shared().Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, client: c, namespace: testenv.Namespace(t), pods: map[types.UID]string{}, acting: map[string][]string{}}
	w.witness(w.namespace)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.playManager(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
		w.deleteAll(context.Background())
		for _, what := range w.wrong {
			t.Error(what)
		}
	})
	return w
}

// deleteAll deletes what the next test would find in all namespaces. What would let it go does not run any more.
func (w *world) deleteAll(ctx context.Context) {
	for _, kind := range [][2]string{{"apps/v1", "Deployment"}, {"apps/v1", "StatefulSet"}, {"argoproj.io/v1alpha1", "Rollout"}, {"spillway.dev/v1alpha1", "RolloutGroup"}, {"kudo.dev/v1beta1", "Instance"}, {"kudo.dev/v1beta1", "OperatorVersion"}, {fleetV1, "Module"}, {fleetV1, "ProxyAssemblage"}, {fleetV1, "Assemblage"}, {kustomizeV1, "Kustomization"}} {
		var objects []unstructured.Unstructured
		var err error
		for _, namespace := range append(w.others, w.namespace) {
			there, failed := w.allIn(ctx, namespace, kind[0], kind[1])
			objects, err = append(objects, there...), errors.Join(err, failed)
		}
		if apimeta.IsNoMatchError(err) {
			continue
		}
		for i := range objects {
			released := w.client.Patch(ctx, &objects[i], client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
			err = errors.Join(err, client.IgnoreNotFound(released), client.IgnoreNotFound(w.client.Delete(ctx, &objects[i])))
		}
		if err != nil {
			w.t.Error(err)
		}
	}
}

// witness writes down each Pod of a workload of a namespace.
func (w *world) witness(namespace string) {
	events, err := w.client.Watch(w.t.Context(), &corev1.PodList{}, client.InNamespace(namespace))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(events.Stop)
	go func() {
		for event := range events.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && pod.Labels["app"] != "" {
				w.mu.Lock()
				w.pods[pod.UID] = pod.Labels["app"]
				if app := pod.Labels["app"]; w.explained != nil {
					if n := w.rolls()[app]; n > w.explained[app] {
						w.wrong = append(w.wrong, fmt.Sprintf("%s has had %d Pods, and edits explain %d", app, n, w.explained[app]))
					}
				}
				w.mu.Unlock()
			}
		}
	}()
}

// rolls is how many Pods each workload has had. The caller has the lock.
func (w *world) rolls() map[string]int {
	n := map[string]int{}
	for _, app := range w.pods {
		n[app]++
	}
	return n
}

// isReady reports whether a Pod with a label is ready, and whether there is one at all.
func (w *world) isReady(ctx context.Context, namespace string, labels client.MatchingLabels) (ready, is bool) {
	pods := &corev1.PodList{}
	if w.client.List(ctx, pods, client.InNamespace(namespace), labels) != nil {
		return false, true // it is not known
	}
	return slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return isReadyPod(&p) }), len(pods.Items) > 0
}

func isReadyPod(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// managerPods are the arguments of those Pods of the manager that are ready, as a manager is given them.
func (w *world) managerPods(ctx context.Context) (all [][]string) {
	pods := &corev1.PodList{}
	if w.idle || w.client.List(ctx, pods, client.InNamespace("spillway-system"), client.MatchingLabels(manifests.ManagerLabels())) != nil {
		return nil
	}
	for i := range pods.Items {
		if p := &pods.Items[i]; isReadyPod(p) {
			all = append(all, manifests.ArgumentsOf(&appsv1.Deployment{ObjectMeta: p.ObjectMeta, Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: p.Spec}}}))
		}
	}
	return all
}

// playManager runs the manager in this process with the arguments of a Pod while one with these is ready: the one that leads.
func (w *world) playManager(ctx context.Context) {
	for ctx.Err() == nil {
		pods := w.managerPods(ctx)
		if len(pods) == 0 {
			pause(ctx, look)
			continue
		}
		own := pods[0]
		running, stop := context.WithCancel(ctx)
		done := make(chan int, 1)
		args := append(append([]string{"spillway"}, own...), "--metrics-bind-address=0", "--metrics-secure=false", "--health-probe-bind-address=0", "--leader-elect-namespace=spillway-system", "--kubeconfig="+testenv.Shared().Kubeconfig())
		out := &testenv.Buffer{}
		w.set(manager, true, manifests.Arguments(own).Namespaces()...)
		go func() {
			done <- cli.Run(running, command.Environment{Args: args, Out: out, Err: out, Now: time.Now, Lookup: os.LookupEnv})
		}()
		for ctx.Err() == nil && slices.ContainsFunc(w.managerPods(ctx), func(args []string) bool { return slices.Equal(args, own) }) {
			pause(ctx, look)
			select {
			case code := <-done:
				w.sayWrong(fmt.Sprintf("the manager ended with %d: %s", code, out))
				stop()
				return
			default:
			}
		}
		stop()
		<-done
		w.set(manager, false)
	}
}

// look is how long lies between two looks of a process that is played.
const look = 20 * time.Millisecond

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// manager is who acts once it is changed over.
const manager = "the manager"

// set notes who acts in some namespaces, in all if there are none, and that never do two in one.
func (w *world) set(who string, is bool, namespaces ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.acting, who)
	if !is {
		return
	}
	for other, in := range w.acting {
		both := len(in) == 0 || len(namespaces) == 0 || slices.ContainsFunc(in, func(name string) bool { return slices.Contains(namespaces, name) })
		if both && (who == manager || other == manager) {
			w.wrong = append(w.wrong, fmt.Sprintf("%s acts in %v, and %s in %v", who, namespaces, other, in))
		}
	}
	w.acting[who] = namespaces
}

func (w *world) sayWrong(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, what)
}

// standIn acts again and again while a Pod of a former controller is ready; each start is one without memory.
func (w *world) standIn(former string, start func() func(context.Context) error) {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	w.t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for act := start(); ctx.Err() == nil; pause(ctx, look) {
			if ready, _ := w.isReady(ctx, w.namespace, client.MatchingLabels{"former": former}); !ready {
				act = start()
				continue
			}
			w.set(former, true)
			if err := act(ctx); err != nil && ctx.Err() == nil {
				w.sayWrong(former + ": " + err.Error())
			}
			w.set(former, false)
		}
	}()
}

// always is a stand-in that has no memory anyway.
func always(act func(context.Context) error) func() func(context.Context) error {
	return func() func(context.Context) error { return act }
}

// wave writes the hash of the config of workloads with its annotation.
func (w *world) wave(ctx context.Context) error { return w.waveIn(ctx, w.namespace) }

func (w *world) waveIn(ctx context.Context, namespace string) error {
	list, configs := &appsv1.DeploymentList{}, &corev1.ConfigMapList{}
	if err := errors.Join(w.client.List(ctx, list, client.InNamespace(namespace)), w.client.List(ctx, configs, client.InNamespace(namespace))); err != nil {
		return fmt.Errorf("list: %w", err)
	}
	hashes := map[string]string{}
	for i := range configs.Items {
		hashes[configs.Items[i].Name] = waveHash(&configs.Items[i])
	}
	for i := range list.Items {
		d := &list.Items[i]
		hash := hashes[d.Name]
		if d.Annotations[waveAnnotation] != "true" {
			continue
		}
		if d.Spec.Template.Annotations["wave.pusher.com/config-hash"] == hash {
			continue
		}
		patch := fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"spec":{"template":{"metadata":{"annotations":{"wave.pusher.com/config-hash":%q}}}}}`, d.ResourceVersion, hash)
		if err := w.client.Patch(ctx, d, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil && !strings.Contains(err.Error(), "modified") {
			return fmt.Errorf("patch: %w", err)
		}
	}
	return nil
}

// waveHash is wave's hash of one ConfigMap, from its description.
func waveHash(cm *corev1.ConfigMap) string {
	pairs := make([]string, 0, len(cm.Data))
	for _, key := range slices.Sorted(maps.Keys(cm.Data)) {
		pairs = append(pairs, fmt.Sprintf(`"%s":"%s"`, key, base64.StdEncoding.EncodeToString([]byte(cm.Data[key]))))
	}
	sum := sha256.Sum256([]byte(fmt.Sprintf(`{"configMaps":{"%s":{%s}},"secrets":{}}`, cm.Name, strings.Join(pairs, ","))))
	return hex.EncodeToString(sum[:])
}

func (w *world) apply(manifest string) {
	w.t.Helper()
	if err := w.applies(w.t.Context(), manifest); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) applies(ctx context.Context, manifest string) error {
	for doc := range strings.SplitSeq(manifest, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			return fmt.Errorf("%w: %s", err, doc)
		}
		if u.GetNamespace() == "" {
			u.SetNamespace(w.namespace)
		}
		if err := w.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("user"), client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s: %w", u.GetName(), err)
		}
	}
	return nil
}

// formerly is the Deployment of a former controller.
func formerly(name, image string, args ...string) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %[1]s}, spec: {replicas: 2, selector: {matchLabels: {former: %[1]s}}, template: {metadata: {labels: {former: %[1]s}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: %[2]q, args: [%[3]s]}]}}}}`, name, image, strings.Join(args, ", "))
}

// workload is a Deployment that uses the ConfigMap of its name.
func workload(name, annotation string) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %[1]s, annotations: {%[2]s: "true"}}, spec: {replicas: 1, selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: x, envFrom: [{configMapRef: {name: %[1]s}}]}]}}}}`, name, annotation)
}

func config(name string, value int) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {a: "%d"}}`, name, value)
}

// still waits until all Deployments are rolled, and returns how many Pods each workload has had.
func (w *world) still() map[string]int {
	w.t.Helper()
	testenv.Eventually(w.t, func(ctx context.Context) error {
		if err := w.rolled(ctx); err != nil {
			return err
		}
		pods := &corev1.PodList{}
		if err := w.client.List(ctx, pods, client.HasLabels{"app"}); err != nil {
			return fmt.Errorf("list: %w", err)
		}
		pods.Items = slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return !slices.Contains(append(w.others, w.namespace), p.Namespace) })
		w.mu.Lock()
		defer w.mu.Unlock()
		for i := range pods.Items {
			if w.pods[pods.Items[i].UID] == "" {
				return fmt.Errorf("Pod %s is not seen yet", pods.Items[i].Name)
			}
		}
		return nil
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rolls()
}

// rolled is an error unless all Deployments are.
func (w *world) rolled(ctx context.Context) error {
	list := &appsv1.DeploymentList{}
	if err := w.client.List(ctx, list); err != nil {
		return fmt.Errorf("list: %w", err)
	}
	for i := range list.Items {
		d := &list.Items[i]
		if !slices.Contains(append(w.others, w.namespace), d.Namespace) {
			continue
		}
		if s := d.Status; s.ObservedGeneration != d.Generation || s.UpdatedReplicas != *d.Spec.Replicas || s.ReadyReplicas != *d.Spec.Replicas || s.Replicas != *d.Spec.Replicas {
			return fmt.Errorf("%s: %+v", d.Name, s)
		}
	}
	return nil
}

// settled waits until all Deployments are rolled, and each workload has had so many Pods.
func (w *world) settled(want map[string]int) {
	w.t.Helper()
	testenv.Eventually(w.t, func(ctx context.Context) error {
		if err := w.rolled(ctx); err != nil {
			return err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if got := w.rolls(); !maps.Equal(got, want) {
			return fmt.Errorf("Pods of workloads: %v, want %v", got, want)
		}
		return nil
	})
}

// spillway runs the command, and fails unless it ends with a code.
func (w *world) spillway(code int, args ...string) string {
	w.t.Helper()
	return w.command(code, append([]string{"migrate"}, args...)...)
}

// command runs a command, and fails unless it ends with a code.
func (w *world) command(code int, args ...string) string {
	w.t.Helper()
	out := &testenv.Buffer{}
	args = append([]string{"spillway"}, args...)
	at := len(args)
	if i := slices.Index(args, "--"); i >= 0 {
		at = i
	}
	args = slices.Insert(args, at, "--kubeconfig="+testenv.Shared().Kubeconfig())
	got := cli.Run(w.t.Context(), command.Environment{Args: args, Out: out, Err: out, Now: time.Now, Lookup: os.LookupEnv})
	if got != code {
		w.t.Fatalf("%s: exit code %d, want %d:\n%s", strings.Join(args, " "), got, code, out)
	}
	return out.String()
}

// says fails unless a text has all of some parts.
func (w *world) says(text string, parts ...string) {
	w.t.Helper()
	text = strings.Join(strings.Fields(text), " ")
	for _, part := range parts {
		if !strings.Contains(text, part) {
			w.t.Errorf("%q is not in %s", part, text)
		}
	}
}

const waveAnnotation = "wave.pusher.com/update-on-config-change"

// TestFromWaveAndBack: no Pod restarts, no change is lost, and never do two controllers act, while a user goes on editing.
func TestFromWaveAndBack(t *testing.T) {
	w := newWorld(t)
	const workloads = 12
	for n := range workloads {
		name := fmt.Sprintf("web-%02d", n)
		w.apply(config(name, 0) + "\n---\n" + workload(name, waveAnnotation))
	}
	w.apply(formerly("wave", "quay.io/wave-k8s/wave:v0.9.0", "--leader-election", "--sync-period=5m"))
	w.standIn("wave", always(w.wave))
	testenv.Eventually(t, func(ctx context.Context) error { return w.hashed(ctx, workloads) })
	want := w.still()

	w.says(w.spillway(0), "wave v0.9.0: deployment/wave in namespace "+w.namespace+", 2 replicas, in all namespaces", fmt.Sprintf("acts on %d Deployment", workloads),
		"--sync-period=5m: carried over", "Nothing rolls because of the change-over", "spillway install --rings=config -- --sync-period=5m")
	edited := make(chan error, 1)
	go func() { // what is edited when wave acts no more, and the manager not yet, is asked for
		edited <- testenv.Until(t.Context(), func(ctx context.Context) error {
			if ready, _ := w.isReady(ctx, w.namespace, client.MatchingLabels{"former": "wave"}); ready {
				return errors.New("wave runs")
			}
			return w.applies(ctx, config("web-02", 1))
		})
	}()
	want["web-02"]++
	w.says(w.spillway(0, "do", "--settle=3s", "--webhooks=false"), "deployment/wave in namespace "+w.namespace+" scaled to 0", "the manager is at work", "changed over; spillway migrate undo goes back")
	if err := <-edited; err != nil {
		t.Fatal(err)
	}
	w.settled(want)

	w.apply(config("web-03", 1))
	want["web-03"]++
	w.settled(want)
	w.says(w.spillway(1, "do"), "a manager is at work already")

	undone := w.spillway(0, "undo", "--accept=moving")
	w.says(undone, "deployment/wave in namespace "+w.namespace+" scaled to 2")
	w.settled(want)
	w.apply(config("web-04", 1))
	want["web-04"]++
	w.settled(want)
	w.says(w.spillway(1, "undo"), "there is no ConfigMap spillway-migration in namespace spillway-system")
}

// hashed is an error unless so many Deployments have wave's hash.
func (w *world) hashed(ctx context.Context, want int) error {
	list := &appsv1.DeploymentList{}
	if err := w.client.List(ctx, list, client.InNamespace(w.namespace)); err != nil {
		return fmt.Errorf("list: %w", err)
	}
	got := 0
	for i := range list.Items {
		if list.Items[i].Spec.Template.Annotations["wave.pusher.com/config-hash"] != "" {
			got++
		}
	}
	if got != want {
		return fmt.Errorf("%d Deployments have a hash", got)
	}
	return nil
}
