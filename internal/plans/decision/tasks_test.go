package decision

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/execution"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/write"
)

// onePlan is a package whose deploy plan has one step with these tasks.
func onePlan(rest string, names ...string) string {
	return fmt.Sprintf("plans: {deploy: {strategy: serial, phases: [{name: p, strategy: serial, steps: [{name: s, tasks: [%s]}]}]}}\n%s", strings.Join(names, ", "), rest)
}

func ref(apiVersion, kind, name string) object.Ref {
	return object.Ref{GroupVersionKind: schema.FromAPIVersionAndKind(apiVersion, kind), Namespace: "shop", Name: name}
}

// put creates an object in the world as another client.
func (w *world) put(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	u.SetNamespace("shop")
	u.SetUID("foreign")
	w.objects[object.RefOf(u)] = u
	return u
}

func (w *world) waitsFor() string { _, p := w.decide(); return p.Sentence }

func (w *world) told() string { return strings.Join(w.story, ", ") }

func (w *world) deploy() v1beta1.StepStatus {
	return w.instance.Status.PlanStatus["deploy"].Phases[0].Steps[0]
}

const applying = `
tasks: [{name: t, kind: Apply, spec: {resources: [a.yaml, b.yaml]}}]
templates:
  a.yaml: |
    {apiVersion: apps/v1, kind: Deployment, metadata: {name: app, annotations: {spillway.dev/on-immutable: "%s"}}, spec: {replicas: 1, template: {spec: {}}}}
    ---
    # nothing
    ---
    {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}
  b.yaml: |
    apiVersion: v1
    kind: List
    items:
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: elsewhere}}
    - {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}}
    - {apiVersion: v1, kind: Namespace, metadata: {name: ns}}
`

func TestApply(t *testing.T) {
	w := newWorld(t, onePlan(applying, "t"))
	w.settle(t)
	if got := w.told(); got != "create Namespace ns, create ConfigMap b, create ConfigMap a, create ClusterRole r, create Deployment app" {
		t.Error(got)
	}
	u := w.objects[ref("apps/v1", "Deployment", "app")]
	if u == nil {
		t.Fatal(w.told())
	}
	for path, want := range map[string]string{
		"metadata.labels": "map[heritage:kudo kudo.dev/instance:web kudo.dev/operator:app]",
		"metadata.annotations": "map[kudo.dev/last-plan-execution-uid:uid-1 kudo.dev/phase:p kudo.dev/plan:deploy kudo.dev/step:s " +
			"spillway.dev/instance:shop/web spillway.dev/on-immutable:%s spillway.dev/update-on-config-change:true]",
		"metadata.ownerReferences":           "[map[apiVersion:kudo.dev/v1beta1 blockOwnerDeletion:true controller:true kind:Instance name:web uid:web]]",
		"spec.template.metadata.labels":      "map[heritage:kudo kudo.dev/instance:web kudo.dev/operator:app]",
		"spec.template.metadata.annotations": "map[kudo.dev/operator-version:]",
	} {
		got, _, _ := unstructured.NestedFieldNoCopy(u.Object, strings.Split(path, ".")...)
		if fmt.Sprint(got) != want {
			t.Errorf("%s = %v, want %s", path, got, want)
		}
	}
	role := w.objects[object.Ref{GroupVersionKind: schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, Name: "r"}]
	if role == nil || len(role.GetOwnerReferences()) > 0 || role.GetLabels()["heritage"] != "kudo" {
		t.Errorf("%v", role)
	}
	if n := len(w.instance.Status.Inventory); n != 5 {
		t.Errorf("%d objects in the inventory", n)
	}
}

// TestWhatOthersLiveIn checks that a CustomResourceDefinition is established before
// objects of its kind are applied.
func TestWhatOthersLiveIn(t *testing.T) {
	w := newWorld(t, onePlan(`
tasks: [{name: t, kind: Apply, spec: {resources: [a.yaml]}}]
templates:
  a.yaml: |
    {apiVersion: example.com/v1, kind: Thing, metadata: {name: thing}}
    ---
    {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.example.com}}
`, "t"))
	w.unknown[schema.GroupKind{Group: "example.com", Kind: "Thing"}] = true
	w.settle(t)
	if got := w.told(); got != "create CustomResourceDefinition things.example.com" {
		t.Fatal(got)
	}
	if !strings.HasPrefix(w.waitsFor(), "task t is updating: waiting for CustomResourceDefinition things.example.com: ") {
		t.Error(w.waitsFor())
	}
	for _, u := range w.objects {
		u.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
	}
	clear(w.unknown)
	w.settle(t)
	if got := w.plans(); got != "deploy Complete" {
		t.Error(got, w.waitsFor())
	}
}

func TestAKindThatIsNotKnownIsTriedAgain(t *testing.T) {
	w := newWorld(t, onePlan(applying, "t"))
	gk := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	w.unknown[gk] = true
	w.settle(t)
	if s := w.deploy(); s.Status != v1beta1.Error || s.Message != "unknown kind Deployment.apps; install its CustomResourceDefinition" || s.Attempts != 1 {
		t.Errorf("%+v", s)
	}
	w.now = w.now.Add(time.Second)
	w.settle(t)
	if s := w.deploy(); s.Attempts != 2 || !s.RetryAt.Time.Equal(w.now.Add(2*time.Second)) {
		t.Errorf("%+v", s)
	}
	clear(w.unknown)
	w.now = w.now.Add(2 * time.Second)
	w.settle(t)
	if got := w.plans(); got != "deploy Complete" {
		t.Error(got, w.waitsFor())
	}
}

// TestAKindThatNeverExistsDoesNotLockTheInstance: the plan fails for good after a while,
// measured from its first failure, and the Instance can be changed.
func TestAKindThatNeverExistsDoesNotLockTheInstance(t *testing.T) {
	w := newWorld(t, onePlan(applying, "t"))
	w.unknown[schema.GroupKind{Group: "apps", Kind: "Deployment"}] = true
	w.settle(t)
	for began := w.now; w.plans() == ""; {
		_, p := w.decide()
		if w.now = p.Wake; w.now.Sub(began) > 10*time.Minute {
			t.Fatalf("it is retried at %s: %s", w.now.Sub(began), w.waitsFor())
		}
		w.settle(t)
	}
	const want = "plan deploy failed: task t failed: not updated after 10m (progress deadline): unknown kind Deployment.apps; install its CustomResourceDefinition"
	if got := w.waitsFor(); got != want || w.plans() != "deploy Failed" {
		t.Errorf("%s\n%s", w.plans(), got)
	}
}

func TestAForeignObjectIsNotTakenOver(t *testing.T) {
	w := newWorld(t, onePlan(applying, "t"))
	u := w.put(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {some: annotation}}}`)
	w.settle(t)
	if got := w.waitsFor(); got != "task t is waiting: ConfigMap a exists and does not belong to Instance web; to adopt it, annotate it with spillway.dev/adopt=true" {
		t.Error(got)
	}
	if s := w.deploy(); s.Status != v1beta1.Error || s.RetryAt != nil {
		t.Errorf("%+v", s)
	}
	w.now = w.now.Add(time.Hour)
	if w.pass() {
		t.Error("it writes though nothing changed")
	}
	u.SetAnnotations(map[string]string{"spillway.dev/adopt": "true"})
	w.settle(t)
	if got := w.plans(); got != "deploy Complete" {
		t.Error(got, w.waitsFor())
	}
}

// TestRefusals: each try that fails is written down once, and the next one is
// later and later.
// TestWhatMayNotBeLookedAt: a task does nothing while it may not look at all that it
// takes, says so, and tries again later.
func TestWhatMayNotBeLookedAt(t *testing.T) {
	w := newWorld(t, simple, strings.ReplaceAll(simple, "name: app}", "name: other}"))
	deployments := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	w.forbidden = map[schema.GroupKind]bool{deployments: true}
	w.settle(t)
	if got := w.waitsFor(); !strings.Contains(got, "no permission to read Deployment app") || len(w.objects) > 0 {
		t.Errorf("%q, %v", got, w.story)
	}
	if _, p := w.decide(); p.Wake.IsZero() || p.Wake.After(w.now.Add(execution.Retries().First)) {
		t.Errorf("it wakes at %s", p.Wake)
	}
	w.forbidden, w.now = nil, w.now.Add(execution.Retries().First)
	w.settle(t)
	if got := w.plans(); got != "deploy Complete" {
		t.Fatal(got)
	}
	w.forbidden = map[schema.GroupKind]bool{deployments: true}
	if _, p := w.decide(); !p.Wake.Equal(w.now.Add(execution.Retries().Most)) || !strings.Contains(p.Sentence, "no permission to read") {
		t.Errorf("idle, it wakes at %s and says %q", p.Wake, p.Sentence)
	}
}

func TestRefusals(t *testing.T) {
	w := newWorld(t, onePlan(applying, "t"))
	cm := ref("v1", "ConfigMap", "a")
	w.refuses[cm] = write.Refusal{Reason: "forbidden"}
	w.settle(t)
	s := w.deploy()
	if s.Status != v1beta1.Error || s.Message != "ConfigMap a: forbidden" || s.Attempts != 1 {
		t.Errorf("%+v", s)
	}
	for i := range 12 {
		w.now = s.RetryAt.Time
		before := w.statuses
		w.settle(t)
		if s = w.deploy(); int(s.Attempts) != i+2 || w.statuses != before+1 {
			t.Fatalf("%d statuses, %+v", w.statuses-before, s)
		}
	}
	if wait := s.RetryAt.Sub(w.now).Truncate(time.Second); wait != execution.Retries().Most {
		t.Errorf("it waits %s", wait)
	}
	clear(w.refusals)
	if _, p := w.decide(); len(p.Writes) > 0 || !p.Wake.Equal(s.RetryAt.Time) {
		t.Error("a manager that has just started does not wait")
	}
	clear(w.refuses)
	w.now = s.RetryAt.Time
	w.settle(t)
	if got := w.plans(); got != "deploy Complete" || w.deploy().Attempts != 0 {
		t.Error(got, w.deploy())
	}
}

func TestARefusalForGood(t *testing.T) {
	w := newWorld(t, onePlan(applying, "t"))
	w.refuses[ref("v1", "ConfigMap", "a")] = write.Refusal{Reason: "ConfigMap a is no ConfigMap", Fatal: true}
	w.settle(t)
	if got := w.waitsFor(); got != "plan deploy failed: ConfigMap a is no ConfigMap" || w.deploy().Status != v1beta1.FatalError {
		t.Error(got, w.deploy())
	}
}

func TestImmutableFields(t *testing.T) {
	for policy, want := range map[string]string{"recreate": "deploy Complete, deploy Complete", "fail": "deploy Complete, deploy Failed"} {
		w := newWorld(t, onePlan(strings.Replace(applying, "%s", policy, 1), "t"))
		w.settle(t)
		app := ref("apps/v1", "Deployment", "app")
		before := w.objects[app].GetUID()
		w.refuses[app] = write.Refusal{Reason: "field is immutable", Immutable: before}
		w.set(func(s *v1beta1.InstanceSpec) { s.PlanExecution.PlanName = "deploy" })
		for range 50 {
			w.pass()
			if w.objects[app] == nil {
				clear(w.refuses) // a new object may be what it likes
			}
		}
		if got := w.plans(); got != want {
			t.Errorf("%s: %s; %s", policy, got, w.waitsFor())
		}
		if recreated := w.objects[app].GetUID() != before; recreated != (policy == "recreate") {
			t.Errorf("%s: recreated %v", policy, recreated)
		}
	}
}

// TestARefusalIsNotAboutTheSuccessor checks that a refusal is about one object: an object
// that another client has created in its place is not deleted for a change that the
// refused one did not allow. Otherwise two managers that run at the same time each delete
// what the other has just created.
func TestARefusalIsNotAboutTheSuccessor(t *testing.T) {
	w := newWorld(t, onePlan(strings.Replace(applying, "%s", "recreate", 1), "t"))
	w.settle(t)
	w.refuses[ref("apps/v1", "Deployment", "app")] = write.Refusal{Reason: "field is immutable", Immutable: "the replaced object"}
	w.set(func(s *v1beta1.InstanceSpec) { s.PlanExecution.PlanName = "deploy" })
	for range 5 {
		w.pass()
	}
	if len(w.refusals) == 0 {
		t.Fatal("nothing was refused")
	}
	clear(w.refuses)
	w.settle(t)
	if got := w.plans(); got != "deploy Complete, deploy Complete" || strings.Contains(w.told(), "delete") {
		t.Error(got, w.told())
	}
}

func TestDelete(t *testing.T) {
	w := newWorld(t, onePlan(strings.Replace(applying, "kind: Apply", "kind: Delete", 1), "t"))
	w.unknown[schema.GroupKind{Group: "apps", Kind: "Deployment"}] = true
	u := w.put(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {spillway.dev/instance: shop/web}, deletionTimestamp: "2026-05-04T12:00:00Z", finalizers: [x]}}`)
	w.settle(t)
	if got := w.waitsFor(); got != "task t is updating: waiting for ConfigMap a to be deleted; it has the finalizer x" {
		t.Error(got)
	}
	delete(w.objects, object.RefOf(u))
	w.settle(t)
	if got := w.plans(); got != "deploy Complete" || w.told() != "" {
		t.Error(got, w.waitsFor(), w.told())
	}
}

// TestApplyDeleteApply: each step does what it is for, though the object is the
// same.
func TestApplyDeleteApply(t *testing.T) {
	w := newWorld(t, `
tasks: [{name: make, kind: Apply, spec: {resources: [a.yaml]}}, {name: break, kind: Delete, spec: {resources: [a.yaml]}}]
templates: {a.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"}
plans: {deploy: {phases: [{name: p, strategy: serial, steps: [{name: a, tasks: [make]}, {name: b, tasks: [break]}, {name: c, tasks: [make]}]}]}}
`)
	w.settle(t)
	if got := w.told(); got != "create ConfigMap a, delete ConfigMap a, create ConfigMap a" {
		t.Error(got)
	}
}

// TestTheSameObjectInParallelSteps comes to rest.
func TestTheSameObjectInParallelSteps(t *testing.T) {
	w := newWorld(t, `
tasks: [{name: make, kind: Apply, spec: {resources: [a.yaml]}}, {name: app, kind: Apply, spec: {resources: [b.yaml]}}]
templates:
  a.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"
  b.yaml: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: app}, spec: {replicas: 1}}"
plans: {deploy: {phases: [{name: p, steps: [{name: a, tasks: [make, app]}, {name: b, tasks: [make, app]}]}]}}
`)
	w.unhealthy["app"] = true
	w.settle(t)
	if got := w.told(); got != "create ConfigMap a, create Deployment app, update ConfigMap a, update Deployment app" {
		t.Error(got)
	}
	w.recover(t)
	if got := w.plans(); got != "deploy Complete" {
		t.Error(got)
	}
}

func TestToggle(t *testing.T) {
	w := newWorld(t, onePlan(strings.Replace(applying, "kind: Apply, spec: {", "kind: Toggle, spec: {parameter: ENABLED, ", 1)+`
parameters: [{name: ENABLED, default: "true"}]
`, "t"))
	w.settle(t)
	if n := len(w.objects); n != 5 {
		t.Error(w.told())
	}
	w.set(parameters("ENABLED", "false"))
	w.settle(t)
	if n := len(w.objects); n != 0 || len(w.instance.Status.Inventory) != 0 {
		t.Error(w.told(), w.instance.Status.Inventory)
	}
	w.set(parameters("ENABLED", "perhaps"))
	w.settle(t)
	if got := w.waitsFor(); got != "plan deploy failed: task t: parameter ENABLED must be true or false" {
		t.Error(got)
	}
}

const piping = `
tasks:
- {name: t, kind: Pipe, spec: {pod: pod.yaml, pipe: [{file: /tmp/cert.pem, kind: Secret, key: cert}, {envFile: /tmp/env, kind: ConfigMap, key: env}]}}
- {name: u, kind: Apply, spec: {resources: [use.yaml]}}
templates:
  use.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: use}, data: {cert: '{{ .Pipes.cert }}'}}"
  pod.yaml: |
    apiVersion: v1
    kind: Pod
    metadata: {name: any}
    spec:
      volumes: [{name: shared, emptyDir: {}}]
      initContainers: [{name: make, image: openssl, volumeMounts: [{name: shared, mountPath: /tmp}]}]
plans: {deploy: {strategy: serial, phases: [{name: P, strategy: serial, steps: [{name: s, tasks: [t]}, {name: use, tasks: [u]}]}]}}
`

func TestPipe(t *testing.T) {
	w := newWorld(t, strings.Replace(piping, "envFile: /tmp/env", "file: /tmp/env", 1))
	w.settle(t)
	if got, want := w.told(), "create Pod web.deploy.p.s.t.pipepod, create Secret web.deploy.p.s.t.cert, create ConfigMap web.deploy.p.s.t.env, "+
		"delete Pod web.deploy.p.s.t.pipepod, create ConfigMap use"; got != want {
		t.Errorf("%s, want %s; %s", got, want, w.waitsFor())
	}
	use := w.objects[ref("v1", "ConfigMap", "use")]
	if got, _, _ := unstructured.NestedString(use.Object, "data", "cert"); got != "web.deploy.p.s.t.cert" {
		t.Error(got)
	}
	secret := w.objects[ref("v1", "Secret", "web.deploy.p.s.t.cert")]
	if got, _, _ := unstructured.NestedString(secret.Object, "data", "cert.pem"); got != "Y29udGVudA==" {
		t.Errorf("%v", secret)
	}
}

// TestPipesThatCannotWork say what is wrong with them.
func TestPipesThatCannotWork(t *testing.T) {
	for name, test := range map[string]struct{ old, broken, want string }{
		"no key":          {"key: cert", `key: ""`, "each file of a pipe needs a key"},
		"both":            {"file: /tmp/cert.pem", "file: /tmp/cert.pem, envFile: /tmp/x", "pipe cert needs either a file or an envFile"},
		"a wrong kind":    {"kind: Secret", "kind: Pod", "pipe cert: kind must be Secret or ConfigMap"},
		"no pod":          {"kind: Pod\n", "kind: Job\n", "template pod.yaml must be one Pod"},
		"no template":     {"pod: pod.yaml", "pod: none.yaml", "has no template none.yaml"},
		"no volume":       {"emptyDir: {}", "hostPath: {}", "needs exactly one volume of type emptyDir, for the files"},
		"not mounted":     {"volumeMounts: [{name: shared", "volumeMounts: [{name: other", "its initContainer does not mount volume shared"},
		"elsewhere":       {"/tmp/cert.pem", "/etc/passwd", "file /etc/passwd is not in /tmp, where the volume is mounted"},
		"leads outside":   {"/tmp/cert.pem", "/tmp/../etc/passwd", "file /tmp/../etc/passwd is not in /tmp"},
		"no maker":        {"initContainers", "containers", "needs exactly one initContainer, which makes the files, and no container"},
		"makers of a map": {"initContainers: [{name: make, image: openssl, volumeMounts: [{name: shared, mountPath: /tmp}]}]", "initContainers: {a: b}", "needs exactly one initContainer"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, strings.Replace(piping, test.old, test.broken, 1))
			w.settle(t)
			if got := w.waitsFor(); !strings.HasPrefix(got, "plan deploy failed: task t: ") || !strings.Contains(got, test.want) {
				t.Error(got)
			}
		})
	}
}

const parent = `
tasks: [{name: t, kind: KudoOperator, spec: {package: db, operatorVersion: "1", parameterFile: p.yaml}}]
templates: {p.yaml: "{A: text, B: 3, C: [x, z]}"}
plans: {deploy: {phases: [{name: p, steps: [{name: s, tasks: [t]}]}]}}
`

func TestKudoOperator(t *testing.T) {
	w := newWorld(t, parent)
	w.settle(t)
	if got := w.deploy().Message; got != "OperatorVersion db-1 not found in namespace shop; install it" {
		t.Error(got)
	}
	w.install(t, "db-1", simple)
	w.now = w.now.Add(time.Minute)
	w.settle(t)
	u := w.objects[ref("kudo.dev/v1beta1", "Instance", "web-db")]
	if u == nil {
		t.Fatal(w.told(), w.waitsFor())
	}
	if got := fmt.Sprint(u.Object["spec"]); got != "map[operatorVersion:map[name:db-1] parameters:map[A:text B:3 C:- x\n- z]]" {
		t.Error(got)
	}
	if owner := u.GetOwnerReferences()[0]; owner.Controller != nil {
		t.Errorf("%+v", owner)
	}
	if got := w.waitsFor(); got != "task t is updating: waiting for Instance web-db to be observed" {
		t.Error(got)
	}
	status := func(s string) {
		u := w.objects[ref("kudo.dev/v1beta1", "Instance", "web-db")]
		m := map[string]any{}
		if err := yaml.Unmarshal([]byte(s), &m); err != nil {
			t.Fatal(err)
		}
		u.Object["status"] = m
	}
	status(`{observedGeneration: 1, waitingFor: "task app waits", aggregatedStatus: {status: IN_PROGRESS, activePlan: deploy}}`)
	w.settle(t)
	if got := w.waitsFor(); got != "task t is updating: waiting for plan deploy of Instance web-db: task app waits" {
		t.Error(got)
	}
	done := u.DeepCopy()
	status(`{observedGeneration: 1, waitingFor: "it broke", aggregatedStatus: {status: FATAL_ERROR}}`)
	_, p := w.decide()
	if got := p.Status.WaitingFor; got != "plan deploy failed: plan deploy of Instance web-db failed: it broke" {
		t.Error(got)
	}
	status(`{observedGeneration: 1, aggregatedStatus: {status: COMPLETE}, lastAppliedInstanceSpec: {operatorVersion: {name: db-1}, parameters: {A: text, B: "3", C: "- x\n- z"}}}`)
	w.settle(t)
	if got := w.plans(); got != "deploy Complete" {
		t.Error(got, w.waitsFor(), done)
	}
}

func TestOperatorsInACircle(t *testing.T) {
	w := newWorld(t, parent)
	w.install(t, "db-1", strings.Replace(parent, "package: db", "package: app", 1))
	w.settle(t)
	if got := w.waitsFor(); got != "plan deploy failed: task t: dependency cycle: app-1 needs db-1 needs app-1" {
		t.Error(got)
	}
}

func TestDummies(t *testing.T) {
	for spec, want := range map[string]string{
		"done: true":                 "deploy Complete; ",
		"wantErr: true":              "; task t is waiting: its spec sets wantErr; next try at 4 May 12:00:01 UTC",
		"wantErr: true, fatal: true": "deploy Failed; plan deploy failed: task t failed: its spec sets wantErr and fatal",
		"done: false":                "deploy Failed; plan deploy failed: task t can never be done: a Dummy is done only if its spec sets done: true",
	} {
		w := newWorld(t, onePlan("tasks: [{name: t, kind: Dummy, spec: {"+spec+"}}]", "t"))
		w.settle(t)
		if got := w.plans() + "; " + w.waitsFor(); got != want {
			t.Errorf("%s: %s", spec, got)
		}
	}
}

// TestFatalCauses are mistakes in a package: each ends the plan, and says what it is.
func TestFatalCauses(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"no such task":     {onePlan("tasks: []", "t"), "OperatorVersion app-1 has no task t"},
		"no such kind":     {onePlan("tasks: [{name: t, kind: Pray}]", "t"), `task t: unknown kind "Pray"`},
		"no such template": {onePlan("tasks: [{name: t, kind: Apply, spec: {resources: [x]}}]", "t"), "OperatorVersion app-1 has no template x"},
		"a missing value":  {onePlan("templates: {x: '{{ .Params.NONE }}'}\ntasks: [{name: t, kind: Apply, spec: {resources: [x]}}]", "t"), `map has no entry for key "NONE"`},
		"no YAML":          {onePlan("templates: {x: '{'}\ntasks: [{name: t, kind: Apply, spec: {resources: [x]}}]", "t"), "template x: document 1: invalid YAML"},
		"no object":        {onePlan("templates: {x: '[a]'}\ntasks: [{name: t, kind: Apply, spec: {resources: [x]}}]", "t"), "template x: document 1: not a Kubernetes object"},
		"no name":          {onePlan("templates: {x: '{apiVersion: v1, kind: Pod}'}\ntasks: [{name: t, kind: Apply, spec: {resources: [x]}}]", "t"), "Pod has no metadata.name"},
		"a refused name":   {onePlan("templates: {x: '{{ if false }}{{ now }}{{ end }}'}\ntasks: [{name: t, kind: Apply, spec: {resources: [x]}}]", "t"), `template x: function "now" is refused`},
		"tasks that undo each other": {
			onePlan("templates: {x: '{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}'}\ntasks: [{name: t, kind: Delete, spec: {resources: [x]}}, {name: u, kind: Apply, spec: {resources: [x]}}]", "t", "u"),
			"task t deletes ConfigMap x, which task u of the same step applies; give each of them a step of its own",
		},
		"labels of numbers": {onePlan("templates: {x: '{apiVersion: v1, kind: Pod, metadata: {name: x, labels: {a: 1}}}'}\ntasks: [{name: t, kind: Apply, spec: {resources: [x]}}]", "t"), "Pod x: values of metadata.labels must be strings; quote them"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.text)
			w.settle(t)
			if got := w.waitsFor(); !strings.HasPrefix(got, "plan deploy failed: ") || !strings.Contains(got, test.want) {
				t.Error(got)
			}
			s := w.instance.Status
			if p := s.PlanStatus["deploy"]; p.Status != v1beta1.FatalError || p.Phases[0].Status != v1beta1.FatalError || p.Phases[0].Steps[0].Status != v1beta1.FatalError {
				t.Errorf("%+v", p)
			}
			if w.pass() {
				t.Error("it continues automatically")
			}
		})
	}
}

func TestPruned(t *testing.T) {
	text := `
parameters: [{name: EXTRA, default: "yes"}]
tasks: [{name: t, kind: Apply, spec: {resources: [a.yaml]}}, {name: other, kind: Apply, spec: {resources: [b.yaml]}}]
templates:
  a.yaml: |
    {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
    ---
    {{ if eq .Params.EXTRA "yes" }}
    {apiVersion: v1, kind: ConfigMap, metadata: {name: extra}}
    ---
    {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}}
    ---
    {apiVersion: v1, kind: Secret, metadata: {name: kept, annotations: {spillway.dev/prune: "false"}}}
    {{ end }}
  b.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: of-another-plan}}"
plans:
  deploy: {phases: [{name: p, steps: [{name: s, tasks: [t]}]}]}
  extra: {phases: [{name: p, steps: [{name: s, tasks: [other]}]}]}
`
	w := newWorld(t, text)
	w.settle(t)
	w.set(func(s *v1beta1.InstanceSpec) { s.PlanExecution.PlanName = "extra" })
	w.settle(t)
	w.story = nil
	w.set(parameters("EXTRA", "no"))
	w.settle(t)
	if got := w.told(); got != "update ConfigMap a, delete ConfigMap extra" {
		t.Error(got)
	}
	var names []string
	for r := range w.objects {
		names = append(names, r.Name)
	}
	if slices.Sort(names); strings.Join(names, " ") != "a data kept of-another-plan" {
		t.Error(names, w.plans(), w.waitsFor(), w.instance.Status.Inventory)
	}
}

// TestGeneratedOnce: a Secret gets values for keys that it has none for.
func TestGeneratedOnce(t *testing.T) {
	w := newWorld(t, onePlan(`
tasks: [{name: t, kind: Apply, spec: {resources: [a]}}]
templates: {a: '{apiVersion: v1, kind: Secret, metadata: {name: a, annotations: {spillway.dev/generate-once: "password=32, token=16"}}}'}
`, "t"))
	o, p := w.decide()
	if got := fmt.Sprint(p.Writes[0].Generate); got != "map[password:32 token:16]" {
		t.Error(got)
	}
	w.writeStatus(o, p)
	w.do(p.Writes[0])
	secret := ref("v1", "Secret", "a")
	if _, p = w.decide(); len(p.Writes) == 0 {
		t.Fatal("a manager that stopped before it generated them has them forgotten")
	}
	w.objects[secret].Object["data"] = map[string]any{"password": ""}
	if _, p = w.decide(); fmt.Sprint(p.Writes[0].Generate) != "map[token:16]" {
		t.Error(p.Writes[0].Generate)
	}
	w.objects[secret].Object["data"] = map[string]any{"password": "", "token": ""}
	w.settle(t)
	if got := w.plans(); got != "deploy Complete" {
		t.Error(got, w.waitsFor())
	}
}
