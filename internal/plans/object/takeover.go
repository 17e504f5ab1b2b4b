package object

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Takeover is a JSON patch after which the fields of an object that KUDO has applied
// belong to owner, so that the next apply removes those that are no longer rendered;
// nil if there are none. Fields that another client of the same name has written, or
// that were defaulted, keep their owner. The API server refuses the patch if the
// object has changed since it was read.
func Takeover(live *unstructured.Unstructured, owner string) []byte {
	applied := map[string]any{}
	text, ok := live.GetAnnotations()[vocabulary.LastAppliedConfiguration]
	if !ok || json.Unmarshal([]byte(text), &applied) != nil {
		return nil
	}
	entries := live.GetManagedFields()
	i := slices.IndexFunc(entries, isByKUDO)
	if i < 0 {
		return nil
	}
	taken, left := split(entries[i], applied)
	if taken.Empty() {
		return nil
	}
	kept := slices.DeleteFunc(slices.Clone(entries), func(e metav1.ManagedFieldsEntry) bool { return isByKUDO(e) || isByOwner(e, owner) })
	if j := slices.IndexFunc(entries, func(e metav1.ManagedFieldsEntry) bool { return isByOwner(e, owner) }); j >= 0 {
		taken = taken.Union(setOf(entries[j]))
	}
	kept = append(kept, entryOf(entries[i], taken, owner, metav1.ManagedFieldsOperationApply))
	if !left.Empty() {
		kept = append(kept, entryOf(entries[i], left, vocabulary.PredecessorManager, metav1.ManagedFieldsOperationUpdate))
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": kept},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": live.GetResourceVersion()},
	})
	if err != nil {
		return nil
	}
	return patch
}

func isByKUDO(e metav1.ManagedFieldsEntry) bool {
	return e.Manager == vocabulary.PredecessorManager && e.Operation == metav1.ManagedFieldsOperationUpdate && e.Subresource == ""
}

func isByOwner(e metav1.ManagedFieldsEntry, owner string) bool {
	return e.Manager == owner && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
}

// split separates the fields of an entry that were applied from the others.
func split(e metav1.ManagedFieldsEntry, applied map[string]any) (taken, left *fieldpath.Set) {
	taken, left = fieldpath.NewSet(), fieldpath.NewSet()
	note := fieldpath.MakePathOrDie("metadata", "annotations", vocabulary.LastAppliedConfiguration)
	for path := range setOf(e).All() {
		if isIn(applied, path) || path.Equals(note) {
			taken.Insert(path.Copy())
		} else {
			left.Insert(path.Copy())
		}
	}
	return taken, left
}

func setOf(e metav1.ManagedFieldsEntry) *fieldpath.Set {
	set := fieldpath.NewSet()
	if e.FieldsV1 == nil || set.FromJSON(e.FieldsV1.GetRawReader()) != nil {
		return fieldpath.NewSet()
	}
	return set
}

func entryOf(like metav1.ManagedFieldsEntry, set *fieldpath.Set, manager string, operation metav1.ManagedFieldsOperationType) metav1.ManagedFieldsEntry {
	raw, err := set.ToJSON()
	if err != nil {
		raw = []byte("{}")
	}
	like.Manager, like.Operation, like.FieldsV1 = manager, operation, metav1.NewFieldsV1(string(raw))
	return like
}

// isIn is true if there is a value at the path.
func isIn(at any, path fieldpath.Path) bool {
	for _, element := range path {
		next, ok := step(at, element)
		if !ok {
			return false
		}
		at = next
	}
	return true
}

// step follows one element of a path.
func step(at any, e fieldpath.PathElement) (any, bool) {
	switch {
	case e.FieldName != nil:
		m, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		next, ok := m[*e.FieldName]
		return next, ok
	case e.Key != nil:
		return find(at, func(item any) bool { return hasKey(item, *e.Key) })
	case e.Value != nil:
		return find(at, func(item any) bool { return value.Equals(value.NewValueInterface(item), *e.Value) })
	default:
		return nil, false
	}
}

func find(at any, is func(any) bool) (any, bool) {
	list, ok := at.([]any)
	if !ok {
		return nil, false
	}
	i := slices.IndexFunc(list, is)
	if i < 0 {
		return nil, false
	}
	return list[i], true
}

// hasKey is true of an item that has this key, as far as the manifest contains the
// key: a part of it may have been defaulted, as the protocol of a port is.
func hasKey(item any, key value.FieldList) bool {
	m, ok := item.(map[string]any)
	if !ok {
		return false
	}
	found := false
	for _, field := range key {
		v, ok := m[field.Name]
		if ok && !value.Equals(value.NewValueInterface(v), field.Value) {
			return false
		}
		found = found || ok
	}
	return found
}
