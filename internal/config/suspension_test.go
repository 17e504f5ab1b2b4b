package config_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/decision"
	workloads "github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

const gate = "spillway.dev/config-missing"

// gated is a workload as admission makes it when its config is missing.
func gated(manifest string) string {
	return replaceOnce(manifest, "    spec:\n      ", "    spec:\n      schedulingGates: [{name: "+gate+"}, {name: example.test/mine}]\n      ")
}

func onlyOurs(manifest string) string {
	return replaceOnce(manifest, ", {name: example.test/mine}", "")
}

// pods are the Pods of a workload, including those being deleted.
func (w *world) pods(name string) []corev1.Pod {
	w.t.Helper()
	list := &corev1.PodList{}
	if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace), client.MatchingLabels{"app": name}); err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// runs waits until n Pods of a workload run, with this hash, and none else is left.
func (w *world) runs(name string, n int, hash string) {
	w.t.Helper()
	w.eventually(func() error {
		pods := w.pods(name)
		for i := range pods {
			p := &pods[i]
			if p.Status.Phase != corev1.PodRunning || p.Annotations[waveHash] != hash {
				return fmt.Errorf("Pod %s is %s with hash %q and gates %v", p.Name, p.Status.Phase, p.Annotations[waveHash], p.Spec.SchedulingGates)
			}
		}
		return want(n, len(pods))
	})
}

// Whatever controller makes the Pods: those that waited start once the config
// exists, with it, and no Pod that ran is replaced.
func TestASuspendedWorkloadStartsOnceAndRight(t *testing.T) {
	onDelete := func(kind string) string {
		return replaceOnce(workload(kind, "web", envFrom(configMapRef("app"))), "  selector:", "  updateStrategy: {type: OnDelete}\n  selector:")
	}
	for name, test := range map[string]struct {
		kind     client.Object
		manifest string
		pods     int
	}{
		"Deployment":           {&appsv1.Deployment{}, deployment("web", envFrom(configMapRef("app"))), 1},
		"StatefulSet":          {&appsv1.StatefulSet{}, workload("StatefulSet", "web", envFrom(configMapRef("app"))), 1},
		"StatefulSet OnDelete": {&appsv1.StatefulSet{}, onDelete("StatefulSet"), 1},
		"DaemonSet":            {&appsv1.DaemonSet{}, workload("DaemonSet", "web", envFrom(configMapRef("app"))), 3},
		"DaemonSet OnDelete":   {&appsv1.DaemonSet{}, onDelete("DaemonSet"), 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			starts := w.watchStarts("web")
			w.manage()
			w.apply(onlyOurs(gated(test.manifest)))
			w.eventually(func() error { return want(test.pods, len(w.pods("web"))) })
			w.configMap("app", "a", "1")
			w.runs("web", test.pods, wantHash(t, values{"app": {"a": "1"}}, nil))
			w.settled()
			if got := starts(); got != test.pods {
				t.Errorf("%d Pods have been started, want %d", got, test.pods)
			}
			w.eventually(func() error { // nothing is left of the suspension
				if err := w.get(test.kind, "web"); err != nil {
					return err
				}
				return want("", test.kind.GetAnnotations()[native+"suspended"])
			})
		})
	}
}

// watchStarts returns how many Pods of a workload have run, each counted once.
func (w *world) watchStarts(name string) func() int {
	w.t.Helper()
	c, err := testenv.Shared().Clientset()
	if err != nil {
		w.t.Fatal(err)
	}
	watch, err := c.CoreV1().Pods(w.namespace).Watch(context.Background(), metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(watch.Stop)
	var mu sync.Mutex
	started := map[types.UID]bool{}
	go func() {
		for e := range watch.ResultChan() {
			if p, ok := e.Object.(*corev1.Pod); ok && p.Status.Phase == corev1.PodRunning {
				mu.Lock()
				started[p.UID] = true
				mu.Unlock()
			}
		}
	}()
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(started)
	}
}

// Removing the manager blocks no workload, although config is missing.
func TestReleaseLetsAllPodsRun(t *testing.T) {
	w := newWorld(t)
	w.apply(
		onlyOurs(gated(deployment("web", envFrom(configMapRef("never"))))),
		onlyOurs(gated(workload("StatefulSet", "set", envFrom(configMapRef("never"))))),
		replaceOnce(workload("StatefulSet", "old", envFrom(configMapRef("never"))), "    spec:\n      ", "    spec:\n      schedulerName: "+waveScheduler+"\n      "),
	)
	names := []string{"web", "set", "old"}
	for _, name := range names {
		w.eventually(func() error { return want(1, len(w.pods(name))) })
	}
	var told []string
	if err := config.Release(t.Context(), w.client, w.options, func(n workloads.Name) { told = append(told, n.Name) }); err != nil {
		t.Fatal(err)
	}
	if len(told) != len(names) {
		t.Errorf("reported %v, want each of %v once", told, names)
	}
	for _, name := range names {
		w.runs(name, 1, "")
	}
}

// A user's gate is the user's: only ours is taken away.
func TestOtherGatesStay(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.apply(gated(deployment("web", envFrom(configMapRef("app")))))
	w.configMap("app", "a", "1")
	w.hashed("web", "")
	gates := w.deploymentNow("web").Spec.Template.Spec.SchedulingGates
	if len(gates) != 1 || gates[0].Name != "example.test/mine" {
		t.Errorf("the gates are %v", gates)
	}
}

// However the marker got lost, the workload is released; and the marker alone
// means nothing.
func TestWhatCountsIsTheGate(t *testing.T) {
	w := newWorld(t)
	w.apply(
		onlyOurs(gated(deployment("web", envFrom(configMapRef("app"))))),
		deployment("free", envFrom(configMapRef("app")), native+"suspended", "scheduling-gate"),
	)
	w.configMap("app", "a", "1")
	w.manage()
	for _, name := range []string{"web", "free"} {
		w.runs(name, 1, wantHash(t, values{"app": {"a": "1"}}, nil))
		w.eventually(func() error { return want("", w.deploymentNow(name).Annotations[native+"suspended"]) })
	}
}

// A suspended workload whose tracking ends is released.
func TestOptingOutReleases(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.apply(onlyOurs(gated(workload("StatefulSet", "web", envFrom(configMapRef("never"))))))
	w.eventually(func() error { return want(1, len(w.pods("web"))) })
	w.patch(&appsv1.StatefulSet{}, "web", `{"metadata":{"annotations":{"`+waveTracked+`":null}}}`)
	w.runs("web", 1, "")
}

// The cause of a suspension is reported on the workload and by explain, with its start.
func TestASuspendedWorkloadSaysWhatItWaitsFor(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.apply(onlyOurs(gated(deployment("web", envFrom(configMapRef("app"), secretRef("db"))))))
	w.saysEventually("web", "ConfigMap app not found, Secret db not found; its Pods are not scheduled")
	if e := w.explain("web"); e.Since == nil || e.Reason != decision.ReasonConfigMissing {
		t.Errorf("explain does not say since when: %+v", e)
	}
	w.eventually(func() error { return want(1, len(w.events("SchedulingDisabled"))) })
	w.configMap("app", "a", "1")
	w.secret("db", "p", "q")
	w.eventually(func() error { return want(1, len(w.events("SchedulingEnabled"))) })
}

// Of a StatefulSet that its partition holds, a waiting Pod would come back as it
// is: it is reported, and not deleted repeatedly.
func TestAPartitionHoldsWaitingPods(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.apply(replaceOnce(onlyOurs(gated(workload("StatefulSet", "web", envFrom(configMapRef("app"))))),
		"  selector:", "  updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}\n  selector:"))
	w.eventually(func() error { return want(1, len(w.pods("web"))) })
	before := w.pods("web")[0].UID
	w.configMap("app", "a", "1")
	w.eventually(func() error {
		e, err := config.Explain(t.Context(), w.client, w.options, workloads.Name{Kind: "StatefulSet", Namespace: w.namespace, Name: "web"})
		if err != nil {
			return err
		}
		return want("StatefulSet web is waiting: Pod web-0 is not scheduled, because the partition keeps it at the suspended revision; lower the partition", e.Sentence)
	})
	w.settled()
	if got := w.pods("web")[0].UID; got != before {
		t.Error("the Pod was deleted")
	}
	w.patch(&appsv1.StatefulSet{}, "web", `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}`)
	w.runs("web", 1, wantHash(t, values{"app": {"a": "1"}}, nil))
}
