package config_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/config/snapshots"
	workloads "github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
)

const pinAnnotation = native + "pins"

// pinnable lets workloads of the world keep the config of their revisions.
func pinnable(w *world) {
	w.t.Helper()
	pinnableIn(w, pin.In(w.namespace))
}

// pinnableIn is pinnable for the namespaces among which that of the world is.
func pinnableIn(w *world, namespaces pin.Namespaces) {
	w.t.Helper()
	w.options.PinNamespaces = namespaces
	testenv.Pins(w.t, w.client, w.namespace, namespaces)
}

// pinned is a workload that keeps the config of its revisions, and whose Pods only
// [kubelets] start.
func pinned(kind, name, podSpec string) string {
	return still(workload(kind, name, podSpec, native+"pin-config", "true"))
}

// template is the Pod template of a workload as it is.
func (w *world) template(kind, name string) *corev1.PodTemplateSpec {
	w.t.Helper()
	obj := workloads.New(kind)
	if err := w.get(obj, name); err != nil {
		w.t.Fatal(err)
	}
	return workloads.TemplateOf(obj)
}

func (w *world) pinsOf(kind, name string) string {
	w.t.Helper()
	return w.template(kind, name).Annotations[pinAnnotation]
}

// pinnedAgain waits until a workload has pins other than those given, and returns them.
func (w *world) pinnedAgain(kind, name, before string) string {
	w.t.Helper()
	w.eventually(func() error {
		if p := w.pinsOf(kind, name); p == "" || p == before {
			return fmt.Errorf("%s %s has still the pins %q", kind, name, p)
		}
		return nil
	})
	return w.pinsOf(kind, name)
}

// snapshotOf is the name of the Secret that pins of one Secret refer to.
func snapshotOf(t *testing.T, pins string) string {
	t.Helper()
	parsed, err := pin.Parse(pins)
	if err != nil || len(parsed) != 1 {
		t.Fatal(pins, err)
	}
	return parsed[0].Snapshot()
}

// live are the Pods of an app that are not being deleted.
func (w *world) live(app string) []corev1.Pod {
	w.t.Helper()
	return slices.DeleteFunc(w.pods(app), func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// readyWith waits until so many Pods of an app that refer to a Secret are ready.
func (w *world) readyWith(app, secret string, n int) {
	w.t.Helper()
	w.eventually(func() error {
		got := 0
		for _, p := range w.live(app) {
			if p.Spec.Containers[0].EnvFrom[0].SecretRef.Name == secret && isReady(&p) {
				got++
			}
		}
		return want(n, got)
	})
}

// failing waits until a Pod of an app that refers to a Secret has started and is not ready.
func (w *world) failing(app, secret string) {
	w.t.Helper()
	w.eventually(func() error {
		for _, p := range w.live(app) {
			if p.Spec.Containers[0].EnvFrom[0].SecretRef.Name == secret && len(p.Status.ContainerStatuses) > 0 && !p.Status.ContainerStatuses[0].Ready {
				return nil
			}
		}
		return errors.New("no Pod fails")
	})
}

// undo restores an earlier Pod template, as kubectl rollout undo does.
func (w *world) undo(kind, name string, earlier *corev1.PodTemplateSpec) {
	w.t.Helper()
	raw, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec/template", "value": earlier}})
	if err != nil {
		w.t.Fatal(err)
	}
	obj := workloads.New(kind)
	obj.SetNamespace(w.namespace)
	obj.SetName(name)
	if err := w.client.Patch(w.t.Context(), obj, client.RawPatch(types.JSONPatchType, raw)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) explainKind(kind, name string) config.Explanation {
	w.t.Helper()
	e, err := config.Explain(w.t.Context(), w.client, w.options, workloads.Name{Kind: kind, Namespace: w.namespace, Name: name})
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// kept is a story about one workload: its old Pods keep their config while a bad one rolls, an
// undo restores both, and the next edit rolls again.
func kept(t *testing.T, kind string, pods int) {
	w := newWorld(t)
	pinnable(w)
	w.keeps(kind, pods)
}

// keeps is the story, where something points Pods at snapshots.
func (w *world) keeps(kind string, pods int) {
	t := w.t
	t.Helper()
	startKubelets(w)
	w.secret("db", "p", "good")
	w.apply(pinned(kind, "app", envFrom(secretRef("db"))))
	w.serveOrManage()
	first := w.pinnedAgain(kind, "app", "")
	good := snapshotOf(t, first)
	w.readyWith("app", good, pods)
	s := &corev1.Secret{}
	if err := w.get(s, good); err != nil || s.Immutable == nil || !*s.Immutable || string(s.Data["p"]) != "good" || s.Labels[native+"snapshot"] != "true" {
		t.Fatalf("the snapshot is %v %v %v", s.ObjectMeta, s.Immutable, err)
	}
	before := w.template(kind, "app").DeepCopy()
	if err := want("db", before.Spec.Containers[0].EnvFrom[0].SecretRef.Name); err != nil {
		t.Error(err)
	}

	w.secret("db", "p", "bad")
	bad := snapshotOf(t, w.pinnedAgain(kind, "app", first))
	w.failing("app", bad)
	old := 0
	for _, p := range w.live("app") {
		if p.Spec.Containers[0].EnvFrom[0].SecretRef.Name == good {
			old++
			w.remove(&corev1.Pod{}, p.Name)
		}
	}
	if kind != "StatefulSet" && old == 0 {
		t.Error("no Pod of the old revision is left")
	}
	if kind != "DaemonSet" { // its controller replaces a deleted Pod by one of the new revision
		w.readyWith("app", good, old)
	}

	w.undo(kind, "app", before)
	w.readyWith("app", good, pods)
	w.eventually(func() error { return want("ConfigUndone", string(w.explainKind(kind, "app").Reason)) })
	w.rests(func() {
		if err := want(first, w.pinsOf(kind, "app")); err != nil {
			t.Error(err)
		}
	})
	w.secret("db", "p", "good2")
	w.readyWith("app", snapshotOf(t, w.pinnedAgain(kind, "app", first)), pods)
}

func TestADeploymentKeepsItsConfig(t *testing.T)  { kept(t, "Deployment", 1) }
func TestAStatefulSetKeepsItsConfig(t *testing.T) { kept(t, "StatefulSet", 1) }
func TestADaemonSetKeepsItsConfig(t *testing.T)   { kept(t, "DaemonSet", 3) }

// secrets are the snapshots of the world.
func (w *world) snapshots() []string {
	w.t.Helper()
	list := &corev1.SecretList{}
	if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace), client.MatchingLabels{native + "snapshot": "true"}); err != nil {
		w.t.Fatal(err)
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// later is a clock by which every snapshot is old enough to be collected.
func later() time.Time { return time.Now().Add(2 * snapshots.Grace) }

// Fifty edits leave only the snapshots that revisions refer to, and none is left once the
// workload is deleted. What is not a snapshot stays, whatever its labels.
func TestSnapshotsAreCollected(t *testing.T) {
	w := newWorld(t)
	pinnable(w)
	w.options.Now, w.options.CoalesceWindow = later, 0
	w.secret("db", "p", "0")
	w.apply(replaceOnce(workload("Deployment", "app", envFrom(secretRef("db")), native+"pin-config", "true", native+"stop-on-failure", "false"), "replicas: 1", "replicas: 1\n  revisionHistoryLimit: 2"))
	w.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: mine, labels: {" + native + "snapshot: \"true\"}, annotations: {" + native + "snapshot-of: x/db}}\nimmutable: true")
	w.manage()
	pins := w.pinnedAgain("Deployment", "app", "")
	for i := range 50 {
		w.secret("db", "p", fmt.Sprint(i+1))
		pins = w.pinnedAgain("Deployment", "app", pins)
	}
	w.eventually(func() error {
		if got := w.snapshots(); len(got) > 4 || !slices.Contains(got, snapshotOf(t, pins)) { // two old revisions, the present one, and the one that is no snapshot
			return fmt.Errorf("there are %v", got)
		}
		return nil
	})
	w.remove(&appsv1.Deployment{}, "app")
	w.eventually(func() error { return want(fmt.Sprint([]string{"mine"}), fmt.Sprint(w.snapshots())) })
}

// A snapshot of the present content that is deleted by hand is written again; for another one
// there is a reason, and what to do.
func TestADeletedSnapshot(t *testing.T) {
	w := newWorld(t)
	pinnable(w)
	w.secret("db", "p", "1")
	w.apply(workload("Deployment", "app", envFrom(secretRef("db")), native+"pin-config", "true"))
	w.manage()
	pins := w.pinnedAgain("Deployment", "app", "")
	name := snapshotOf(t, pins)
	w.remove(&corev1.Secret{}, name)
	w.eventually(func() error { return w.get(&corev1.Secret{}, name) })
	w.annotate("app", native+"pause", "true")
	w.settled() // the manager has seen it
	w.secret("db", "p", "2")
	w.settled() // nothing but the deletion starts a pass
	w.remove(&corev1.Secret{}, name)
	w.saysEventually("app", "Secret "+name+", the snapshot of Secret db, not found")
	w.secret("db", "p", "1")
	w.eventually(func() error { return w.get(&corev1.Secret{}, name) })
	w.eventually(func() error { return want("", w.condition("app")) })
}

// Who opts out is not rolled, and its Pods still start. The next change removes the pins.
func TestOptingOutRollsNothing(t *testing.T) {
	w := newWorld(t)
	pinnable(w)
	w.options.Now = later
	w.secret("db", "p", "1")
	w.apply(workload("Deployment", "app", envFrom(secretRef("db")), native+"pin-config", "true"))
	w.manage()
	pins := w.pinnedAgain("Deployment", "app", "")
	w.readyWith("app", snapshotOf(t, pins), 1)
	w.settled()
	w.silent(func() { w.annotate("app", native+"pin-config", "-") })
	w.rests(func() {
		if err := errors.Join(want(pins, w.pinsOf("Deployment", "app")), w.get(&corev1.Secret{}, snapshotOf(t, pins))); err != nil {
			t.Error(err)
		}
	})
	w.secret("db", "p", "2")
	w.eventually(func() error { return want("", w.pinsOf("Deployment", "app")) })
	w.eventually(func() error { return want("", w.deploymentNow("app").Annotations[native+"config-answered"]) })
}

// Where pins are not enabled, the workload is rolled without, and it is said why.
func TestPinsThatAreNotEnabled(t *testing.T) {
	w := newWorld(t)
	w.configMap("app", "a", "1")
	w.apply(deployment("app", envFrom(configMapRef("app")), native+"pin-config", "true"))
	w.manage()
	w.hashed("app", "")
	w.saysEventually("app", "pins are not enabled in namespace "+w.namespace+"; install with --pin-namespaces="+w.namespace)
	if err := want("", w.pinsOf("Deployment", "app")); err != nil {
		t.Error(err)
	}
}

// What asks for pins and is not tracked has none, and explain says so.
func TestPinsOfAWorkloadThatIsNotTracked(t *testing.T) {
	w := newWorld(t)
	pinnable(w)
	w.secret("db", "p", "1")
	w.apply(replaceOnce(workload("Deployment", "app", envFrom(secretRef("db")), native+"pin-config", "true"), waveTracked, "example.com/other"))
	w.manage()
	w.rests(func() {
		e := w.explain("app")
		if err := errors.Join(want(config.StateNotTracked, e.State), want("[annotation spillway.dev/pin-config has no effect: the workload is not tracked]", fmt.Sprint(e.Unpinned)), want("", w.pinsOf("Deployment", "app"))); err != nil {
			t.Error(err)
		}
	})
}

// No Pod of a new workload starts without its pins, where admission answers; a manifest that
// replaces the workload keeps them.
func TestAdmittedWithPins(t *testing.T) {
	w := newWorld(t)
	pinnable(w)
	w.admit()
	started := w.watchStarts("web")
	w.secret("db", "p", "q")
	manifest := workload("Deployment", "web", envFrom(secretRef("db")), native+"pin-config", "true")
	w.apply(manifest)
	pins := w.pinnedAgain("Deployment", "web", "")
	w.eventually(func() error { return want(1, started()) })
	w.settledWith("web", 2) // the suspended one had no Pod that started
	for _, p := range w.live("web") {
		if err := want(snapshotOf(t, pins), p.Spec.Containers[0].EnvFrom[0].SecretRef.Name); err != nil {
			t.Error(err)
		}
	}
	w.update("web", func(d *appsv1.Deployment) {
		replaced := &appsv1.Deployment{}
		decodeInto(t, replaced, manifest)
		d.Spec.Template = replaced.Spec.Template
	})
	w.settled()
	if err := errors.Join(want(pins, w.pinsOf("Deployment", "web")), want(2, w.replicaSets("web")), want(1, started())); err != nil {
		t.Error(err)
	}
}

// A user asks to try what was undone: the workload is rolled forward again.
func TestARetryRollsWhatWasUndone(t *testing.T) {
	w := newWorld(t)
	pinnable(w)
	w.secret("db", "p", "1")
	w.apply(workload("Deployment", "app", envFrom(secretRef("db")), native+"pin-config", "true"))
	w.manage()
	first := w.pinnedAgain("Deployment", "app", "")
	before := w.template("Deployment", "app").DeepCopy()
	w.secret("db", "p", "2")
	second := w.pinnedAgain("Deployment", "app", first)
	w.undo("Deployment", "app", before)
	w.eventually(func() error { return want("ConfigUndone", string(w.explain("app").Reason)) })
	w.secret("db", "p", "1") // the undone content comes back later, and counts as a change then
	w.eventually(func() error { return want("UpToDate", string(w.explain("app").State)) })
	w.settled()
	w.secret("db", "p", "2")
	if err := want(second, w.pinnedAgain("Deployment", "app", first)); err != nil {
		t.Error(err)
	}
	w.undo("Deployment", "app", before)
	w.eventually(func() error { return want("ConfigUndone", string(w.explain("app").Reason)) })
	w.retry("db", time.Now().Add(time.Second))
	w.eventually(func() error { return want(second, w.pinsOf("Deployment", "app")) })
}

// The manager needs what the ring and the namespaces with pins grant it, and nothing else. A
// Pod that outlives its ReplicaSet keeps its snapshot, and so do revisions of a StatefulSet.
func TestPinsNeedExactlyTheirPermissions(t *testing.T) {
	w := newWorld(t)
	pinnable(w)
	w.options.Now, w.options.CoalesceWindow = later, 0
	ring, err := manifests.Rules([]string{manager.RingConfig})
	if err != nil {
		t.Fatal(err)
	}
	pins, err := manifests.PinRules(pin.In(w.namespace))
	if err != nil {
		t.Fatal(err)
	}
	user := "manager-of-" + w.namespace
	testenv.Grant(t, w.client, w.namespace, user, append(ring, pins...))
	w.secret("db", "p", "1")
	w.configMap("app", "a", "1")
	w.apply(
		replaceOnce(workload("Deployment", "app", envFrom(secretRef("db")), native+"pin-config", "true"), "replicas: 1", "replicas: 1\n  revisionHistoryLimit: 0"),
		workload("StatefulSet", "set", envFrom(configMapRef("app")), native+"pin-config", "true"),
		job("import", "ttlSecondsAfterFinished: 0"),
	)
	inj := fault.New()
	o := manager.Options{Rings: []string{manager.RingConfig}, Namespaces: w.options.Namespaces, Config: w.options}
	stop := w.barrier.Run(t, testenv.Shared().ConfigAs(user), inj, o)
	first, set := w.pinnedAgain("Deployment", "app", ""), w.pinnedAgain("StatefulSet", "set", "")
	w.eventually(func() error { return want(1, len(w.live("app"))) })
	orphan := w.live("app")[0]
	w.patch(&corev1.Pod{}, orphan.Name, `{"metadata":{"ownerReferences":null,"labels":{"app":"orphan"}}}`)
	w.secret("db", "p", "2")
	second := w.pinnedAgain("Deployment", "app", first)
	w.configMap("app", "a", "2")
	w.pinnedAgain("StatefulSet", "set", set)
	w.eventually(func() error { return want(1, w.replicaSets("app")) }) // the earlier one is not kept
	w.settled()
	for _, pins := range []string{first, second} {
		if err := w.get(&corev1.Secret{}, snapshotOf(t, pins)); err != nil {
			t.Error(err)
		}
	}
	if err := w.get(&corev1.ConfigMap{}, snapshotOf(t, set)); err != nil {
		t.Error("a revision of the StatefulSet refers to it:", err)
	}
	w.podOf("import")
	w.removeJob("import")
	w.remove(&corev1.Pod{}, orphan.Name)
	w.eventually(func() error { return want(fmt.Sprint([]string{snapshotOf(t, second)}), fmt.Sprint(w.snapshots())) })
	w.remove(&appsv1.StatefulSet{}, "set")
	w.eventually(func() error { return want(true, apierrors.IsNotFound(w.get(&corev1.ConfigMap{}, snapshotOf(t, set)))) })
	requests := func() []fault.Request {
		return testenv.Without(inj.Requests(), func(r fault.Request) bool { return strings.Contains(r.Resource, "secretproviderclass") })
	}
	testenv.AllUsed(t, testenv.Permissions(pins), requests)
	testenv.NoneElse(t, testenv.Permissions(append(ring, pins...)), requests())
	stop()
}
