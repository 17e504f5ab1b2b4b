package change

import (
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli/command"
)

// Show says what was done; or for machines, as kubectl does, writes the objects as they
// are now: one as it is, several as a List.
func Show(w io.Writer, output string, c client.Client, said string, changed ...client.Object) error {
	switch output {
	case "":
		_, err := fmt.Fprintln(w, said)
		return err //nolint:wrapcheck // nothing can be added to a broken pipe
	case command.OutputName:
		for _, obj := range changed {
			if _, err := fmt.Fprintln(w, Name(c, obj)); err != nil {
				return err //nolint:wrapcheck // nothing can be added to a broken pipe
			}
		}
		return nil
	}
	items := make([]any, len(changed))
	for i, obj := range changed {
		content, err := shown(c, obj)
		if err != nil {
			return err
		}
		items[i] = content
	}
	if len(items) == 1 {
		return command.Show(w, output, items[0], nil)
	}
	return command.Show(w, output, map[string]any{"apiVersion": "v1", "kind": "List", "items": items}, nil)
}

// shown is an object without what is not for reading. The manifest that kubectl keeps with a
// Secret has its values, so it is not shown of any object.
func shown(c client.Client, obj client.Object) (map[string]any, error) {
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return nil, fmt.Errorf("show %s: %w", obj.GetName(), err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("show %s/%s: %w", strings.ToLower(gvk.Kind), obj.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	u.SetManagedFields(nil)
	unstructured.RemoveNestedField(content, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	return content, nil
}
