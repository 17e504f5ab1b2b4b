package config_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/config/policy"
)

// preferred is the annotation of a workload that would be rolled first.
const preferred = native + "priority"

// A workload that cannot show whether it works with the content is not first, whatever its
// priority: the next one is, and a bad value stops there.
func TestWhatCannotTellIsNotFirst(t *testing.T) {
	for name, test := range map[string]struct {
		kind, old, now string
	}{
		"no replicas":       {"Deployment", "replicas: 1", "replicas: 0"},
		"paused":            {"Deployment", "replicas: 1", "replicas: 1\n  paused: true"},
		"no node":           {"DaemonSet", "    spec:\n", "    spec:\n      nodeSelector: {no: node}\n"},
		"deleted by a user": {"StatefulSet", "serviceName: x", "serviceName: x\n  updateStrategy: {type: OnDelete}"},
	} {
		t.Run(name, func(t *testing.T) {
			w, k := staged(t, oneFirst, "app1", "app2", "app3")
			manifest := workload(test.kind, "mute", envFrom(secretRef("db")), preferred, "9")
			w.apply(still(replaceOnce(manifest, test.old, test.now)))
			w.hasHash(test.kind, "mute")
			w.eventually(func() error { return want(test.kind == "StatefulSet", slices.Contains(k.ranWith("good"), "mute")) })
			w.secret("db", "p", "bad")
			w.stopped("app1", "app2", "app3")
			w.phase("staged", "Failed")
			w.rests(func() {})
			if ran := k.ranWith("bad"); !slices.Equal(ran, []string{"app1"}) {
				t.Errorf("%v ran the bad value", ran)
			}
			w.secret("db", "p", "good2")
			w.ready("app1", "app2", "app3")
			w.phase("staged", "Complete")
		})
	}
}

// hasHash waits until a workload is up to date, and so not opted in any more for the first time.
func (w *world) hasHash(kind, name string) {
	w.t.Helper()
	w.eventually(func() error {
		obj := map[string]client.Object{"Deployment": &appsv1.Deployment{}, "StatefulSet": &appsv1.StatefulSet{}, "DaemonSet": &appsv1.DaemonSet{}}[kind]
		if err := w.get(obj, name); err != nil {
			return err
		}
		for _, value := range obj.GetAnnotations() {
			if strings.Contains(value, `"inputs"`) {
				return nil
			}
		}
		return fmt.Errorf("%s %s has no hash", kind, name)
	})
}

// Where nothing can show whether it works, nothing waits for that.
func TestNothingCanTell(t *testing.T) {
	w := newWorld(t)
	w.policy("staged", "soak: 1h\n  "+oneFirst)
	w.secret("db", "p", "good")
	for _, name := range []string{"app1", "app2"} {
		w.apply(replaceOnce(deployment(name, envFrom(secretRef("db"))), "replicas: 1", "replicas: 0"))
	}
	w.manage()
	before := w.hashed("app1", "")
	w.hashed("app2", "")
	w.secret("db", "p", "next")
	w.hashed("app1", before)
	w.hashed("app2", before)
	w.phase("staged", "Complete")
}

// One Pod of each workload is not ready when the value changes. New Pods that crash say that the
// value is bad all the same, and a good value gets to all.
func TestAPodIsNotReadyBefore(t *testing.T) {
	w := newWorld(t)
	w.policy("staged", oneFirst)
	k := startKubelets(w)
	w.secret("db", "p", "good")
	names := []string{"app1", "app2", "app3", "app4"}
	for _, name := range names {
		w.apply(still(replaceOnce(deployment(name, envFrom(secretRef("db"))), "replicas: 1", "replicas: 2")))
	}
	w.manage()
	for _, name := range names {
		w.hashed(name, "")
		w.available(name, 2)
	}
	w.phase("staged", "Complete")
	for _, name := range names {
		k.disturb(w.pods(name)[0])
		w.available(name, 1)
	}
	w.secret("db", "p", "bad")
	w.stopped("app1", names[1:]...)
	w.rests(func() {})
	if ran := k.ranWith("bad"); !slices.Equal(ran, names[:1]) {
		t.Errorf("%v ran the bad value", ran)
	}
	w.secret("db", "p", "fine")
	w.phase("staged", "Complete")
	if ran := k.ranWith("fine"); !slices.Equal(ran, names) {
		t.Errorf("%v ran the good value", ran)
	}
}

// A workload that crashed before, and crashes as before, says nothing of the value.
func TestACrashAsBefore(t *testing.T) {
	w := newWorld(t)
	w.policy("staged", oneFirst)
	k := startKubelets(w)
	k.breaks("app1")
	w.secret("db", "p", "good")
	for _, name := range []string{"app1", "app2", "app3"} {
		w.apply(still(deployment(name, envFrom(secretRef("db")))))
	}
	w.eventually(func() error {
		for _, pod := range w.pods("app1") {
			if s := pod.Status.ContainerStatuses; len(s) > 0 && s[0].State.Waiting != nil {
				return nil
			}
		}
		return errors.New("app1 does not crash")
	})
	w.manage()
	w.hashed("app1", "")
	w.ready("app2", "app3")
	w.settled()
	w.secret("db", "p", "fine")
	w.ready("app2", "app3")
	w.eventually(func() error { return want("app1 app2 app3", strings.Join(k.ranWith("fine"), " ")) })
	w.phase("staged", "Complete")
	w.rests(func() {
		if e := w.explain("app1"); e.State == "Failed" {
			t.Errorf("app1: %s", e.Sentence)
		}
	})
}

// available waits until so many Pods of a Deployment are available.
func (w *world) available(name string, n int32) {
	w.t.Helper()
	w.eventually(func() error {
		d := w.deploymentNow(name)
		if d.Status.ObservedGeneration != d.Generation {
			return fmt.Errorf("%s is not observed", name)
		}
		return want(n, d.Status.AvailableReplicas)
	})
}

// disturb makes a Pod that runs not ready.
func (k *kubelets) disturb(pod corev1.Pod) {
	k.w.t.Helper()
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now()}}
	if _, err := k.c.CoreV1().Pods(pod.Namespace).UpdateStatus(k.w.t.Context(), &pod, metav1.UpdateOptions{}); err != nil {
		k.w.t.Fatal(err)
	}
}

// Under the default policy the first workload has to stay ready for a minute: one that crashes
// after that it was ready stops the others. After the minute they follow.
func TestTheDefaultPolicySoaks(t *testing.T) {
	w, k := staged(t, "maxUnavailable: 1", five...)
	spec, err := yaml.Marshal(policy.Default().Spec.ConfigPolicySpec)
	if err != nil {
		t.Fatal(err)
	}
	w.policy("staged", strings.ReplaceAll(strings.TrimSpace(string(spec)), "\n", "\n  "))
	w.eventually(func() error { return want(int64(2), w.status("staged").ObservedGeneration) })
	w.secret("db", "p", "late")
	w.saysWhy("app2", "Soaking", "stage first is ready; soaking until ")
	w.rests(func() {})
	k.crash(w.pods("app1")[0])
	w.stopped("app1", five[1:]...)
	w.rests(func() {})
	if ran := k.ranWith("late"); !slices.Equal(ran, five[:1]) {
		t.Errorf("%v ran the bad value", ran)
	}
	w.secret("db", "p", "fine")
	w.saysWhy("app2", "Soaking", "stage first is ready; soaking until ")
	w.barrier.Step(t, 61*time.Second)
	w.ready(five...)
}

// crash makes the container of a Pod that was ready crash again and again.
func (k *kubelets) crash(pod corev1.Pod) {
	k.w.t.Helper()
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now()}}
	status := &pod.Status.ContainerStatuses[0]
	status.Ready, status.RestartCount = false, 3
	status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	if _, err := k.c.CoreV1().Pods(pod.Namespace).UpdateStatus(k.w.t.Context(), &pod, metav1.UpdateOptions{}); err != nil {
		k.w.t.Fatal(err)
	}
}

// There is no room for the new Pod of the first workload, because of a quota: that says nothing of
// the value, which gets to the others, and to it once there is room.
func TestNoRoomForAPod(t *testing.T) {
	w := newWorld(t)
	w.policy("staged", oneFirst)
	k := startKubelets(w)
	w.secret("db", "p", "good")
	names := []string{"app1", "app2", "app3"}
	for _, name := range names {
		manifest := still(deployment(name, envFrom(secretRef("db"))))
		if name == "app1" {
			manifest = replaceOnce(manifest, "  image: x", "  image: x\n        resources: {requests: {cpu: 1m}}")
		}
		w.apply(manifest)
	}
	w.manage()
	for _, name := range names {
		w.hashed(name, "")
	}
	w.ready(names...)
	w.phase("staged", "Complete")
	w.apply("apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: full}\nspec: {scopes: [NotBestEffort], hard: {pods: 1}}")
	w.eventually(func() error {
		q := &corev1.ResourceQuota{}
		if err := w.get(q, "full"); err != nil {
			return err
		}
		return want("1", q.Status.Used.Pods().String())
	})
	w.secret("db", "p", "fine")
	w.ready("app2", "app3")
	w.saysWhy("app1", "Progressing", "app1 is updating: no room for new Pods: exceeded quota: full, requested: pods=1")
	w.phase("staged", "Complete")
	w.remove(&corev1.ResourceQuota{}, "full")
	w.creates("app1")
	w.ready(names...)
	if ran := k.ranWith("fine"); !slices.Equal(ran, names) {
		t.Errorf("%v ran the value", ran)
	}
}

// creates has the ReplicaSets of a Deployment create their Pods now: their controller waits the longer, the more often
// a Pod was refused.
func (w *world) creates(name string) {
	w.t.Helper()
	sets := &appsv1.ReplicaSetList{}
	if err := w.client.List(w.t.Context(), sets, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	for i := range sets.Items {
		if set := &sets.Items[i]; metav1.GetControllerOf(set).Name == name {
			w.patch(&appsv1.ReplicaSet{}, set.Name, `{"metadata":{"annotations":{"testenv.spillway.dev/look":"again"}}}`)
		}
	}
}

// Another client rolls a workload while its config has changed, and admission writes the hash: if
// it crashes, the others are not rolled for the same content.
func TestARollOfAnotherClientIsJudged(t *testing.T) {
	w := newWorld(t)
	w.policy("staged", oneFirst)
	k := startKubelets(w)
	w.secret("db", "p", "good")
	w.admit()
	names := []string{"app1", "app2", "app3"}
	for _, name := range names {
		w.apply(still(deployment(name, envFrom(secretRef("db")))))
		w.hashed(name, "")
	}
	w.ready(names...)
	w.policy("staged", "pause: {by: alice}\n  "+oneFirst)
	w.eventually(func() error { return want(int64(2), w.status("staged").ObservedGeneration) })
	before := w.hash("app2")
	w.secret("db", "p", "bad")
	w.saysWhy("app1", "Paused", "alice")
	w.patch(&appsv1.Deployment{}, "app2", `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"now"}}}}}`)
	w.hashed("app2", before)
	w.stopped("app2", "app1", "app3")
	w.policy("staged", oneFirst)
	w.eventually(func() error { return want(int64(3), w.status("staged").ObservedGeneration) }) // its phase may be so already
	w.phase("staged", "Failed")
	w.rests(func() {})
	if e := w.explain("app2"); e.State != "Failed" || !strings.Contains(e.Sentence, "its Pod template was changed by another client, too") {
		t.Errorf("app2: %s %s", e.State, e.Sentence)
	}
	if ran := k.ranWith("bad"); !slices.Equal(ran, []string{"app2"}) {
		t.Errorf("%v ran the bad value", ran)
	}
	w.secret("db", "p", "fine")
	w.ready(names...)
}
