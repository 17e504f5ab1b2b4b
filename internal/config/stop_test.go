package config_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
)

// kubelets start Pods as real ones do: with what the Secret has at that moment. A Pod
// that starts with a bad value crashes again and again, one that hangs never is ready.
type kubelets struct {
	w *world
	c *kubernetes.Clientset

	mu sync.Mutex
	// asleep is true while they start nothing; broken is a workload whose Pods crash
	// whatever its config.
	asleep bool
	broken string
	// ran are the values with which Pods of each workload have started.
	ran map[string]map[string]bool
}

// still keeps the Pods of a workload from being started by anyone but [kubelets].
func still(manifest string) string {
	return replaceOnce(manifest, "    metadata: {labels:", "    metadata: {annotations: {testenv.spillway.dev/behavior: still}, labels:")
}

func startKubelets(w *world) *kubelets {
	w.t.Helper()
	c, err := testenv.Shared().Clientset()
	if err != nil {
		w.t.Fatal(err)
	}
	k := &kubelets{w: w, c: c, ran: map[string]map[string]bool{}}
	ctx, cancel := context.WithCancel(context.Background())
	w.t.Cleanup(cancel)
	watch, err := c.CoreV1().Pods(w.namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	go func() {
		for e := range watch.ResultChan() {
			if pod, ok := e.Object.(*corev1.Pod); ok {
				k.start(ctx, pod)
			}
		}
	}()
	return k
}

// sleep makes them start no more Pods.
func (k *kubelets) sleep() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asleep = true
}

// breaks makes the Pods of a workload that start from now on crash.
func (k *kubelets) breaks(app string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.broken = app
}

// start starts a Pod that was scheduled and has not started.
func (k *kubelets) start(ctx context.Context, pod *corev1.Pod) {
	if pod.Status.Phase != corev1.PodPending || pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil {
		return
	}
	value := ""
	for _, from := range pod.Spec.Containers[0].EnvFrom {
		if from.SecretRef != nil {
			s, err := k.c.CoreV1().Secrets(pod.Namespace).Get(ctx, from.SecretRef.Name, metav1.GetOptions{})
			if err != nil {
				return
			}
			value = string(s.Data["p"])
		}
	}
	k.mu.Lock()
	app, asleep, broken := pod.Labels["app"], k.asleep, k.broken
	if k.ran[app] == nil {
		k.ran[app] = map[string]bool{}
	}
	k.ran[app][value] = true
	k.mu.Unlock()
	if asleep {
		return
	}
	now, ready := metav1.Now(), corev1.ConditionTrue
	status := corev1.ContainerStatus{Name: "c", Image: "x", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}}
	switch {
	case strings.HasPrefix(value, "bad"), app == broken:
		ready, status.Ready, status.RestartCount = corev1.ConditionFalse, false, 3
		status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	case strings.HasPrefix(value, "hangs"):
		ready, status.Ready = corev1.ConditionFalse, false
	}
	pod = pod.DeepCopy()
	pod.Status.StartTime = &now
	pod.Status.Phase, pod.Status.ContainerStatuses = corev1.PodRunning, []corev1.ContainerStatus{status}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, LastTransitionTime: now}}
	_, _ = k.c.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
}

// ranWith are the workloads of which a Pod has started with a value.
func (k *kubelets) ranWith(value string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var names []string
	for _, name := range slices.Sorted(maps.Keys(k.ran)) {
		if k.ran[name][value] {
			names = append(names, name)
		}
	}
	return names
}

// shared are Deployments that share the Secret db, and are ready with a first value.
func shared(w *world, names ...string) *kubelets {
	w.t.Helper()
	k := startKubelets(w)
	w.secret("db", "p", "good")
	for _, name := range names {
		w.apply(still(deployment(name, envFrom(secretRef("db")))))
	}
	w.manage()
	for _, name := range names {
		w.hashed(name, "")
	}
	w.ready(names...)
	return k
}

// ready waits until Deployments are ready with the present config.
func (w *world) ready(names ...string) {
	w.t.Helper()
	w.eventually(func() error {
		for _, name := range names {
			if e := w.explain(name); e.State != "UpToDate" {
				return fmt.Errorf("%s: %s", name, e.Sentence)
			}
			if d := w.deploymentNow(name); d.Status.ReadyReplicas != 1 || d.Status.Replicas != 1 || d.Status.ObservedGeneration != d.Generation {
				return fmt.Errorf("%s is not ready", name)
			}
		}
		return nil
	})
}

// stopped waits until Deployments are not rolled, because the Secret has failed on a
// workload.
func (w *world) stopped(on string, names ...string) {
	w.t.Helper()
	w.eventually(func() error {
		for _, name := range names {
			if e := w.explain(name); e.Reason != "ConfigFailed" || !strings.Contains(e.Sentence, "failed on deployment/"+on+" (") {
				return fmt.Errorf("%s: %s %s", name, e.Reason, e.Sentence)
			}
			if !strings.Contains(w.condition(name), "ConfigFailed") {
				return fmt.Errorf("%s has condition %s", name, w.condition(name))
			}
		}
		return nil
	})
}

var five = []string{"app1", "app2", "app3", "app4", "app5"}

// One workload fails with a change of the config, the others keep the previous one. A new
// value is tried again, and the same bad value is not.
func TestABadChangeStopsAtTheFirstWorkload(t *testing.T) {
	w := newWorld(t)
	w.options.MaxRolling = 1
	k := shared(w, five...)
	w.secret("db", "p", "bad1")
	w.stopped("app1", five[1:]...)
	e := w.explain("app2")
	if !strings.HasPrefix(e.Sentence, "Deployment app2 is waiting: Secret db@") ||
		!strings.HasSuffix(e.Sentence, " failed on deployment/app1 (1 of 2 Pods CrashLoopBackOff); running containers of 4 workloads keep the previous config until they restart") {
		t.Errorf("app2: %s", e.Sentence)
	}
	if e := w.explain("app1"); e.State != "Failed" || !strings.Contains(e.Sentence, "app1 failed: 1 of 2 Pods CrashLoopBackOff (changed: Secret db@") {
		t.Errorf("app1: %s %s", e.State, e.Sentence)
	}
	w.eventually(func() error { return want(true, len(w.events("ConfigFailed")) >= 5) })
	w.rests(func() {})
	w.secret("db", "p", "good2")
	w.ready(five...)
	for _, name := range five {
		if c := w.condition(name); c != "" {
			t.Errorf("%s has still the condition %s", name, c)
		}
	}
	w.secret("db", "p", "bad1")
	w.stopped("app1", five...)
	w.rests(func() {})
	if ran := k.ranWith("bad1"); !slices.Equal(ran, five[:1]) {
		t.Errorf("%v ran the bad value", ran)
	}
}

// Without a limit all roll in the same moment, as with wave. What comes later is stopped:
// what was paused, is created, or goes back.
func TestWhatComesLaterIsStopped(t *testing.T) {
	w := newWorld(t)
	shared(w, "app1", "late")
	before := w.hash("app1")
	w.annotate("late", native+"pause", "true")
	w.settled() // the manager has seen it
	w.secret("db", "p", "bad")
	w.hashed("app1", before)
	w.eventually(func() error { return want("Failed", string(w.explain("app1").State)) })
	w.annotate("late", native+"pause", "-")
	w.apply(still(deployment("new", envFrom(secretRef("db")))))
	w.stopped("app1", "late", "new")
	w.patch(w.deploymentNow("app1"), "app1", fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, waveHash, before)) // kubectl rollout undo
	w.stopped("app1", "app1")
	w.rests(func() {
		if w.hash("app1") != before || w.hash("late") != before || w.hash("new") != "" {
			t.Error("a workload was rolled for the config that has failed")
		}
	})
}

// A failure is known to the next manager, also if the Pods that have shown it are gone.
func TestAStopOutlivesTheManager(t *testing.T) {
	w := newWorld(t)
	w.options.MaxRolling = 1
	k := shared(w, five...)
	w.secret("db", "p", "bad")
	w.stopped("app1", five[1:]...)
	w.halt()
	k.sleep()
	for _, pod := range w.pods("app1") {
		if pod.Status.ContainerStatuses[0].State.Waiting != nil {
			w.remove(&corev1.Pod{}, pod.Name)
		}
	}
	w.eventually(func() error { // its successor has not started
		return want(true, slices.ContainsFunc(w.pods("app1"), func(p corev1.Pod) bool { return p.Status.Phase == corev1.PodPending }))
	})
	w.manage()
	w.rests(func() { w.stopped("app1", five[1:]...) })
}

// oneFails is a world in which one workload has failed with a change, and others that were
// paused meanwhile are stopped.
func oneFails(t *testing.T, later ...string) (w *world, k *kubelets, before string) {
	t.Helper()
	w = newWorld(t)
	k = shared(w, append([]string{"app1"}, later...)...)
	before = w.hash("app1")
	for _, name := range later {
		w.annotate(name, native+"pause", "true")
	}
	w.settled() // the manager has seen it
	w.secret("db", "p", "bad")
	w.eventually(func() error { return want("Failed", string(w.explain("app1").State)) })
	for _, name := range later {
		w.annotate(name, native+"pause", "-")
	}
	w.stopped("app1", later...)
	return w, k, before
}

// A user tries again: what has failed so far does not count, what fails from then on does.
func TestARetryTriesTheNextWorkload(t *testing.T) {
	w, k, before := oneFails(t, "app2", "app3")
	w.annotate("app3", native+"pause", "true")
	w.settled()                                // the manager has seen it
	w.retry("db", time.Now().Add(time.Second)) // as the command does
	w.hashed("app2", before)
	w.saysEventually("app2", "CrashLoopBackOff (changed")
	w.annotate("app3", native+"pause", "-")
	w.stopped("app2", "app3")
	if ran := k.ranWith("bad"); !slices.Equal(ran, []string{"app1", "app2"}) {
		t.Errorf("%v ran the bad value", ran)
	}
	if f := w.failedWith("Secret", "db"); !slices.Equal(f, []string{"app2"}) {
		t.Errorf("the record says %s", f)
	}
}

func (w *world) retry(secret string, at time.Time) {
	w.t.Helper()
	w.patch(&corev1.Secret{}, secret, fmt.Sprintf(`{"metadata":{"annotations":{"spillway.dev/retry-config":%q}}}`, at.UTC().Format(time.RFC3339Nano)))
}

// What a user has said of the workload that failed, of the next one or of the object, lets others
// be rolled.
func TestAFailureIsReleased(t *testing.T) {
	for name, release := range map[string]func(*world){
		"it turns the stop off": func(w *world) { w.annotate("app1", native+"stop-on-failure", "false") },
		"the next turns it off": func(w *world) { w.annotate("app2", native+"stop-on-failure", "false") },
		"the Secret turns it off": func(w *world) {
			w.patch(&corev1.Secret{}, "db", `{"metadata":{"annotations":{"spillway.dev/stop-on-failure":"false"}}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, _, before := oneFails(t, "app2")
			release(w)
			w.hashed("app2", before)
			w.eventually(func() error { return want("", strings.ReplaceAll(w.condition("app2"), "Failed", "")) })
		})
	}
}

// A workload that was not ready before, or whose template was changed as well, stops no other
// one.
func TestWhatFailsForAnotherReasonStopsNothing(t *testing.T) {
	for name, spoil := range map[string]func(w *world){
		"it was not ready before": func(w *world) {
			w.annotate("app1", native+"config-change", `{"at":"2026-01-01T00:00:00Z"}`) // long after its roll
			w.remove(&corev1.Pod{}, w.pods("app1")[0].Name)
			w.eventually(func() error { return want(int32(0), w.deploymentNow("app1").Status.ReadyReplicas) })
		},
		"its template was changed too": func(w *world) {
			w.patch(w.deploymentNow("app1"), "app1", `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"y"}]}}}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			k := shared(w, "app1", "app2")
			before := w.hash("app2")
			w.annotate("app2", native+"pause", "true")
			k.breaks("app1")
			spoil(w)
			w.settled() // the manager has seen it
			w.secret("db", "p", "fine")
			w.hashed("app1", before)
			w.eventually(func() error { return want(true, w.crashes("app1", w.hash("app1"))) })
			w.annotate("app2", native+"pause", "-")
			w.hashed("app2", before)
			if f := w.failedWith("Secret", "db"); len(f) > 0 {
				t.Errorf("the record says %s", f)
			}
		})
	}
}

// crashes is true if a Pod of a workload with a hash crashes.
func (w *world) crashes(name, hash string) bool {
	w.t.Helper()
	return slices.ContainsFunc(w.pods(name), func(p corev1.Pod) bool {
		s := p.Status.ContainerStatuses
		return p.Annotations[waveHash] == hash && len(s) > 0 && s[0].State.Waiting != nil
	})
}

// Failures of workloads in one namespace hold none in another one, whatever their users
// write on them.
func TestATenantStopsNoOtherTenant(t *testing.T) {
	w, tenant := newWorld(t), newNamespace(t)
	w.options.Namespaces = append(w.options.Namespaces, tenant)
	w.options.AllowCrossNamespace, w.options.MaxRolling = true, 1
	k := startKubelets(w)
	w.secret("db", "p", "good")
	w.apply(still(deployment("app1", envFrom(secretRef("db")))))
	w.manage()
	before := w.hashed("app1", "")
	w.ready("app1")
	name := w.namespace + "/db"
	d := deployment("hostile", envFrom(configMapRef("none")), native+"extra-secrets", name)
	w.apply(inNamespace(replaceOnce(d, "configMapRef: {name: none}", "configMapRef: {name: none, optional: true}"), tenant))
	hostile := &appsv1.Deployment{}
	w.eventually(func() error {
		if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: tenant, Name: "hostile"}, hostile); err != nil {
			return err
		}
		return want(true, hostile.Spec.Template.Annotations[waveHash] != "")
	})
	// What its users can say: it has failed with every digest that the Secret may have.
	w.halt()
	w.secret("db", "p", "fine")
	digest := w.digest("db")
	record := fmt.Sprintf(`[{"kind":"Secret","namespace":%q,"name":"db","digest":%q,"at":"2099-01-01T00:00:00Z","cause":"x"}]`, w.namespace, digest)
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"spillway.dev/config-failed":%q}}}`, record)
	if err := w.client.Patch(t.Context(), hostile, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	w.manage()
	w.hashed("app1", before)
	w.eventually(func() error { return want("app1", strings.Join(k.ranWith("fine"), " ")) })
}

// digest is what identifies the content of a Secret.
func (w *world) digest(name string) string {
	w.t.Helper()
	s := &corev1.Secret{}
	if err := w.get(s, name); err != nil {
		w.t.Fatal(err)
	}
	content.Digest(s)
	r, _ := content.FactsOf(s).Release(content.ObjectOf(s))
	return r.Digest
}

// managedBy starts a manager on a transport.
func (w *world) managedBy(inj *fault.Injector) (stop func()) { return w.managedWith(inj) }

// managedWith is managedBy with other options.
func (w *world) managedWith(inj *fault.Injector, change ...func(*manager.Options)) (stop func()) {
	o := manager.Options{
		Rings: []string{manager.RingConfig}, Namespaces: w.options.Namespaces, Config: w.options,
		LeaseNamespace: w.options.LeaseNamespace, LeaseName: w.options.LeaseName,
	}
	for _, c := range change {
		c(&o)
	}
	return w.barrier.Run(w.t, testenv.Shared().Config(), inj, o)
}

// aStop is a world in which a bad value is to be stopped at the first of three workloads.
func aStop(t *testing.T) (*world, *kubelets) {
	w := newWorld(t)
	w.options.MaxRolling, w.options.CoalesceWindow = 1, 0
	k := shared(w, "app1", "app2", "app3")
	w.halt()
	w.secret("db", "p", "bad")
	return w, k
}

// stopsAtOne waits until two of three workloads are stopped, and checks that one alone ran
// the bad value, and that the next good one gets to all.
func (w *world) stopsAtOne(k *kubelets, meanwhile func()) {
	w.t.Helper()
	w.eventually(func() error {
		meanwhile()
		for _, name := range []string{"app1", "app2", "app3"} {
			if c := w.condition(name); !strings.Contains(c, "ConfigFailed") {
				return fmt.Errorf("%s has condition %q", name, c)
			}
		}
		return nil
	})
	if ran := k.ranWith("bad"); !slices.Equal(ran, []string{"app1"}) {
		w.t.Errorf("%v ran the bad value", ran)
	}
	w.secret("db", "p", "fine")
	w.eventually(func() error {
		meanwhile()
		return want("app1 app2 app3", strings.Join(k.ranWith("fine"), " "))
	})
}

// TestFaultAStopTwoManagers has two managers that know nothing of each other.
func TestFaultAStopTwoManagers(t *testing.T) {
	for i := range 2 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			w, k := aStop(t)
			w.managedBy(fault.New())
			w.managedBy(fault.New())
			w.stopsAtOne(k, func() {})
		})
	}
}

// A manager that must not read Pods notices what fails by its deadline.
func TestWithoutPermissionForPodsADeadlineStops(t *testing.T) {
	w := newWorld(t)
	rules, err := manifests.Rules([]string{manager.RingConfig})
	if err != nil {
		t.Fatal(err)
	}
	rules = slices.DeleteFunc(rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "pods") })
	user := "manager-of-" + w.namespace
	testenv.Grant(t, w.client, w.namespace, user, rules)
	w.as = testenv.Shared().ConfigAs(user)
	startKubelets(w)
	w.secret("db", "p", "good")
	w.apply(
		replaceOnce(still(deployment("app1", envFrom(secretRef("db")))), "replicas: 1", "replicas: 1\n  progressDeadlineSeconds: 2"),
		still(deployment("app2", envFrom(secretRef("db")))),
	)
	w.manage()
	before := w.hashed("app1", "")
	w.hashed("app2", "")
	w.ready("app1", "app2")
	w.annotate("app2", native+"pause", "true")
	w.settled() // the manager has seen it
	w.secret("db", "p", "hangs")
	w.hashed("app1", before)
	w.meanwhile = func() { w.clock.Step(time.Second) }
	w.saysEventually("app1", "ConfigFailed")
	w.meanwhile = nil
	w.annotate("app2", native+"pause", "-")
	w.stopped("app1", "app2")
}
