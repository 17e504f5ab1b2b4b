package task_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/task"
	"github.com/spillway-dev/spillway/rollout"
)

// TestBatches: only what one task applies of one kind of Kubernetes is applied at the same
// time, and nothing is left out or changes places.
func TestBatches(t *testing.T) {
	write := func(act task.Act, group, kind, name, of string) task.Write {
		ref := object.Ref{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}, Name: name}
		return task.Write{Act: act, Ref: ref, Path: rollout.Path{"main", "step", of}}
	}
	writes := []task.Write{
		{Act: task.AddFinalizer}, {Act: task.Identify},
		write(task.Apply, "", "Secret", "a", "one"), write(task.Apply, "", "Secret", "b", "one"),
		write(task.Apply, "", "Secret", "a", "one"), // once more, in another template
		write(task.Apply, "", "ConfigMap", "c", "one"), write(task.Apply, "", "ConfigMap", "d", "two"),
		write(task.Delete, "", "ConfigMap", "e", "two"), write(task.Delete, "", "ConfigMap", "f", "two"),
		write(task.Apply, "apps", "Deployment", "g", "two"), write(task.Apply, "apps", "Deployment", "h", "two"),
		write(task.Apply, "kudo.dev", "Instance", "i", "two"), write(task.Apply, "kudo.dev", "Instance", "j", "two"),
	}
	var got []string
	for batch := range task.Batches(writes) {
		names := ""
		for _, w := range batch {
			names += fmt.Sprint(w.Act, " ", w.Ref.Name, ";")
		}
		got = append(got, names)
	}
	want := []string{
		"AddFinalizer ;", "Identify ;", "Apply a;Apply b;", "Apply a;", "Apply c;", "Apply d;", "Delete e;", "Delete f;",
		"Apply g;Apply h;", "Apply i;", "Apply j;",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for batch := range task.Batches(writes) { // it may end early
		if !slices.ContainsFunc(batch, func(w task.Write) bool { return w.Act == task.AddFinalizer }) {
			t.Errorf("it begins with %v", batch)
		}
		break
	}
}
