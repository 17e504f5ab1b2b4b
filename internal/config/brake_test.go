package config_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const keepsChanging = "ConfigKeepsChanging"

// An object that is written after each roll is held after some of them: the workload says so, a new manager holds it too,
// and nothing is written. It goes on when the time is over, or as soon as a user retries it.
func TestWhatChangesAfterEachRollIsHeld(t *testing.T) {
	for name, end := range map[string]func(w *world, left time.Duration){
		"time": func(w *world, left time.Duration) { w.barrier.Step(w.t, left) },
		"retry": func(w *world, _ time.Duration) {
			w.patch(&corev1.ConfigMap{}, "app", fmt.Sprintf(`{"metadata":{"annotations":{"spillway.dev/retry-config":%q}}}`, w.clock.Now().UTC().Format(time.RFC3339Nano)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.configMap("app", "a", "0")
			w.apply(deployment("web", envFrom(configMapRef("app"))))
			w.manage()
			hash := w.hashed("web", "")
			for i := range 5 { // an operator writes addresses of Pods into it
				w.settled()
				w.configMap("app", "a", fmt.Sprint(i+1))
				hash = w.hashed("web", hash)
			}
			w.settled()
			w.configMap("app", "a", "6")
			w.saysWhy("web", keepsChanging, "ConfigMap app has changed after each of 5 rolls within 10 minutes; to roll it now, run spillway retry configmap/app -n "+w.namespace)
			w.eventually(func() error { return want(1, len(w.events(keepsChanging))) })
			w.rests(func() {})
			w.halt()
			w.manage()
			w.rests(func() {})
			e, r := w.explain("web"), w.record("ConfigMap", "app")
			if string(e.Reason) != keepsChanging || e.Until == nil || w.hash("web") != hash || len(r.Rollout.Causes) != 1 || r.Rollout.Causes[0].Reason != keepsChanging || r.Rollout.MovedAt != nil {
				t.Fatalf("%+v, recorded %+v", e, r.Rollout)
			}
			first := r.History[len(r.History)-1].MovedAt
			if !e.Until.Equal(first.Add(10 * time.Minute)) {
				t.Errorf("it goes on at %s, the first roll was at %s", e.Until, first)
			}
			end(w, e.Until.Sub(w.clock.Now()))
			w.hashed("web", hash)
			w.rests(func() {})
		})
	}
}

// However often a paused object is edited, its workloads were not rolled, and it is not held afterwards.
func TestEditsThatRollNothingDoNotCount(t *testing.T) {
	w := newWorld(t)
	w.configMap("app", "a", "0")
	w.apply(deployment("web", envFrom(configMapRef("app"))))
	w.manage()
	hash := w.hashed("web", "")
	w.patch(&corev1.ConfigMap{}, "app", `{"metadata":{"annotations":{"spillway.dev/pause":"true"}}}`)
	for i := range 7 {
		w.configMap("app", "a", fmt.Sprint(i+1))
		w.settled()
	}
	if r := w.record("ConfigMap", "app"); len(r.History) != 0 || r.Rollout.Phase != "Paused" {
		t.Errorf("the record is %+v", r)
	}
	w.patch(&corev1.ConfigMap{}, "app", `{"metadata":{"annotations":{"spillway.dev/pause":null}}}`)
	w.hashed("web", hash)
}
