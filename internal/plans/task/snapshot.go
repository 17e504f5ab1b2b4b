package task

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/gates/ask"
	"github.com/spillway-dev/spillway/internal/plans/definition"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/render"
	"github.com/spillway-dev/spillway/internal/plans/write"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Snapshot is an Instance and the objects that its tasks deal with, read at one
// moment. It grows by what [Needs] names, and does not change otherwise.
type Snapshot struct {
	Instance *v1beta1.Instance
	// Objects are those that were read; nil of one that does not exist. Of a Secret
	// the keys are enough.
	Objects map[object.Ref]*unstructured.Unstructured
	// Heads are those of objects that were compared; nil of one that does not exist.
	Heads map[object.Ref]*Head
	// Forbidden are objects that the manager must not read, and why.
	Forbidden map[object.Ref]string
	// Impossible are objects that no request can be about, such as one of a kind that can only
	// be created, and why.
	Impossible map[object.Ref]string
	// Kinds are those that the API server was asked about.
	Kinds map[schema.GroupVersionKind]object.Scope
	// Served are the versions in which the API server serves kinds that it does not
	// serve in the version that it was asked about.
	Served map[schema.GroupKind][]string
	// Definitions are the changes of CustomResourceDefinitions that were checked, by what is sent.
	Definitions map[string]definition.Result
	// Rules are those of the package for the health of custom resources; it may be nil.
	Rules *Rules
	// Refusals are the writes that the API server has refused.
	Refusals write.Refusals
	// Gates are the RolloutGates of the Instance.
	Gates ask.Gates
	// Hidden are values of parameters that no message may say.
	Hidden Hidden
	// PipeImage is that of the container that keeps a Pipe's Pod running.
	PipeImage string
	// Rendered are the objects that templates have made; it may be nil.
	Rendered *render.Memo
}

// Needs is what must be read before a decision can be made.
type Needs struct {
	Objects []object.Ref
	Kinds   []schema.GroupVersionKind
	// Definitions are the changes of CustomResourceDefinitions to check, by what is sent.
	Definitions map[string]definition.Change
	// Heads are objects that are compared with what was applied.
	Heads []object.Ref
	// Contents are those of OperatorVersions with which earlier executions ran, by their hash, with
	// the specs of these.
	Contents map[string]v1beta1.InstanceSpec
}

// IsEmpty is true if nothing is missing.
func (n *Needs) IsEmpty() bool {
	return len(n.Objects)+len(n.Kinds)+len(n.Definitions)+len(n.Heads)+len(n.Contents) == 0
}

// Add adds what another decision needs.
func (n *Needs) Add(other Needs) {
	for _, ref := range other.Objects {
		n.object(ref)
	}
	for _, gvk := range other.Kinds {
		n.kind(gvk)
	}
	n.Heads = append(n.Heads, other.Heads...)
	for sent, change := range other.Definitions {
		n.definition(sent, change)
	}
	for hash, spec := range other.Contents {
		if n.Contents == nil {
			n.Contents = map[string]v1beta1.InstanceSpec{}
		}
		n.Contents[hash] = spec
	}
}

func (n *Needs) definition(sent string, change definition.Change) {
	if n.Definitions == nil {
		n.Definitions = map[string]definition.Change{}
	}
	n.Definitions[sent] = change
}

func (n *Needs) kind(gvk schema.GroupVersionKind) {
	if !slices.Contains(n.Kinds, gvk) {
		n.Kinds = append(n.Kinds, gvk)
	}
}

// UIDOf is the UID of an object as it was read, empty if it did not exist.
func (s *Snapshot) UIDOf(ref object.Ref) types.UID {
	if live := s.Objects[ref]; live != nil {
		return live.GetUID()
	}
	return ""
}

func (n *Needs) object(r object.Ref) {
	if !slices.Contains(n.Objects, r) {
		n.Objects = append(n.Objects, r)
	}
}

// IsOwned reports whether an object belongs to this Instance. It does not matter which
// client applied it. KUDO marked cluster-scoped objects with the name of the Instance alone,
// which Instances of other namespaces may have as well, and with the execution that applied them.
func (s *Snapshot) IsOwned(live *unstructured.Unstructured) bool {
	for _, owner := range live.GetOwnerReferences() {
		if owner.UID == s.Instance.UID {
			return true
		}
	}
	if of, ok := live.GetAnnotations()[vocabulary.Instance.Native]; ok {
		return of == s.Instance.Namespace+"/"+s.Instance.Name
	}
	labels := live.GetLabels()
	if labels[vocabulary.Heritage] != vocabulary.HeritageOf || labels[vocabulary.InstanceLabel] != s.Instance.Name {
		return false
	}
	return live.GetNamespace() != "" || s.isByKUDO(types.UID(live.GetAnnotations()[vocabulary.ExecutionAnnotation]))
}

// isByKUDO reports whether KUDO executed a plan of the Instance under this uid.
func (s *Snapshot) isByKUDO(execution types.UID) bool {
	if execution == "" {
		return false
	}
	for _, plan := range s.Instance.Status.PlanStatus {
		if plan.UID == execution {
			return true
		}
	}
	return slices.Contains(s.Instance.Status.KUDOExecutions, execution)
}
