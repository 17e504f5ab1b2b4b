package trial

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Hidden are two states of an object without the values of a Secret: whether they differ is
// all that is shown.
func Hidden(before, after *unstructured.Unstructured) (_, _ *unstructured.Unstructured) {
	if IsSecret(before) || IsSecret(after) {
		mask(before, after, "(hidden)")
		for _, u := range []*unstructured.Unstructured{before, after} {
			if u != nil {
				unstructured.RemoveNestedField(u.Object, "metadata", "annotations", vocabulary.LastAppliedConfiguration)
				unstructured.RemoveNestedField(u.Object, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
			}
		}
	}
	return before, after
}

// IsSecret is true of a Secret.
func IsSecret(u *unstructured.Unstructured) bool {
	return u != nil && u.GroupVersionKind().GroupKind() == object.SecretKind
}

// mask replaces the values of Secrets: equal ones by the same text.
func mask(before, after *unstructured.Unstructured, text string) {
	for _, field := range []string{"data", "stringData"} {
		old, was := fieldsOf(before, field), fieldsOf(after, field)
		for key, value := range was {
			if other, ok := old[key]; ok && other != value {
				was[key] = text + " changed"
			} else {
				was[key] = text
			}
		}
		for key := range old {
			old[key] = text
		}
	}
}

func fieldsOf(u *unstructured.Unstructured, field string) map[string]any {
	if u == nil {
		return nil
	}
	fields, _ := u.Object[field].(map[string]any)
	return fields
}
