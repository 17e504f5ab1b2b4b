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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// kubelets start Pods as real ones do: with what the Secret has at that moment. A Pod
// that starts with a bad value crashes again and again, one that hangs never is ready.
type kubelets struct {
	w *world
	c *kubernetes.Clientset

	mu sync.Mutex
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
	if app := pod.Labels["app"]; k.ran[app] == nil {
		k.ran[app] = map[string]bool{}
	}
	k.ran[pod.Labels["app"]][value] = true
	k.mu.Unlock()
	now, ready := metav1.Now(), corev1.ConditionTrue
	status := corev1.ContainerStatus{Name: "c", Image: "x", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}}
	switch {
	case strings.HasPrefix(value, "bad"):
		ready, status.Ready, status.RestartCount = corev1.ConditionFalse, false, 3
		status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	case strings.HasPrefix(value, "hangs"):
		ready, status.Ready = corev1.ConditionFalse, false
	}
	pod = pod.DeepCopy()
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
// value is tried anew, and the same bad value is not.
func TestABadChangeStopsAtTheFirstWorkload(t *testing.T) {
	w := newWorld(t)
	w.options.MaxRolling = 1
	k := shared(w, five...)
	w.secret("db", "p", "bad1")
	w.stopped("app1", five[1:]...)
	e := w.explain("app2")
	if !strings.HasPrefix(e.Sentence, "Deployment app2 is waiting: Secret db@") ||
		!strings.HasSuffix(e.Sentence, " failed on deployment/app1 (1 of 2 Pods CrashLoopBackOff); 4 workloads keep the previous config") {
		t.Errorf("app2: %s", e.Sentence)
	}
	if e := w.explain("app1"); e.State != "Failed" || !strings.Contains(e.Sentence, "app1 failed: 1 of 2 Pods CrashLoopBackOff (changed: Secret db@") {
		t.Errorf("app1: %s %s", e.State, e.Sentence)
	}
	w.eventually(func() error { return want(true, len(w.events("ConfigFailed")) >= 5) })
	w.sentinelOnly(func() {})
	w.secret("db", "p", "good2")
	w.ready(five...)
	for _, name := range five {
		if c := w.condition(name); c != "" {
			t.Errorf("%s has still the condition %s", name, c)
		}
	}
	w.secret("db", "p", "bad1")
	w.stopped("app1", five...)
	w.sentinelOnly(func() {})
	if ran := k.ranWith("bad1"); !slices.Equal(ran, five[:1]) {
		t.Errorf("%v ran the bad value", ran)
	}
	_ = time.Now
}
