package config_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

// pinFaults is a story of workloads with pins: their first pins, and those of a change. A
// witness of its own reads each Pod template that gets pins.
type pinFaults struct {
	*run

	mu      sync.Mutex
	pinned  map[string][]string
	unready []string
}

func newPinFaults(t *testing.T) *pinFaults {
	t.Helper()
	w := newWorld(t)
	pinnable(w)
	w.options.CoalesceWindow = 0
	w.secret("db", "p", "1")
	w.configMap("app", "a", "1")
	both := envFrom(secretRef("db"), configMapRef("app"))
	for _, name := range []string{"web", "api"} {
		w.apply(workload("Deployment", name, both, native+"pin-config", "true"))
	}
	f := &pinFaults{run: &run{world: w}, pinned: map[string][]string{}}
	f.watch()
	return f
}

// watch notes the pins of each Pod template, and those of which a snapshot does not exist.
func (f *pinFaults) watch() {
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
			pins := d.Spec.Template.Annotations[pinAnnotation]
			parsed, _ := pin.Parse(pins)
			var missing []string
			for _, p := range parsed {
				var err error
				if p.Kind == "Secret" {
					_, err = c.CoreV1().Secrets(f.namespace).Get(context.Background(), p.Snapshot(), metav1.GetOptions{})
				} else {
					_, err = c.CoreV1().ConfigMaps(f.namespace).Get(context.Background(), p.Snapshot(), metav1.GetOptions{})
				}
				if err != nil {
					missing = append(missing, p.String())
				}
			}
			f.mu.Lock()
			f.unready = append(f.unready, missing...)
			if seen := f.pinned[d.Name]; pins != "" && (len(seen) == 0 || seen[len(seen)-1] != pins) {
				f.pinned[d.Name] = append(seen, pins)
			}
			f.mu.Unlock()
		}
	}()
}

// tellTo waits until all workloads have had pins so many times, and their snapshots exist.
func (f *pinFaults) tellTo(times int, meanwhile func()) {
	f.t.Helper()
	f.eventually(func() error {
		meanwhile()
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, name := range []string{"web", "api"} {
			if got := len(f.pinned[name]); got != times {
				return fmt.Errorf("%s was pinned %d times: %v", name, got, f.pinned[name])
			}
		}
		return nil
	})
}

// tell tells the story to its end, and checks it.
func (f *pinFaults) tell(meanwhile func()) {
	f.t.Helper()
	f.tellTo(1, meanwhile)
	f.patch(&corev1.Secret{}, "db", `{"stringData":{"p":"2"}}`)
	f.tellTo(2, meanwhile)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.unready) > 0 {
		f.t.Errorf("pinned before the snapshot existed: %v", f.unready)
	}
	if web, api := f.pinned["web"], f.pinned["api"]; !maps.Equal(map[string]string{web[0]: web[1]}, map[string]string{api[0]: api[1]}) {
		f.t.Errorf("the workloads differ: %v %v", web, api)
	}
	for _, pins := range f.pinned["web"] {
		parsed, err := pin.Parse(pins)
		if err != nil {
			f.t.Fatal(err)
		}
		secret, _ := parsed.Of("Secret", "db")
		configMap, _ := parsed.Of("ConfigMap", "app")
		if err := errors.Join(f.get(&corev1.Secret{}, secret.Snapshot()), f.get(&corev1.ConfigMap{}, configMap.Snapshot())); err != nil {
			f.t.Error(err)
		}
	}
}

// The manager is stopped at every write of the story, and another one starts. No
// workload is pinned to what does not exist, or more often than without a fault.
func TestFaultPinsAtEveryWrite(t *testing.T) {
	testenv.Story(t, 8, func(t *testing.T, begin fault.Begin) {
		f := newPinFaults(t)
		f.tell(begin(f.managed))
	})
}

// Two managers know nothing of each other.
func TestFaultTwoManagersPin(t *testing.T) {
	f := newPinFaults(t)
	f.managed(fault.New())
	f.managed(fault.New())
	f.tell(func() {})
}
