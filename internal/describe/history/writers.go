package history

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// written is a field manager, and when it last wrote the object.
type written struct {
	by string
	at time.Time
}

// writerOf is the field manager that wrote last of those that own something at one of
// the paths; the zero value if nobody does, or the API server does not say.
func writerOf(obj metav1.Object, paths ...[]string) written {
	var last written
	for _, e := range obj.GetManagedFields() {
		if e.Subresource != "" || e.FieldsV1 == nil || e.Time == nil || e.Time.Time.Before(last.at) {
			continue
		}
		raw := e.FieldsV1.GetRawBytes()
		if slices.ContainsFunc(paths, func(path []string) bool { return owns(raw, path) }) {
			last = written{by: e.Manager, at: e.Time.Time}
		}
	}
	return last
}

// owns is true if the fields have something at the path.
func owns(fields []byte, path []string) bool {
	for _, name := range path {
		var level map[string]json.RawMessage
		if json.Unmarshal(fields, &level) != nil || level["f:"+name] == nil {
			return false
		}
		fields = level["f:"+name]
	}
	return true
}

// people lists names, each once.
func people(names []string) string {
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}
