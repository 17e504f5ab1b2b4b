package config_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config"
	workloads "github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/rollout"
)

// The defects of wave, by their numbers. The first, payloads in
// memory, is measured in bench and pinned down in digest_test.go.

// Defect 2: the throttle blocked the only worker, and a restart refilled it.
func TestDefect2TheRateBlocksNothingElseAndSurvivesARestart(t *testing.T) {
	w := newWorld(t)
	w.options.UpdateRate, w.options.UpdateBurst = 1.0/3600, 1
	w.configMap("app", "a", "1")
	w.apply(deployment("a", envFrom(configMapRef("app"))))
	w.manage()
	w.hashed("a", "")
	w.apply(deployment("b", envFrom(configMapRef("app"))))
	w.eventually(func() error { return want("RateLimited", string(w.explain("b").Reason)) })
	w.halt()
	w.manage()
	// What takes no token is not kept waiting, also not by a new manager.
	w.apply(deployment("c", envFrom(secretRef("none"))))
	w.saysEventually("c", "Secret none not found")
	if h := w.hash("b"); h != "" {
		t.Error("a restart refilled the bucket")
	}
	if p := w.explain("b").Position; p != 1 {
		t.Errorf("b is number %d in the queue, want 1", p)
	}
}

// Defect 3: the whole object was written, over what others had changed meanwhile.
func TestDefect3OnlyOurAnnotationsAreWritten(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.configMap("app", "a", "1")
	w.apply(deployment("web", envFrom(configMapRef("app"))))
	w.hashed("web", "")
	for _, f := range w.deploymentNow("web").ManagedFields {
		if f.Manager != "spillway" {
			continue
		}
		if owned := f.FieldsV1.GetRawString(); strings.Contains(owned, "f:replicas") || strings.Contains(owned, "f:containers") {
			t.Errorf("the manager owns %s", owned)
		}
	}
	for _, write := range writesIn(w.requests.take()) {
		if !strings.HasPrefix(write, "PATCH ") && !strings.Contains(write, "/configrollouts") {
			t.Errorf("the manager wrote by %s", write)
		}
	}
}

// Defect 4: restricted to namespaces, it got in the way elsewhere.
func TestDefect4OtherNamespacesAreLeftAlone(t *testing.T) {
	w, elsewhere := newWorld(t), newNamespace(t)
	w.manage()
	foreign := deployment("web", "containers: [{name: c, image: x}]")
	w.apply(strings.Replace(foreign, "{name: web, ", "{name: web, namespace: "+elsewhere+", ", 1))
	w.apply(deployment("mine", "containers: [{name: c, image: x}]", native+"extra-secrets", elsewhere+"/s"))
	w.saysEventually("mine", "Secret "+elsewhere+"/s is in a namespace that the manager does not watch; add it to --namespaces")
	w.settled()
	for _, request := range w.requests.take() {
		if strings.Contains(request, elsewhere) {
			t.Errorf("the manager asked for %s", request)
		}
	}
}

// Defect 5: opting out while suspended left a workload suspended for ever, and
// so did an apply that removed the marker.
func TestDefect5NoWorkloadStaysSuspended(t *testing.T) {
	suspended := func(manifest string) string {
		return replaceOnce(manifest, "    spec:\n      ", "    spec:\n      schedulerName: "+waveScheduler+"\n      ")
	}
	for name, test := range map[string]struct {
		prepare   func(*world) string
		scheduler string
		hash      bool
	}{
		"released once its config exists": {func(*world) string {
			return suspended(deployment("web", envFrom(configMapRef("app")), "wave.pusher.com/scheduling-disabled", "my-scheduler"))
		}, "my-scheduler", true},
		"the marker was removed": {func(*world) string {
			return suspended(deployment("web", envFrom(configMapRef("app"))))
		}, "default-scheduler", true},
		"tracking was switched off": {func(*world) string {
			manifest := suspended(deployment("web", envFrom(configMapRef("app")), "wave.pusher.com/scheduling-disabled", "my-scheduler"))
			return replaceOnce(manifest, waveTracked+`: "true"`, waveTracked+`: "false"`)
		}, "my-scheduler", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.manage()
			w.apply(test.prepare(w))
			if test.hash {
				w.saysEventually("web", "ConfigMap app not found")
				if got := w.deploymentNow("web").Spec.Template.Spec.SchedulerName; got != waveScheduler {
					t.Errorf("released too early, to %q", got)
				}
			}
			w.requests.take()
			w.configMap("app", "a", "1")
			w.eventually(func() error { return want(test.scheduler, w.deploymentNow("web").Spec.Template.Spec.SchedulerName) })
			d := w.deploymentNow("web")
			if _, marked := d.Annotations["wave.pusher.com/scheduling-disabled"]; marked {
				t.Error("the marker still exists")
			}
			if hashed := d.Spec.Template.Annotations[waveHash] != ""; hashed != test.hash {
				t.Errorf("hashed: %v, want %v", hashed, test.hash)
			}
			writes := slices.DeleteFunc(writesIn(w.requests.take()), func(write string) bool { return strings.Contains(write, "/configrollouts") })
			if len(writes) > 1 {
				t.Errorf("released in more than one write: %v", writes)
			}
		})
	}
}

// Defect 6: two objects of one name in two namespaces shared a slot.
func TestDefect6NamesakesDoNotMaskOneAnother(t *testing.T) {
	w, other := newWorld(t), newNamespace(t)
	w.options.Namespaces, w.options.AllowCrossNamespace = append(w.options.Namespaces, other), true
	w.manage()
	foreign := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app, namespace: " + other + "}\ndata: {k: %q}"
	w.configMap("app", "k", "1")
	w.apply(fmt.Sprintf(foreign, "1"))
	w.apply(deployment("web", envFrom(configMapRef("app")), native+"extra-configmaps", other+"/app"))
	first := w.hashed("web", "")
	w.apply(fmt.Sprintf(foreign, "2"))
	second := w.hashed("web", first)
	w.configMap("app", "k", "3")
	w.hashed("web", second)
}

// Defect 7: five ConfigMaps changed one after the other gave five rolls.
func TestDefect7ChangesInARowAreOneRoll(t *testing.T) {
	w := newWorld(t)
	w.options.CoalesceWindow = time.Hour // no load makes it pass
	w.manage()
	var refs []string
	for i := range 5 {
		name := fmt.Sprintf("app-%d", i)
		w.configMap(name, "a", "1")
		refs = append(refs, configMapRef(name))
	}
	w.apply(deployment("web", envFrom(refs...)))
	first := w.hashed("web", "")
	for i := range 5 {
		w.configMap(fmt.Sprintf("app-%d", i), "a", "2")
	}
	w.settled()
	w.barrier.Step(t, time.Hour)
	w.hashed("web", first)
	w.settled()
	w.settledWith("web", 3)
	changed := w.explain("web").LastRoll.Changed
	if len(changed) != 5 || changed[0] != "ConfigMap app-0: a" {
		t.Errorf("changed = %v", changed)
	}
}

// Defect 8: Events carried no UID, so that describing the workload hid them.
func TestDefect8EventsBelongToTheWorkload(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.apply(deployment("web", envFrom(configMapRef("app"))))
	w.saysEventually("web", "ConfigMissing")
	w.configMap("app", "a", "1")
	hash := w.hashed("web", "")
	uid := w.deploymentNow("web").UID
	for reason, note := range map[string]string{
		"ConfigMissing": "ConfigMap app not found", "ConfigChanged": "Configuration hash updated to " + hash,
	} {
		w.eventually(func() error {
			events := w.events(reason)
			if len(events) != 1 || events[0].InvolvedObject.UID != uid || events[0].Message != note {
				return fmt.Errorf("%s: %+v", reason, events)
			}
			return nil
		})
	}
}

// Defect 9: every status update of every workload cost a pass over all watches.
func TestDefect9StatusUpdatesAskForNothing(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.configMap("app", "a", "1")
	w.apply(deployment("web", envFrom(configMapRef("app"))))
	w.hashed("web", "")
	w.settledWith("web", 2)
	w.requests.take()
	for i := range 20 {
		d := w.deploymentNow("web")
		d.Status.CollisionCount = new(int32)
		*d.Status.CollisionCount = int32(i)
		if err := w.client.Status().Update(t.Context(), d); err != nil && !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
	}
	w.rests(func() {})
}

// Defect 10: an optional object that appears without the wanted key rolled.
// What only init containers use was missed: see TestEveryReferenceRolls.
func TestDefect10WhatBringsNothingRollsNothing(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.apply(deployment("web", "containers: [{name: c, image: x, env: [{name: E, valueFrom: {configMapKeyRef: {name: app, key: k, optional: true}}}]}]"))
	first := w.hashed("web", "")
	w.configMap("app", "other", "1")
	w.settled()
	if err := want(first, w.hash("web")); err != nil {
		t.Error(err)
	}
	w.halt()
	w.manage() // and nothing is made of it by a manager that has seen only this
	w.settled()
	if err := want(first, w.hash("web")); err != nil {
		t.Error(err)
	}
	w.configMap("app", "other", "1", "k", "1")
	w.hashed("web", first)
}

// Defect 11: a required object deleted later was silent.
func TestDefect11WhatIsDeletedLaterIsMissed(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.configMap("app", "a", "1")
	w.apply(deployment("web", envFrom(configMapRef("app"))))
	first := w.hashed("web", "")
	w.remove(&corev1.ConfigMap{}, "app")
	w.saysEventually("web", "ConfigMap app not found")
	w.eventually(func() error { return want(1, len(w.events("ConfigMissing"))) })

	w.configMap("app", "a", "1") // the same again
	w.eventually(func() error { return want("", w.condition("web")) })
	if err := want(first, w.hash("web")); err != nil {
		t.Error(err)
	}
	w.remove(&corev1.ConfigMap{}, "app")
	w.saysEventually("web", "ConfigMap app not found")
	w.configMap("app", "a", "2")
	w.hashed("web", first)
	w.settled()
	w.settledWith("web", 3)
}

// Defect 12: a malformed extra entry was dropped in silence.
func TestDefect12MalformedEntriesAreReported(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.configMap("app", "a", "1")
	w.apply(deployment("web", envFrom(configMapRef("app")), "wave.pusher.com/extra-configmaps", "a/b/c,,app"))
	w.saysEventually("web", `"reason":"InvalidAnnotation"`)
	w.hashed("web", "")
	problems := w.explain("web").Problems
	if len(problems) != 2 || !strings.Contains(problems[0], `annotation wave.pusher.com/extra-configmaps: invalid value "a/b/c": must be "name" or "namespace/name"`) {
		t.Errorf("problems = %q", problems)
	}
	w.annotate("web", "wave.pusher.com/extra-configmaps", "app")
	w.eventually(func() error { return want("", w.condition("web")) })
}

// Finalizers and owner references of old versions go; those of others stay.
func TestOldInstallsAreCleanedUp(t *testing.T) {
	w := newWorld(t)
	w.configMap("app", "a", "1")
	w.secret("db", "p", "q")
	w.apply(deployment("web", envFrom(configMapRef("app"), secretRef("db"))), deployment("owner", "containers: [{name: c, image: x}]"))
	d, other := w.deploymentNow("web"), w.deploymentNow("owner")
	ref := func(name string, uid types.UID) string {
		return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","name":%q,"uid":%q,"blockOwnerDeletion":true}`, name, uid)
	}
	w.patch(&corev1.ConfigMap{}, "app", `{"metadata":{"ownerReferences":[`+ref("owner", other.UID)+`,`+ref("web", d.UID)+`]}}`)
	w.patch(&corev1.Secret{}, "db", `{"metadata":{"ownerReferences":[`+ref("web", d.UID)+`]}}`)
	w.patch(d, "web", `{"metadata":{"finalizers":["wave.pusher.com/finalizer","example.test/other"]}}`)
	w.manage()
	w.eventually(func() error { return want("[example.test/other]", fmt.Sprint(w.deploymentNow("web").Finalizers)) })
	app, db := &corev1.ConfigMap{}, &corev1.Secret{}
	if err := w.get(app, "app"); err != nil || len(app.OwnerReferences) != 1 || app.OwnerReferences[0].Name != "owner" {
		t.Errorf("owners of the ConfigMap: %v, %v", app.OwnerReferences, err)
	}
	if err := w.get(db, "db"); err != nil || len(db.OwnerReferences) != 0 {
		t.Errorf("owners of the Secret: %v, %v", db.OwnerReferences, err)
	}
}

func (w *world) patch(obj client.Object, name, patch string) {
	w.t.Helper()
	obj.SetNamespace(w.namespace)
	obj.SetName(name)
	if err := w.client.Patch(w.t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		w.t.Fatal(err)
	}
}

// Converged is quiet: forced resyncs and unused changes ask for nothing.
func TestConvergedIsQuiet(t *testing.T) {
	w := newWorld(t)
	w.configMap("app", "a", "1")
	w.apply(deployment("web", envFrom(configMapRef("app"))))
	w.manage(func(o *manager.Options) { o.SyncPeriod = time.Second })
	w.hashed("web", "")
	w.settledWith("web", 2)
	w.settled()
	w.requests.take()
	for i := range 40 {
		w.configMap("unused", "a", fmt.Sprint(i))
		w.secret("unused", "a", fmt.Sprint(i))
		w.settledWith("web", 2)
	}
	if asked := w.requests.take(); len(asked) > 0 {
		t.Errorf("the manager asked for %v", asked)
	}
	w.rests(func() {})
}

// A budget of one: at no instant do two roll, and the more important go first.
func TestTheBudgetAndItsQueue(t *testing.T) {
	w := newWorld(t)
	w.options.MaxRolling = 1
	w.configMap("app", "a", "1")
	for i, name := range []string{"low", "middle", "high"} {
		d := deployment(name, envFrom(configMapRef("app")), native+"priority", fmt.Sprint(i))
		w.apply(replaceOnce(d, "    metadata: {labels:", "    metadata: {annotations: {testenv.spillway.dev/behavior: never-ready}, labels:"))
		w.becomesReady(name)
		w.settledWith(name, 1)
	}
	w.manage()
	w.settled()
	if e := w.explain("low"); e.Position != 2 || !strings.Contains(e.Sentence, "Deployment low is queued (position 2): 1 of 1 allowed unavailable") {
		t.Errorf("position %d: %s", e.Position, e.Sentence)
	}
	for i, name := range []string{"high", "middle", "low"} {
		w.hashed(name, "")
		w.settled()
		for _, next := range []string{"middle", "low"}[i:] {
			if w.hash(next) != "" {
				t.Errorf("%s rolls while %s is not ready", next, name)
			}
		}
		w.becomesReady(name)
		w.settledWith(name, 2)
	}
}

// becomesReady has the Pod of an app that runs and is not ready become so.
func (w *world) becomesReady(app string) {
	w.t.Helper()
	w.eventually(func() error {
		for _, p := range w.live(app) {
			if p.Status.Phase != corev1.PodRunning || isReady(&p) {
				continue
			}
			for i := range p.Status.Conditions {
				p.Status.Conditions[i].Status = corev1.ConditionTrue
			}
			return w.client.Status().Update(w.t.Context(), &p)
		}
		return fmt.Errorf("no Pod of %s runs that is not ready", app)
	})
}

// What does not come through says so for as long as it does not: nothing is written for
// that, it takes no place in the budget, and it rolls once its config is fixed.
func TestARollThatDoesNotComplete(t *testing.T) {
	w := newWorldNow(t) // beside the others of the package it did not see the failure, twice
	w.configMap("app", "a", "1")
	d := deployment("web", envFrom(configMapRef("app")))
	d = replaceOnce(d, "  replicas: 1\n", "  replicas: 1\n  progressDeadlineSeconds: 1\n")
	w.apply(replaceOnce(d, "    metadata: {labels:", "    metadata: {annotations: {testenv.spillway.dev/behavior: never-ready}, labels:"))
	w.manage()
	broken := w.hashed("web", "")
	w.halt()
	w.options.Now, w.options.MaxRolling = func() time.Time { return time.Now().Add(11 * time.Minute) }, 1
	w.eventually(func() error { return want(rollout.ReasonFailed, w.explain("web").Reason) })
	w.manage()
	w.settled() // it records that it is late
	if e := w.explain("web"); e.State != config.StateLate || e.Sentence != "Deployment web failed" {
		t.Errorf("it is %s: %s", e.State, e.Sentence)
	}
	w.rests(func() {})
	w.configMap("app", "a", "2")
	w.hashed("web", broken)
}

// What users choose.
func TestChoices(t *testing.T) {
	t.Run("ignoring rolls nothing, and neither does what is ignored", func(t *testing.T) {
		w := newWorld(t)
		w.manage()
		w.configMap("app", "a", "1", "noise", "1")
		w.secret("db", "p", "1")
		w.apply(deployment("web", envFrom(configMapRef("app"), secretRef("db"))))
		first := w.hashed("web", "")
		w.annotate("web", native+"ignore-configmaps", "app:noise")
		w.settled()
		w.annotate("web", native+"ignore-secrets", "db") // and then some more
		w.settled()
		w.configMap("app", "a", "1", "noise", "2")
		w.secret("db", "p", "2")
		w.settled()
		if err := want(first, w.hash("web")); err != nil {
			t.Error(err)
		}
		w.configMap("app", "a", "2", "noise", "2")
		w.hashed("web", first)
	})
	t.Run("an object can ask to be ignored", func(t *testing.T) {
		w := newWorld(t)
		w.manage()
		w.configMap("app", "a", "1")
		w.apply(deployment("web", envFrom(configMapRef("app"))))
		first := w.hashed("web", "")
		w.patch(&corev1.ConfigMap{}, "app", `{"metadata":{"annotations":{"spillway.dev/ignore":"true"}}}`)
		w.settled()
		w.patch(&corev1.ConfigMap{}, "app", `{"data":{"a":"2"}}`)
		w.settled()
		if err := want(first, w.hash("web")); err != nil {
			t.Error(err)
		}
	})
	t.Run("a pause holds, and its end is one roll", func(t *testing.T) {
		w := newWorld(t)
		w.manage()
		w.configMap("app", "a", "1")
		w.apply(deployment("web", envFrom(configMapRef("app"))))
		first := w.hashed("web", "")
		w.annotate("web", native+"pause", "true")
		w.configMap("app", "a", "2")
		w.configMap("app", "a", "3")
		w.settled()
		if err := want(first, w.hash("web")); err != nil {
			t.Error(err)
		}
		if e := w.explain("web"); e.State != config.StateWaiting || e.Reason != "Paused" {
			t.Errorf("explained as %+v", e)
		}
		w.annotate("web", native+"pause", "-")
		w.hashed("web", first)
		w.settled()
		w.settledWith("web", 3)
	})
}

// Input at the edge of what the API server takes.
func TestEdgesOfConfig(t *testing.T) {
	many := []string{}
	for i := range 5000 {
		many = append(many, fmt.Sprintf("key-%04d", i), "v")
	}
	for name, test := range map[string][2][]string{
		"a ConfigMap of nearly 1 MiB": {{"big", strings.Repeat("x", 1000*1000)}, {"big", strings.Repeat("y", 1000*1000)}},
		"5,000 keys":                  {many, append(many[:len(many)-2:len(many)-2], "key-4999", "w")},
		"unicode and control":         {{"a", "grüße 🌊\x00\t\r\n"}, {"a", "grüße 🌊\x00\t\r\n "}},
		"every character of a key":    {{"-._aZ09", "1"}, {"-._aZ09", "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.manage()
			w.configMap("app", test[0]...)
			w.apply(deployment("web", "containers: [{name: c, image: x}]\nvolumes: [{name: v, configMap: {name: app}}]"))
			first := w.hashed("web", "")
			w.configMap("app", test[1]...)
			second := w.hashed("web", first)
			contents := map[string]string{}
			for i := 0; i < len(test[1]); i += 2 {
				contents[test[1][i]] = test[1][i+1]
			}
			if err := want(wantHash(t, values{"app": contents}, nil), second); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("binary data", func(t *testing.T) {
		w := newWorld(t)
		w.manage()
		w.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\nbinaryData: {b: AP8=}\ndata: {a: x}")
		w.apply(deployment("web", envFrom(configMapRef("app"))))
		if err := want(wantHash(t, values{"app": {"a": "x", "b": "\x00\xff"}}, nil), w.hashed("web", "")); err != nil {
			t.Error(err)
		}
	})
	t.Run("deleted and recreated", func(t *testing.T) {
		w := newWorld(t)
		w.manage()
		w.configMap("app", "a", "1")
		w.apply(deployment("web", envFrom(configMapRef("app"))))
		first := w.hashed("web", "")
		w.remove(&corev1.ConfigMap{}, "app")
		w.configMap("app", "a", "2")
		w.hashed("web", first)
	})
}

// A write that another admission webhook refuses is retried with back-off, and does
// not delay other workloads.
func TestAWriteThatIsRefused(t *testing.T) {
	w := newWorld(t)
	w.configMap("app", "a", "1")
	policy := "refuse-" + w.namespace
	w.apply(strings.ReplaceAll(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: POLICY}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAMESPACE}}
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [UPDATE], resources: [deployments]}]
  matchConditions: [{name: stuck, expression: "object.metadata.name == 'stuck'"}]
  validations: [{expression: "!has(object.spec.template.metadata.annotations)", message: this one must not roll}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: POLICY}
spec: {policyName: POLICY, validationActions: [Deny]}`, "POLICY", policy))
	w.patch(&admissionv1.ValidatingAdmissionPolicy{}, policy, fmt.Sprintf(
		`{"spec":{"matchConstraints":{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":%q}}}}}`, w.namespace))
	w.apply(deployment("stuck", envFrom(configMapRef("app"))), deployment("free", envFrom(configMapRef("app"))))
	w.eventually(func() error { // the policy is in force
		d := w.deploymentNow("stuck")
		d.Spec.Template.Annotations = map[string]string{"probe": "1"}
		if err := w.client.Update(t.Context(), d, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "this one must not roll") {
			return fmt.Errorf("not refused: %w", err)
		}
		return nil
	})
	w.manage()
	w.hashed("free", "")
	w.settled()
	if tries := len(writesIn(w.requests.take())); tries > 20 {
		t.Errorf("%d writes: it tries again and again", tries)
	}
	for _, obj := range []client.Object{&admissionv1.ValidatingAdmissionPolicyBinding{}, &admissionv1.ValidatingAdmissionPolicy{}} {
		obj.SetName(policy)
		if err := w.client.Delete(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	w.hashed("stuck", "")
}

// What cannot be read is reported, and retried.
func TestWithoutPermission(t *testing.T) {
	w := newWorld(t)
	w.configMap("app", "a", "1")
	w.apply(deployment("web", envFrom(configMapRef("app"))))
	reader := testenv.Shared().ConfigAs("a-reader")
	c := clientFor(t, reader)
	_, err := config.Explain(t.Context(), c, w.options, workloads.Name{Kind: "Deployment", Namespace: w.namespace, Name: "web"})
	if !apierrors.IsForbidden(err) {
		t.Errorf("explain without any permission: %v", err)
	}
	w.apply(`apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: workloads}
rules: [{apiGroups: [apps], resources: [deployments, statefulsets, daemonsets], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: workloads}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: workloads}
subjects: [{kind: User, name: a-reader, apiGroup: rbac.authorization.k8s.io}]`)
	w.eventually(func() error {
		e, err := config.Explain(t.Context(), c, w.options, workloads.Name{Kind: "Deployment", Namespace: w.namespace, Name: "web"})
		if err != nil {
			return err
		}
		return want("Deployment web is waiting: its state is not known, because ConfigRollouts cannot be read", e.Sentence)
	})
}
