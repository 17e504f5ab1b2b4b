package write

import (
	"iter"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/internal/plans/object"
)

// Batches are writes in their order, cut so that those of a batch may be made at the same
// time: what one task applies of one of the kinds of Kubernetes, or of those that do nothing
// until a Pod uses them. What a kind of another group refuses may depend on what exists
// before it. An object that templates have twice is written as the second says, so that comes
// after the first.
func Batches(writes []Write) iter.Seq[[]Write] {
	return func(yield func([]Write) bool) {
		for begin := 0; begin < len(writes); {
			end, seen := begin+1, map[id]bool{idOf(&writes[begin]): true}
			for end < len(writes) && isSameBatch(&writes[begin], &writes[end]) && !seen[idOf(&writes[end])] {
				seen[idOf(&writes[end])] = true
				end++
			}
			if !yield(writes[begin:end]) {
				return
			}
			begin = end
		}
	}
}

func isSameBatch(a, b *Write) bool {
	if a.Act != Apply || b.Act != Apply || a.Path.String() != b.Path.String() {
		return false
	}
	if a.Ref.GroupKind() != b.Ref.GroupKind() {
		return isPassive(a) && isPassive(b)
	}
	switch a.Ref.Group {
	case "", "apps", "batch", "rbac.authorization.k8s.io":
		return true
	default:
		return false
	}
}

// isPassive is true of an object that only Pods use: in what order they are applied makes no
// difference. A token needs its ServiceAccount.
func isPassive(w *Write) bool {
	switch w.Ref.GroupKind() {
	case object.AccountKind, object.ConfigMapKind:
		return true
	case object.SecretKind:
		kind, _, _ := unstructured.NestedString(w.Object.Object, "type")
		return kind != string(corev1.SecretTypeServiceAccountToken)
	default:
		return false
	}
}

// id is what tells objects of a batch apart.
type id struct {
	schema.GroupKind
	types.NamespacedName
}

func idOf(w *Write) id {
	return id{w.Ref.GroupKind(), types.NamespacedName{Namespace: w.Ref.Namespace, Name: w.Ref.Name}}
}
