package lifecycle

import (
	"encoding/base64"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/choice"
)

// What a parameter from a Secret makes is shown neither as it is nor as it would be; all else is compared.
func TestWhatComesFromASecretIsNotShown(t *testing.T) {
	spec := v1beta1.InstanceSpec{ParametersFrom: []v1beta1.ParameterSource{{Name: "P", SecretKeyRef: v1beta1.SecretKeyReference{Name: "db", Key: "password"}}}}
	token := choice.WithTokens(&spec)["P"]
	object := func(value, size string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"data": map[string]any{"url": "db://me:" + value + "@db", "encoded": base64.StdEncoding.EncodeToString([]byte(value)), "size": size},
			"list": []any{map[string]any{"name": "a", "value": value}, "b"},
		}}
	}
	shown := func(size string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"data": map[string]any{"url": "(hidden)", "encoded": "(hidden)", "size": size},
			"list": []any{map[string]any{"name": "a", "value": "(hidden)"}, "b"},
		}}
	}
	before, after := object("hunter2", "1"), object(token, "2")
	hideTokens(before, after)
	if diff := cmp.Diff(shown("1"), before) + cmp.Diff(shown("2"), after); diff != "" {
		t.Error(diff)
	}
	hideTokens(nil, object(token, "2"))
}
