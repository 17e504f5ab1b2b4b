package decision

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/gates/ask"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/task"
	"github.com/spillway-dev/spillway/internal/plans/write"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// world simulates an API server with one Instance in it, and the controllers that make
// the objects of the Instance healthy.
type world struct {
	t        *testing.T
	now      time.Time
	instance *v1beta1.Instance
	versions map[string]*v1beta1.OperatorVersion
	pins     map[string]*choice.Version
	objects  map[object.Ref]*unstructured.Unstructured
	refusals write.Refusals
	unknown  map[schema.GroupKind]bool
	// refuses are objects that the API server does not take, and what it says.
	refuses map[object.Ref]write.Refusal
	// forbidden are kinds that the manager must not read.
	forbidden map[schema.GroupKind]bool
	// unhealthy are names of Deployments that do not become ready.
	unhealthy map[string]bool
	goes      bool
	// sealed refuses every write of a status.
	sealed bool
	// gates are the RolloutGates.
	gates ask.Gates
	// groups is true if the API server knows RolloutGroups.
	groups bool

	uids     int
	versionN int
	// story is what was written, in order.
	story []string
	// statuses are how often the status was written.
	statuses int
}

// newWorld has the OperatorVersions that are given as YAML of their specs, and an
// Instance of the first.
func newWorld(t *testing.T, versions ...string) *world {
	t.Helper()
	w := &world{
		t: t, now: noon, versions: map[string]*v1beta1.OperatorVersion{}, pins: map[string]*choice.Version{},
		objects: map[object.Ref]*unstructured.Unstructured{}, refusals: write.Refusals{},
		refuses: map[object.Ref]write.Refusal{}, unknown: map[schema.GroupKind]bool{}, unhealthy: map[string]bool{},
	}
	for i, text := range versions {
		w.install(t, fmt.Sprintf("app-%d", i+1), text)
	}
	w.instance = &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web", Generation: 1, ResourceVersion: "1"}}
	w.instance.Spec.OperatorVersion.Name = "app-1"
	return w
}

func (w *world) install(t *testing.T, name, text string) {
	t.Helper()
	ov := &v1beta1.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}}
	if err := yaml.UnmarshalStrict([]byte(text), &ov.Spec); err != nil {
		t.Fatal(err)
	}
	ov.Spec.Operator.Name = "app"
	w.versions[name] = ov
}

// set changes the spec.
func (w *world) set(change func(*v1beta1.InstanceSpec)) {
	change(&w.instance.Spec)
	w.instance.Generation++
	w.bump()
}

func (w *world) bump() {
	w.versionN++
	w.instance.ResourceVersion = fmt.Sprint(w.versionN + 1)
}

func parameters(pairs ...string) func(*v1beta1.InstanceSpec) {
	return func(s *v1beta1.InstanceSpec) {
		s.Parameters = maps.Clone(s.Parameters)
		if s.Parameters == nil {
			s.Parameters = map[string]string{}
		}
		for i := 0; i < len(pairs); i += 2 {
			s.Parameters[pairs[i]] = pairs[i+1]
		}
	}
}

func versionOf(ov *v1beta1.OperatorVersion) *choice.Version {
	if ov == nil {
		return nil
	}
	return &choice.Version{Namespace: ov.Namespace, Name: ov.Name, UID: ov.UID, Hash: choice.ContentHash(&ov.Spec), Spec: &ov.Spec}
}

// observe returns a snapshot of all objects that exist.
func (w *world) observe() Snapshot {
	w.uids++
	o := Snapshot{
		Snapshot: task.Snapshot{
			Instance: w.instance.DeepCopy(), Objects: map[object.Ref]*unstructured.Unstructured{}, Forbidden: map[object.Ref]string{},
			Kinds: map[schema.GroupVersionKind]object.Scope{}, Refusals: maps.Clone(w.refusals),
			Gates: slices.Clone(w.gates),
		},
		Now: w.now, NewUID: types.UID(fmt.Sprintf("uid-%d", w.uids)),
		Version: versionOf(w.versions[w.instance.Spec.OperatorVersion.Name]), NamespaceGoes: w.goes,
	}
	if s := w.instance.Status.LastAppliedInstanceSpec; s != nil {
		o.Former = versionOf(w.versions[s.OperatorVersion.Name])
	}
	if e := w.instance.Status.Execution; e != nil {
		o.Pinned = w.pins[e.ContentHash]
	}
	return o
}

// decide decides, after looking at all that is needed.
func (w *world) decide() (Snapshot, Decision) {
	o := w.observe()
	for range 100 {
		p := Decide(&o)
		if p.Needs.IsEmpty() {
			return o, p
		}
		w.look(&o, p.Needs)
	}
	panic("it never has all that it needs")
}

func (w *world) look(o *Snapshot, needs task.Needs) {
	for _, ref := range needs.Objects {
		if w.forbidden[ref.GroupKind()] {
			if o.Forbidden[ref] != "" {
				panic("it asks twice for " + ref.String())
			}
			o.Forbidden[ref] = "no permission to read " + ref.String()
			continue
		}
		if _, twice := o.Objects[ref]; twice {
			panic("it asks twice for " + ref.String())
		}
		o.Objects[ref] = w.get(ref)
	}
	for _, gvk := range needs.Kinds {
		o.Kinds[gvk] = w.scope(gvk.GroupKind())
	}
}

func (w *world) get(ref object.Ref) *unstructured.Unstructured {
	if ref.Kind == "OperatorVersion" {
		return asUnstructured(w.versions[ref.Name])
	}
	if u := w.objects[ref]; u != nil {
		return u.DeepCopy()
	}
	return nil
}

func asUnstructured(ov *v1beta1.OperatorVersion) *unstructured.Unstructured {
	if ov == nil {
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(ov)
	if err != nil {
		panic(err)
	}
	return &unstructured.Unstructured{Object: content}
}

func (w *world) scope(gk schema.GroupKind) object.Scope {
	switch {
	case w.unknown[gk] || gk.Kind == "RolloutGroup" && !w.groups:
		return object.NoSuchKind
	case strings.HasPrefix(gk.Kind, "Cluster"):
		return object.ClusterScoped
	default:
		return object.Namespaced
	}
}

func (w *world) tellf(format string, args ...any) {
	w.story = append(w.story, fmt.Sprintf(format, args...))
}

// writeStatus writes the status, if the Instance is as it was observed.
func (w *world) writeStatus(o Snapshot, p Decision) bool {
	if w.sealed || o.Instance.ResourceVersion != w.instance.ResourceVersion {
		return false
	}
	if p.Pin != nil {
		w.pins[p.Pin.Hash] = &choice.Version{Namespace: p.Pin.Namespace, Name: p.Pin.Name, UID: p.Pin.UID, Hash: p.Pin.Hash, Spec: p.Pin.Spec.DeepCopy()}
	}
	w.instance.Status = *p.Status.DeepCopy()
	w.statuses++
	w.bump()
	if why := w.unearned(); why != "" {
		w.t.Errorf("it is ready, but %s", why)
	}
	return true
}

// do makes a write, or is refused. A deletion is never refused.
func (w *world) do(made write.Write) {
	if refusal, refused := w.refuses[made.Ref]; refused && (made.Act == write.Apply || made.Act == write.CreateGate || made.IsToInstance()) {
		refusal.At, refusal.Execution, refusal.Sent = w.now.Add(345*time.Nanosecond), made.Execution, made.Sent()
		w.refusals.Learn(&made, &refusal)
		return
	}
	w.refusals.Learn(&made, nil)
	switch made.Act {
	case write.Apply:
		w.apply(made.Ref, made.Object)
	case write.Delete:
		if u := w.objects[made.Ref]; u != nil && u.GetUID() == made.UID {
			delete(w.objects, made.Ref)
			w.tellf("delete %s", made.Ref)
		}
	case write.Extract:
		for _, file := range made.Extraction.Files {
			kept, err := file.Keep([]byte("content"))
			if err != nil {
				panic(err)
			}
			w.apply(object.RefOf(kept), kept)
		}
	case write.CreateGate:
		w.createGate(made.Question)
	case write.DeleteGate:
		w.gates = slices.DeleteFunc(w.gates, func(g ask.Gate) bool { return g.UID == made.UID && g.ResourceVersion == made.ResourceVersion })
		w.tellf("delete %s", made.Ref)
	case write.AddFinalizer:
		w.instance.Finalizers = append(w.instance.Finalizers, vocabulary.CleanupFinalizer)
		w.tellf("add finalizer")
		w.bump()
	case write.RemoveFinalizer:
		w.instance.Finalizers = nil
		w.tellf("remove finalizer")
		w.bump()
	case write.Identify:
		w.set(func(s *v1beta1.InstanceSpec) { s.PlanExecution.UID = made.UID })
	case write.ClearRequest:
		w.set(func(s *v1beta1.InstanceSpec) { s.PlanExecution = v1beta1.PlanExecution{} })
	}
}

// createGate creates a RolloutGate that is not decided yet, unless there is one.
func (w *world) createGate(q *ask.Question) {
	if w.gates.Find(q) != nil {
		return
	}
	w.uids++
	w.gates = append(w.gates, ask.Gate{
		Name: q.Name(), UID: types.UID(fmt.Sprintf("gate-%d", w.uids)), ResourceVersion: "1", Stage: q.Stage, Revision: q.Revision,
	})
	w.tellf("create gate %s of %s", q.Gate.Name, q.Stage)
}

// verdict decides the gate of a unit, and fails if there is none.
func (w *world) verdict(t *testing.T, stage string, v rollout.Verdict) {
	t.Helper()
	w.gates = slices.Clone(w.gates)
	for i := range w.gates {
		if w.gates[i].Stage == stage {
			w.gates[i].Verdict, w.gates[i].Message, w.gates[i].ResourceVersion = v, "says the test", w.gates[i].ResourceVersion+"1"
			return
		}
	}
	t.Fatalf("there is no gate of %s: %+v", stage, w.gates)
}

func (w *world) apply(ref object.Ref, object *unstructured.Unstructured) {
	u, verb := object.DeepCopy(), "create"
	if live := w.objects[ref]; live != nil {
		verb = "update"
		u.SetUID(live.GetUID())
	} else {
		w.uids++
		u.SetUID(types.UID(fmt.Sprintf("object-%d", w.uids)))
	}
	w.objects[ref] = u
	w.tellf("%s %s", verb, ref)
	w.grow(ref)
}

// grow lets an object become healthy.
func (w *world) grow(ref object.Ref) {
	u := w.objects[ref]
	u.SetGeneration(1)
	switch ref.Kind {
	case "Deployment":
		n, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
		if w.unhealthy[ref.Name] {
			n = 0
		}
		u.Object["status"] = map[string]any{"observedGeneration": int64(1), "replicas": n, "readyReplicas": n, "updatedReplicas": n, "availableReplicas": n,
			"conditions": []any{map[string]any{"type": "Available", "status": "True"}}}
	case "PersistentVolumeClaim":
		u.Object["status"] = map[string]any{"phase": "Bound"}
	case "Pod":
		u.Object["status"] = map[string]any{"phase": "Running", "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
	case "Job":
		u.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}
	}
}

// pass is what a manager does once. It is false if there was nothing to do.
func (w *world) pass() bool {
	o, p := w.decide()
	if p.Changes && !w.writeStatus(o, p) {
		return true
	}
	for _, made := range p.Writes {
		w.do(made)
	}
	return p.Changes || len(p.Writes) > 0
}

// settle lets a manager do all that it does.
func (w *world) settle(t *testing.T) {
	t.Helper()
	for range 200 {
		if !w.pass() {
			return
		}
	}
	t.Fatalf("it never comes to rest:\n%s", strings.Join(w.story, "\n"))
}

// plans are the executions that have ended, oldest first.
func (w *world) plans() string {
	var all []string
	for _, e := range slices.Backward(w.instance.Status.History) {
		all = append(all, fmt.Sprintf("%s %s", e.Plan, e.Result))
	}
	return strings.Join(all, ", ")
}

const simple = `
version: "1"
parameters:
- {name: NODES, default: "3"}
- {name: COLOR, default: red, trigger: paint}
- {name: SIZE, default: s, trigger: resize}
- {name: LOST, trigger: missing}
- {name: KEY, default: k, immutable: true}
tasks:
- {name: app, kind: Apply, spec: {resources: [app.yaml]}}
templates:
  app.yaml: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: app}
    spec: {replicas: 1, template: {metadata: {}, spec: {containers: [{name: c, image: "{{ .Params.COLOR }}"}]}}}
plans:
  deploy: &p {strategy: serial, phases: [{name: main, strategy: serial, steps: [{name: app, tasks: [app]}]}]}
  update: *p
  paint: *p
  resize: *p
  backup: *p
`

func TestASimpleLife(t *testing.T) {
	w := newWorld(t, simple)
	w.settle(t)
	if got := w.plans(); got != "deploy Complete" {
		t.Fatalf("%s\n%s\n%+v", got, strings.Join(w.story, "\n"), w.instance.Status)
	}
	w.set(parameters("NODES", "4"))
	w.settle(t)
	w.set(parameters("COLOR", "blue"))
	w.settle(t)
	w.set(func(s *v1beta1.InstanceSpec) { s.PlanExecution.PlanName = "backup" })
	w.settle(t)
	if got := w.plans(); got != "deploy Complete, update Complete, paint Complete, backup Complete" {
		t.Fatalf("%s\n%s", got, strings.Join(w.story, "\n"))
	}
	if w.instance.Spec.PlanExecution != (v1beta1.PlanExecution{}) {
		t.Error("the requested plan is still in the spec")
	}
	t.Logf("%d statuses\n%s", w.statuses, strings.Join(w.story, "\n"))
}
