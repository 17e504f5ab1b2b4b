package manifest

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Item is the path of an item of a list.
func Item(list string, i int, rest ...string) []string {
	return append(append(Fields(list), strconv.Itoa(i)), rest...)
}

// Keyed is where a key stands, among the annotations or the labels.
func (o *Object) Keyed(key vocabulary.Key) []string {
	if _, name, ok := key.Lookup(o.Object.GetAnnotations()); ok {
		return Annotation(name)
	}
	_, name, _ := key.Lookup(o.Object.GetLabels())
	return label(name)
}

// RingField is where what a ring complains of stands: "annotation x" or "spec.y".
func (o *Object) RingField(field string) []string {
	name, isAnnotation := strings.CutPrefix(field, "annotation ")
	if !isAnnotation {
		return Fields(field)
	}
	if _, labeled := o.Object.GetLabels()[name]; labeled && o.Object.GetAnnotations()[name] == "" {
		return label(name)
	}
	return Annotation(name)
}

// Fields takes a path such as spec.stages[2].name apart.
func Fields(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
}

// Annotation is where an annotation of the object stands, and label a label.
func Annotation(name string) []string { return []string{"metadata", "annotations", name} }

func label(name string) []string { return []string{"metadata", "labels", name} }

// Locate is the path of the first map below a path of which something is true; the
// path itself, if there is none.
func (o *Object) Locate(from []string, is func(path []string, value map[string]any) bool) []string {
	value := any(o.Object.Object)
	for _, field := range from {
		value = Step(value, field)
	}
	if found := locate(value, from, is); found != nil {
		return found
	}
	return from
}

// Step is a field of a map, or an item of a list.
func Step(value any, field string) any {
	switch v := value.(type) {
	case map[string]any:
		return v[field]
	case []any:
		if i, err := strconv.Atoi(field); err == nil && i >= 0 && i < len(v) {
			return v[i]
		}
	}
	return nil
}

func locate(value any, path []string, is func([]string, map[string]any) bool) []string {
	switch v := value.(type) {
	case map[string]any:
		if is(path, v) {
			return path
		}
		for _, key := range SortedKeys(v) {
			if found := locate(v[key], append(slices.Clone(path), key), is); found != nil {
				return found
			}
		}
	case []any:
		for i := range v {
			if found := locate(v[i], append(slices.Clone(path), strconv.Itoa(i)), is); found != nil {
				return found
			}
		}
	}
	return nil
}

// SortedKeys are the keys of a map, sorted, so that findings come in the same order
// every time.
func SortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
