package lifecycle

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// write writes what would become of an object, if anything.
func (d *difference) write(w io.Writer) {
	name := strings.ToLower(d.Ref.Kind) + "/" + d.Ref.Name
	switch {
	case d.Refused != "":
		_, _ = fmt.Fprintf(w, "%s would be refused: %s\n", name, d.Refused)
		return
	case d.Unknown != "":
		_, _ = fmt.Fprintf(w, "%s is not compared: %s\n", name, d.Unknown)
		return
	case d.before == nil && d.after == nil:
		return
	case d.after == nil:
		_, _ = fmt.Fprintf(w, "%s would be deleted\n", name)
		return
	case d.Recreated:
		_, _ = fmt.Fprintf(w, "%s would be deleted and created again, because an immutable field changes\n", name)
	case d.before == nil:
		_, _ = fmt.Fprintf(w, "%s would be created\n", name)
	case d.Unchecked != "":
		_, _ = fmt.Fprintf(w, "%s: it is not known whether objects stay valid: %s\n", name, d.Unchecked)
	}
	before, after := stripped(d.before), stripped(d.after)
	hideTokens(before, after)
	before, after = withoutValues(before, after)
	_, lines, _ := bytes.Cut(diff.Diff(name+" now", text(before), name+" then", text(after)), []byte("\n")) // the first names both again
	_, _ = w.Write(lines)
}

// stripped is an object without what the API server and the manager set on their own.
func stripped(u *unstructured.Unstructured) *unstructured.Unstructured {
	if u == nil {
		return nil
	}
	c := u.DeepCopy()
	unstructured.RemoveNestedField(c.Object, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "ownerReferences", "selfLink"} {
		unstructured.RemoveNestedField(c.Object, "metadata", field)
	}
	for _, key := range []string{vocabulary.PlanAnnotation, vocabulary.PhaseAnnotation, vocabulary.StepAnnotation, vocabulary.ExecutionAnnotation} {
		unstructured.RemoveNestedField(c.Object, "metadata", "annotations", key)
	}
	unstructured.RemoveNestedField(c.Object, "spec", "template", "metadata", "creationTimestamp")
	return c
}

// text is an object as YAML, empty if there is none.
func text(u *unstructured.Unstructured) []byte {
	if u == nil {
		return nil
	}
	raw, err := yaml.Marshal(u.Object)
	if err != nil {
		return []byte(err.Error())
	}
	return bytes.TrimLeft(raw, "\n")
}
