package object

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// legacy returns an object whose fields have these owners; note is the annotation of
// KUDO, which is not set if note is empty.
func legacy(t *testing.T, note string, entries ...metav1.ManagedFieldsEntry) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "app", "resourceVersion": "7"}}}
	if note != "" {
		u.SetAnnotations(map[string]string{vocabulary.LastAppliedConfiguration: note})
	}
	u.SetManagedFields(entries)
	return u
}

func entry(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
}

func TestTakeover(t *testing.T) {
	const (
		update, apply = metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
		note          = `{"spec":{"ports":[{"containerPort":80}],"list":["a"],"x":{"y":1}}}`
		fields        = `{"f:spec":{"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}},"k:{\"containerPort\":81,\"protocol\":\"TCP\"}":{".":{}}},` +
			`"f:list":{"v:\"a\"":{},"v:\"b\"":{}},"f:x":{"f:y":{},"f:z":{}},"f:other":{}}}`
		taken = `{"f:spec":{"f:list":{"v:\"a\"":{}},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}},"f:x":{"f:y":{}}}}`
		left  = `{"f:spec":{"f:list":{"v:\"b\"":{}},"f:other":{},"f:ports":{"k:{\"containerPort\":81,\"protocol\":\"TCP\"}":{}},"f:x":{"f:z":{}}}}`
	)
	for name, test := range map[string]struct {
		live *unstructured.Unstructured
		want []metav1.ManagedFieldsEntry
	}{
		"what was never KUDO's":                {legacy(t, "", entry("manager", update, fields)), nil},
		"what it no longer owns":               {legacy(t, note, entry("kubectl", update, fields)), nil},
		"a note that cannot be read":           {legacy(t, "{", entry("manager", update, fields)), nil},
		"a status":                             {legacy(t, note, metav1.ManagedFieldsEntry{Manager: "manager", Operation: update, Subresource: "status"}), nil},
		"fields that cannot be read":           {legacy(t, note, entry("manager", update, `[]`)), nil},
		"nothing of what it applied":           {legacy(t, note, entry("manager", update, `{"f:spec":{"f:other":{}}}`)), nil},
		"what it applied":                      {legacy(t, note, entry("kubectl", update, `{}`), entry("manager", update, fields)), []metav1.ManagedFieldsEntry{entry("kubectl", update, `{}`), entry("o", apply, taken), entry("manager", update, left)}},
		"all of it":                            {legacy(t, note, entry("manager", update, `{"f:spec":{"f:x":{"f:y":{}}}}`)), []metav1.ManagedFieldsEntry{entry("o", apply, `{"f:spec":{"f:x":{"f:y":{}}}}`)}},
		"what is partly the Instance's by now": {legacy(t, note, entry("o", apply, `{"f:spec":{"f:new":{}}}`), entry("manager", update, `{"f:spec":{"f:x":{"f:y":{}}}}`)), []metav1.ManagedFieldsEntry{entry("o", apply, `{"f:spec":{"f:new":{},"f:x":{"f:y":{}}}}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			patch := Takeover(test.live, "o")
			if test.want == nil {
				if patch != nil {
					t.Errorf("%s", patch)
				}
				return
			}
			want, err := json.Marshal([]map[string]any{
				{"op": "replace", "path": "/metadata/managedFields", "value": test.want}, {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"},
			})
			if err != nil {
				t.Fatal(err)
			}
			if string(patch) != string(want) {
				t.Errorf("the patch is\n%s\nand not\n%s", patch, want)
			}
		})
	}
}
