package config_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

// backFaults is a story of a workload that fails with a change and gets its previous config
// back. A witness of its own reads every version of it.
type backFaults struct {
	*run

	mu sync.Mutex
	// pins are those that the Pod template had, one after the other, and failed what was
	// recorded before each.
	pins   []string
	failed [][]string
}

func backFaultsIn(w *world) *backFaults {
	w.t.Helper()
	pinnable(w)
	startKubelets(w)
	w.options.CoalesceWindow = 0
	w.secret("db", "p", "good")
	w.apply(returns("Deployment", "app", onFailure, "Rollback"))
	f := &backFaults{run: &run{world: w}}
	f.watch()
	return f
}

func (f *backFaults) watch() {
	c, err := testenv.Shared().Clientset()
	if err != nil {
		f.t.Fatal(err)
	}
	watch, err := c.AppsV1().Deployments(f.namespace).Watch(context.Background(), metav1.ListOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(watch.Stop)
	go func() {
		for e := range watch.ResultChan() {
			d, ok := e.Object.(*appsv1.Deployment)
			if !ok {
				continue
			}
			f.mu.Lock()
			if pins := d.Spec.Template.Annotations[pinAnnotation]; pins != "" && (len(f.pins) == 0 || f.pins[len(f.pins)-1] != pins) {
				f.pins, f.failed = append(f.pins, pins), append(f.failed, f.failedWith("Secret", "db"))
			}
			f.mu.Unlock()
		}
	}()
}

// pinnedTimes waits until the Pod template has had so many pins.
func (f *backFaults) pinnedTimes(times int, meanwhile func()) []string {
	f.t.Helper()
	f.eventually(func() error {
		meanwhile()
		f.mu.Lock()
		defer f.mu.Unlock()
		return want(times, len(f.pins))
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.pins)
}

// tell tells the story to its end: what the workload had comes back once, and not before the
// failure is recorded.
func (f *backFaults) tell(meanwhile func()) {
	f.t.Helper()
	good := snapshotOf(f.t, f.pinnedTimes(1, meanwhile)[0])
	f.readyWith("app", good, 1)
	f.patch(&corev1.Secret{}, "db", `{"stringData":{"p":"bad"}}`)
	pins := f.pinnedTimes(3, meanwhile)
	f.readyWith("app", good, 1)
	f.eventually(func() error {
		meanwhile()
		return want(rolledBack, string(f.explainKind("Deployment", "app").Reason))
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.pins) != 3 || pins[0] != pins[2] {
		f.t.Errorf("the pins were %v", f.pins)
	}
	if len(f.failed[1]) > 0 || len(f.failed[2]) == 0 {
		f.t.Errorf("recorded before each pins: %q", f.failed)
	}
}

// The manager is stopped at every write of the story, and another one starts.
func TestFaultBackAtEveryWrite(t *testing.T) {
	testenv.Story(t, 10, func(t *testing.T, begin fault.Begin) {
		f := backFaultsIn(newWorld(t))
		f.tell(begin(f.managed))
	})
}

// Two managers know nothing of each other.
func TestFaultTwoManagersGoBack(t *testing.T) {
	f := backFaultsIn(newWorld(t))
	f.managed(fault.New())
	f.managed(fault.New())
	f.tell(func() {})
}
