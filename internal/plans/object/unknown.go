package object

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// undeclared is what server-side apply says, after the path of a field, of one that the
// schema of the kind does not have. It does so whatever validation of fields is requested.
const undeclared = ": field not declared in schema"

// UndeclaredFields are the paths in an answer of the API server that says that an object
// has fields which its kind does not have, in the order of the answer; none if it says
// anything else besides.
func UndeclaredFields(answer string) []string {
	_, list, isTyped := strings.Cut(answer, "failed to create typed patch object")
	if !isTyped {
		return nil
	}
	if i := strings.Index(list, "): "); i >= 0 {
		list = list[i+len("): "):]
	}
	var paths []string
	for line := range strings.Lines(strings.TrimPrefix(strings.TrimSpace(list), "errors:")) {
		path, isUndeclared := strings.CutSuffix(strings.TrimSpace(line), undeclared)
		switch {
		case isUndeclared && strings.HasPrefix(path, "."):
			paths = append(paths, path)
		case path != "":
			return nil
		}
	}
	return slices.Compact(paths)
}

// Drop removes the field at a path of [UndeclaredFields], and returns whether it existed.
func Drop(u *unstructured.Unstructured, path string) bool { return drop(u.Object, path) }

func drop(at any, path string) bool {
	switch here := at.(type) {
	case map[string]any:
		return dropField(here, path)
	case []any:
		selector, rest, ok := strings.Cut(strings.TrimPrefix(path, "["), "]")
		if !ok || rest == "" || path[0] != '[' {
			return false
		}
		found := false
		for i, item := range here {
			if isSelected(i, item, selector) {
				found = drop(item, rest) || found
			}
		}
		return found
	default:
		return false
	}
}

// dropField removes what the path leads to in a map. A name may have dots itself.
func dropField(m map[string]any, path string) bool {
	name, ok := strings.CutPrefix(path, ".")
	if !ok {
		return false
	}
	if _, exists := m[name]; exists {
		delete(m, name)
		return true
	}
	for key, value := range m {
		rest, ok := strings.CutPrefix(name, key)
		if ok && rest != "" && (rest[0] == '.' || rest[0] == '[') && drop(value, rest) {
			return true
		}
	}
	return false
}

// isSelected is true of the item of a list that a selector names: by its index, or by
// fields, of which the manifest may leave some to their defaults.
func isSelected(index int, item any, selector string) bool {
	if selector == strconv.Itoa(index) {
		return true
	}
	fields, ok := item.(map[string]any)
	if !ok {
		return false
	}
	for field := range strings.SplitSeq(selector, ",") {
		name, want, ok := strings.Cut(field, "=")
		if !ok {
			return false
		}
		value, exists := fields[name]
		if text, isText := value.(string); isText {
			value = strconv.Quote(text)
		}
		if exists && fmt.Sprint(value) != want {
			return false
		}
	}
	return true
}
