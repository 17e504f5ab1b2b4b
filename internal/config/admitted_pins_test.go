package config_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/config/verdict"
	workloads "github.com/spillway-dev/spillway/internal/config/workload"
)

// envKey is a container that has a key of the ConfigMap app as a variable.
func envKey(name, key string) string {
	return "{name: " + name + ", valueFrom: {configMapKeyRef: {name: app, key: " + key + "}}}"
}

// needing is a workload in a world with pins and webhooks, and a new key of its ConfigMap, for which the ring
// does not roll it for now. It returns a patch by which the workload uses that key, and its pins.
func needing(t *testing.T) (w *world, patch client.Patch, pins string) {
	t.Helper()
	w = newWorld(t)
	pinnable(w)
	w.options.CoalesceWindow = time.Hour
	w.admit()
	w.configMap("app", "a", "1")
	w.apply(workload("Deployment", "web", "containers: [{name: c, image: x, env: ["+envKey("A", "a")+"]}]", native+"pin-config", "true"))
	pins = w.pinnedAgain("Deployment", "web", "")
	w.settledWith("web", 2) // the suspended one had no Pod that started
	w.configMap("app", "a", "1", "b", "2")
	w.settled()
	edit := `{"spec":{"template":{"spec":{"containers":[{"name":"c","env":[{"name":"B","valueFrom":{"configMapKeyRef":{"name":"app","key":"b"}}}]}]}}}}`
	return w, client.RawPatch(types.StrategicMergePatchType, []byte(edit)), pins
}

// configMapSnapshots are the snapshots of ConfigMaps.
func (w *world) configMapSnapshots() int {
	w.t.Helper()
	list := &corev1.ConfigMapList{}
	if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace), client.MatchingLabels{native + "snapshot": "true"}); err != nil {
		w.t.Fatal(err)
	}
	return len(list.Items)
}

// appNow is the ConfigMap app with the digest of its content.
func (w *world) appNow() (of content.Object, digest string) {
	w.t.Helper()
	cm := &corev1.ConfigMap{}
	if err := w.get(cm, "app"); err != nil {
		w.t.Fatal(err)
	}
	content.Digest(cm)
	of = content.ObjectOf(cm)
	digest, _ = content.FactsOf(cm).DigestOf(of)
	return of, digest
}

// A template that needs a newer content than it is pinned to gets that, with its hash, in the write by which a
// user edits it: its Pods start, and it rolls once. A dry run is answered with the same, and writes no snapshot.
func TestATemplateThatNeedsNewerContentGetsItAtOnce(t *testing.T) {
	w, patch, before := needing(t)
	dry := w.deploymentNow("web")
	if err := w.client.Patch(t.Context(), dry, patch, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	after := dry.Spec.Template.Annotations[pinAnnotation]
	if err := errors.Join(want(false, after == before), want(1, w.configMapSnapshots())); err != nil {
		t.Error("after a dry run:", err)
	}
	d := w.deploymentNow("web")
	if err := w.client.Patch(t.Context(), d, patch); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(want(after, d.Spec.Template.Annotations[pinAnnotation]), want(2, w.configMapSnapshots())); err != nil {
		t.Error(err)
	}
	w.eventually(func() error { return want(config.StateUpToDate, w.explain("web").State) })
	w.settledWith("web", 3)
	if err := want(after, w.pinsOf("Deployment", "web")); err != nil {
		t.Error(err)
	}
}

// What holds the newer content also holds it back from a template that needs it: explain says what its Pods lack.
func TestATemplateThatNeedsContentThatIsHeld(t *testing.T) {
	for name, hold := range map[string]func(w *world){
		"it has failed": func(w *world) {
			of, digest := w.appNow()
			v := verdict.Verdict{On: workloads.Name{Kind: "Deployment", Namespace: w.namespace, Name: "other"}, Failed: workloads.FailedWith(content.Release{Object: of, Digest: digest}, time.Now(), "not ready", "x")}
			if err := w.client.Create(w.t.Context(), verdict.Record(of, digest, []verdict.Verdict{v})); err != nil {
				w.t.Fatal(err)
			}
		},
		"an earlier revision was restored": func(w *world) {
			of, digest := w.appNow()
			w.update("web", func(d *appsv1.Deployment) {
				workloads.SetUndone(d, pin.Pins{{Kind: of.Kind, Name: of.Name, Digest: pin.ShortDigest(digest)}}, time.Now(), "alice", "")
			})
		},
		"another workload may be the first": func(w *world) {
			w.policy("staged", oneFirst)
			w.apply(deployment("other", envFrom(configMapRef("app"))))
		},
		"it is paused": func(w *world) {
			w.patch(&corev1.ConfigMap{}, "app", `{"metadata":{"annotations":{"spillway.dev/pause":"true"}}}`)
		},
		"its policy is paused": func(w *world) { w.policy("staged", "pause: {by: alice}\n  "+oneFirst) },
		"no window is open": func(w *world) {
			w.policy("staged", "maintenanceWindows: [{schedule: '0 0 1 1 *', durationSeconds: 60}]")
		},
		"its policy has gates": func(w *world) {
			w.policy("staged", "stages: [{name: all, gates: [{name: slo}]}]")
		},
		"the workload is paused": func(w *world) { w.annotate("web", native+"pause", "true") },
	} {
		t.Run(name, func(t *testing.T) {
			w, patch, before := needing(t)
			hold(w)
			w.settled()
			d := w.deploymentNow("web")
			if err := w.client.Patch(t.Context(), d, patch); err != nil {
				t.Fatal(err)
			}
			w.settled()
			e := w.explain("web")
			if err := errors.Join(want(before, w.pinsOf("Deployment", "web")), want(1, w.configMapSnapshots())); err != nil || !strings.Contains(fmt.Sprint(e.Keeps), "has no key b: new Pods cannot start until the workload rolls") {
				t.Error(err, e.Sentence, e.Keeps)
			}
		})
	}
}
