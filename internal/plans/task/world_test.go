package task

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/write"
)

// theUID is that of every object that exists.
const theUID = "live"

// manifest is an object given as YAML.
func manifest(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return u
}

// running is an execution of plan deploy of Instance shop/web, whose OperatorVersion is
// given as YAML of its spec. It knows every kind but Unknown, and what is in its snapshot.
func running(t *testing.T, version string) *Run {
	t.Helper()
	spec := &v1beta1.OperatorVersionSpec{}
	if err := yaml.UnmarshalStrict([]byte(version), spec); err != nil {
		t.Fatal(err)
	}
	return &Run{
		Snapshot: &Snapshot{
			Instance: &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web"}},
			Objects:  map[object.Ref]*unstructured.Unstructured{}, Forbidden: map[object.Ref]string{}, Refusals: write.Refusals{},
			Kinds: map[schema.GroupVersionKind]object.Scope{
				{Version: "v1", Kind: "ConfigMap"}: object.Namespaced, object.SecretKind.WithVersion("v1"): object.Namespaced,
				object.DeploymentKind.WithVersion("v1"): object.Namespaced, {Version: "v1", Kind: "Unknown"}: object.NoSuchKind,
			},
		},
		Execution: &v1beta1.Execution{UID: "run", Plan: "deploy", Advances: true},
		Version:   &choice.Version{Name: "app-1", Spec: spec},
		Values:    map[string]any{},
		StartedAt: func(string, string) *metav1.MicroTime { return nil },
	}
}

// exists adds an object to the snapshot, as it is in the namespace of the Instance.
func (r *Run) exists(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := manifest(t, text)
	u.SetNamespace("shop")
	u.SetUID(theUID)
	r.Snapshot.Objects[object.RefOf(u)] = u
	return u
}

// refuse answers a write.
func (r *Run) refuse(w *write.Write, refusal write.Refusal) {
	refusal.Execution, refusal.Sent = w.Execution, w.Sent()
	r.Snapshot.Refusals.Learn(w, &refusal)
}

// absent says that an object was read, and does not exist.
func (r *Run) absent(apiVersion, kind, name string) {
	r.Snapshot.Objects[refTo(apiVersion, kind, name)] = nil
}

func refTo(apiVersion, kind, name string) object.Ref {
	return object.Ref{GroupVersionKind: schema.FromAPIVersionAndKind(apiVersion, kind), Namespace: "shop", Name: name}
}

// settle reads everything that a task needs, as absent, and returns its finding.
func (r *Run) settle(name string) Finding {
	f := r.Assess("main", "one", name)
	for !f.Needs.IsEmpty() {
		for _, ref := range f.Needs.Objects {
			r.Snapshot.Objects[ref] = nil
		}
		for _, gvk := range f.Needs.Kinds {
			r.Snapshot.Kinds[gvk] = object.Namespaced
		}
		f = r.Assess("main", "one", name)
	}
	return f
}

// summary is a finding in a few words: each write, and what the task waits for.
func summary(f *Finding) string {
	text := ""
	for _, w := range f.Writes {
		text += string(w.Act) + " " + w.Ref.String() + "; "
	}
	switch {
	case f.Fatal != "":
		text += "fatal: " + f.Fatal
	case f.Failed != "":
		text += "failed: " + f.Failed
	case f.Blocked != nil:
		text += "blocked: " + f.Blocked.Message
	case f.Lacks != "":
		text += f.Lacks
	case f.IsDone():
		text += "done"
	}
	for _, left := range f.Left {
		text += "; " + left
	}
	return text
}

// preconditioned fails the test if a deletion does not name the object that was read.
func preconditioned(t *testing.T, writes []write.Write) {
	t.Helper()
	for _, w := range writes {
		if w.Act == write.Delete && w.UID != types.UID(theUID) {
			t.Errorf("it deletes %s of uid %q", w.Ref, w.UID)
		}
	}
}
