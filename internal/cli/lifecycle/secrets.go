package lifecycle

import (
	"encoding/base64"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// withoutValues are two states of an object without the values of a Secret: whether they differ is
// all that is shown.
func withoutValues(before, after *unstructured.Unstructured) (_, _ *unstructured.Unstructured) {
	if isSecret(before) || isSecret(after) {
		mask(before, after, hiddenText)
		for _, u := range []*unstructured.Unstructured{before, after} {
			if u != nil {
				unstructured.RemoveNestedField(u.Object, "metadata", "annotations", vocabulary.LastAppliedConfiguration)
				unstructured.RemoveNestedField(u.Object, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
			}
		}
	}
	return before, after
}

// isSecret is true of a Secret.
func isSecret(u *unstructured.Unstructured) bool {
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

// hiddenText stands where a value is that may be secret.
const hiddenText = "(hidden)"

// hideTokens hides what parameters from Secrets, which are not read here, make: where what would be
// applied has a token, what exists perhaps has the value.
func hideTokens(before, after *unstructured.Unstructured) {
	switch {
	case after == nil:
	case before == nil:
		after.Object, _ = hidden(nil, after.Object)
	default:
		after.Object, before.Object = hidden(before.Object, after.Object)
	}
}

// hidden returns both states of a map without what stands at the places of tokens.
func hidden(live, wanted map[string]any) (after, before map[string]any) {
	for key, value := range wanted {
		other, is := live[key]
		if wanted[key], other = hide(other, value); is {
			live[key] = other
		}
	}
	return wanted, live
}

// hide is hidden for a value of any type.
func hide(live, wanted any) (after, before any) {
	switch at := wanted.(type) {
	case string:
		raw, err := base64.StdEncoding.DecodeString(at)
		if choice.HasToken(at) || err == nil && choice.HasToken(string(raw)) {
			return hiddenText, hiddenText
		}
	case map[string]any:
		if other, ok := live.(map[string]any); ok || live == nil {
			after, before := hidden(other, at)
			return after, before
		}
	case []any:
		other, _ := live.([]any)
		for i := range at {
			if i < len(other) {
				at[i], other[i] = hide(other[i], at[i])
			} else {
				at[i], _ = hide(nil, at[i])
			}
		}
	}
	return wanted, live
}
