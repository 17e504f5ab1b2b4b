package write_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/write"
	"github.com/spillway-dev/spillway/rollout"
)

// TestBatches: only what one task applies of one kind of Kubernetes, or of kinds that only Pods
// use, is applied at the same time, and nothing is left out or changes places.
func TestBatches(t *testing.T) {
	of := func(act write.Act, group, kind, name, task string) write.Write {
		ref := object.Ref{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}, Name: name}
		return write.Write{Act: act, Ref: ref, Object: &unstructured.Unstructured{Object: map[string]any{}}, Path: rollout.Path{"main", "step", task}}
	}
	token := of(write.Apply, "", "Secret", "token", "three")
	token.Object.Object["type"] = "kubernetes.io/service-account-token"
	writes := []write.Write{
		{Act: write.AddFinalizer}, {Act: write.Identify},
		of(write.Apply, "", "Secret", "a", "one"), of(write.Apply, "", "Secret", "b", "one"),
		of(write.Apply, "", "Secret", "a", "one"), // once more, in another template
		of(write.Apply, "", "ConfigMap", "c", "one"), of(write.Apply, "", "ConfigMap", "d", "two"),
		of(write.Delete, "", "ConfigMap", "e", "two"), of(write.Delete, "", "ConfigMap", "f", "two"),
		of(write.Apply, "apps", "Deployment", "g", "two"), of(write.Apply, "apps", "Deployment", "h", "two"),
		of(write.Apply, "kudo.dev", "Instance", "i", "two"), of(write.Apply, "kudo.dev", "Instance", "j", "two"),
		of(write.Apply, "", "ServiceAccount", "k", "three"), of(write.Apply, "", "Secret", "k", "three"), token,
		of(write.Apply, "", "ConfigMap", "l", "three"), of(write.Apply, "", "Service", "m", "three"), of(write.Apply, "", "Service", "n", "three"),
	}
	var got []string
	for batch := range write.Batches(writes) {
		names := ""
		for _, w := range batch {
			names += fmt.Sprint(w.Act, " ", w.Ref.Name, ";")
		}
		got = append(got, names)
	}
	want := []string{
		"AddFinalizer ;", "Identify ;", "Apply a;Apply b;", "Apply a;Apply c;", "Apply d;", "Delete e;", "Delete f;",
		"Apply g;Apply h;", "Apply i;", "Apply j;", "Apply k;Apply k;", "Apply token;", "Apply l;", "Apply m;Apply n;",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for batch := range write.Batches(writes) { // it may end early
		if !slices.ContainsFunc(batch, func(w write.Write) bool { return w.Act == write.AddFinalizer }) {
			t.Errorf("it begins with %v", batch)
		}
		break
	}
}
