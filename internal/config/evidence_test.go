package config_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
