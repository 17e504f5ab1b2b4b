package write

import (
	"iter"

	"k8s.io/apimachinery/pkg/types"
)

// Batches are writes in their order, cut so that those of a batch may be made at the same
// time: what one task applies of one of the kinds of Kubernetes. What a kind of another
// group refuses may depend on what exists before it. An object that templates have twice is
// written as the second says, so that comes after the first.
func Batches(writes []Write) iter.Seq[[]Write] {
	return func(yield func([]Write) bool) {
		for begin := 0; begin < len(writes); {
			end, seen := begin+1, map[types.NamespacedName]bool{nameOf(&writes[begin]): true}
			for end < len(writes) && isSameBatch(&writes[begin], &writes[end]) && !seen[nameOf(&writes[end])] {
				seen[nameOf(&writes[end])] = true
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
	if a.Act != Apply || b.Act != Apply || a.Path.String() != b.Path.String() || a.Ref.GroupKind() != b.Ref.GroupKind() {
		return false
	}
	switch a.Ref.Group {
	case "", "apps", "batch", "rbac.authorization.k8s.io":
		return true
	default:
		return false
	}
}

func nameOf(w *Write) types.NamespacedName {
	return types.NamespacedName{Namespace: w.Ref.Namespace, Name: w.Ref.Name}
}
