package source

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	fixObject = "give it apiVersion, kind and metadata.name, or leave the file out"
	fixText   = "put the value in quotes"
	fixMap    = "write it as a map of names to values"
)

// mistake is what keeps an object from being read as one.
type mistake struct {
	path            []string
	problem, action string
}

// identity is what says which object an object is.
var identity = [][]string{{"apiVersion"}, {"kind"}, {"metadata", "name"}}

// mistakeIn is the first mistake in what every object has to have, and in what is
// read as a map of text later on, also of Pod templates.
func mistakeIn(u *unstructured.Unstructured) (mistake, bool) {
	if m, found := noMap(u, "metadata"); found {
		return m, true
	}
	for _, path := range identity {
		if m, found := noName(u, path); found {
			return m, true
		}
	}
	for _, path := range [][]string{{"metadata"}, {"spec", "template", "metadata"}} {
		for _, field := range []string{"labels", "annotations"} {
			if m, found := noTexts(u, append(slices.Clone(path), field)); found {
				return m, true
			}
		}
	}
	return mistake{}, false
}

// noName finds what is not said, or is no text. An object whose name is to be
// generated has none yet.
func noName(u *unstructured.Unstructured, path []string) (mistake, bool) {
	value, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
	text, isText := value.(string)
	field := strings.Join(path, ".")
	switch {
	case value != nil && !isText:
		return mistake{path, field + " is not a string", fixText}, true
	case text == "" && (field != "metadata.name" || u.GetGenerateName() == ""):
		return mistake{path, "has no " + field, fixObject}, true
	default:
		return mistake{}, false
	}
}

// noTexts finds values of labels or annotations that YAML takes for something else.
func noTexts(u *unstructured.Unstructured, path []string) (mistake, bool) {
	if m, found := noMap(u, path...); found {
		return m, true
	}
	value, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
	values, _ := value.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if _, isText := values[key].(string); !isText {
			return mistake{append(path, key), strings.Join(path, ".") + ": the value of " + key + " is not a string", fixText}, true
		}
	}
	return mistake{}, false
}

func noMap(u *unstructured.Unstructured, path ...string) (mistake, bool) {
	value, _, err := unstructured.NestedFieldNoCopy(u.Object, path...)
	_, isMap := value.(map[string]any)
	if err != nil || value == nil || isMap {
		return mistake{}, false
	}
	return mistake{path, strings.Join(path, ".") + " is not a map", fixMap}, true
}
