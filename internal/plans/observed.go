package plans

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Observed is one Instance, read at one moment. Nobody changes it.
type Observed struct {
	Now time.Time
	// NewUID is for what begins in this pass; chance is the caller's.
	NewUID   types.UID
	Instance *v1beta1.Instance
	// Version is what the spec refers to, Former what was last applied, nil if
	// there is no such OperatorVersion (any more).
	Version, Former *Version
	// Pinned is the content with which the plan runs, found by
	// status.execution.contentHash; nil if none runs or it is gone.
	Pinned *Version
	// Objects are those that were looked at; nil of what is not there. Of a Secret
	// the keys are enough.
	Objects map[Ref]*unstructured.Unstructured
	// Unseen are objects that may not be looked at, and why.
	Unseen map[Ref]string
	// Kinds are those that the API server was asked about.
	Kinds map[schema.GroupKind]Scope
	// Refusals are what could not be done, until it could be.
	Refusals map[Ref]Refusal
	// NamespaceGoes is true once the Instance's namespace is being deleted, so
	// that nothing can be created in it.
	NamespaceGoes bool
	// PipeImage is that of the container that keeps a Pipe's Pod.
	PipeImage string
}

// Version is an OperatorVersion, or what was kept of one.
type Version struct {
	Namespace, Name string
	UID             types.UID
	// Hash is [ContentHash] of the spec.
	Hash string
	Spec *v1beta1.OperatorVersionSpec
	// KeepsAll is true if nothing of it is ever pruned ([vocabulary.Prune]).
	KeepsAll bool
}

// Ref names an object.
type Ref struct {
	schema.GroupVersionKind

	Namespace, Name string
}

// String is how sentences call the object: "StatefulSet zookeeper".
func (r Ref) String() string { return r.Kind + " " + r.Name }

// same is true of one object, in whatever version of its group.
func (r Ref) same(other Ref) bool {
	return r.GroupKind() == other.GroupKind() && r.Namespace == other.Namespace && r.Name == other.Name
}

func refOf(u *unstructured.Unstructured) Ref {
	return Ref{GroupVersionKind: u.GroupVersionKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}

// Scope is where the objects of a kind live.
type Scope int

// The scopes.
const (
	// Namespaced kinds live in namespaces.
	Namespaced Scope = iota + 1
	// ClusterScoped kinds do not.
	ClusterScoped
	// NoSuchKind: the API server does not know it.
	NoSuchKind
)

// Refusal is something that could not be done.
type Refusal struct {
	// At is when it was tried.
	At time.Time
	// Reason is what came back, without values of Secrets.
	Reason string
	// Immutable is the object of which a field would have changed that cannot, empty
	// if that was not why. Of its successor nothing is known.
	Immutable types.UID
	// Fatal: it will never be accepted.
	Fatal bool
}

// Needs is what has to be looked at before anything can be decided.
type Needs struct {
	Objects []Ref
	Kinds   []schema.GroupVersionKind
}

// IsEmpty is true if nothing is missing.
func (n *Needs) IsEmpty() bool { return len(n.Objects) == 0 && len(n.Kinds) == 0 }

func (n *Needs) object(r Ref) {
	if !slices.Contains(n.Objects, r) {
		n.Objects = append(n.Objects, r)
	}
}

func (n *Needs) kind(gvk schema.GroupVersionKind) {
	if !slices.Contains(n.Kinds, gvk) {
		n.Kinds = append(n.Kinds, gvk)
	}
}

// order is what somebody asks of a plan by annotation.
type order struct {
	UID    types.UID `json:"uid"`
	Reason string    `json:"reason,omitempty"`
	By     string    `json:"by,omitempty"`
}

// orderOf reads an order. What is no JSON is the uid alone.
func orderOf(annotations map[string]string, key vocabulary.Key) (order, *Problem) {
	value, name, ok := key.Lookup(annotations)
	value = strings.TrimSpace(value)
	switch {
	case !ok || value == "":
		return order{}, nil
	case !strings.HasPrefix(value, "{"):
		return order{UID: types.UID(value)}, nil
	}
	o := order{}
	if err := json.Unmarshal([]byte(value), &o); err != nil || o.UID == "" {
		return order{}, &Problem{Field: "annotation " + name, Action: `has to be the uid of an execution, or JSON such as {"uid":"...","reason":"...","by":"..."}`}
	}
	return o, nil
}

// is true of an order that is about an execution.
func (o order) is(e *v1beta1.Execution) bool { return e != nil && o.UID != "" && o.UID == e.UID }

// clause says who gave the order, and why.
func (o order) clause() string {
	s := ""
	if o.By != "" {
		s = " by " + o.By
	}
	if o.Reason != "" {
		s += ": " + o.Reason
	}
	return s
}
