//go:build upgrade

package upgrade_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// optional are the groups of kinds that others install: no API server here knows them.
var optional = []string{"cert-manager.io", "monitoring.coreos.com"}

// The API server takes all that is installed, with whatever values, and knows each field. The
// chart renders the same objects, which a test of the chart compares.
func TestAccepted(t *testing.T) {
	w, now := newWorld(t), current(t)
	raw, err := os.ReadFile(filepath.Join(root, "hack", "release", "chart", "testdata", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var table map[string]map[string]any
	if err := yaml.UnmarshalStrict(raw, &table); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{w.system, "shop", "payments", "mimir", "a", "b", "c"} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := w.client.Create(t.Context(), ns); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
	for name, values := range table {
		t.Run(name, func(t *testing.T) {
			text, err := yaml.Marshal(values)
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(now.program, "install", "--export", "-n", w.system, "--values=-")
			cmd.Stdin = strings.NewReader(string(text))
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			for part := range strings.SplitSeq(string(out), "---\n") {
				w.accepts(t, part)
			}
		})
	}
}

func (w *world) accepts(t *testing.T, manifest string) {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &obj.Object); err != nil {
		t.Fatal(err)
	}
	if len(obj.Object) == 0 {
		return
	}
	err := w.client.Create(t.Context(), obj, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
	for _, group := range optional {
		if obj.GroupVersionKind().Group == group && apimeta.IsNoMatchError(err) {
			return
		}
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Errorf("%s %s: %v", obj.GetKind(), obj.GetName(), err)
	}
}
