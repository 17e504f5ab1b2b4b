package manifests_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// others are the groups of kinds that others install: no API server here knows them.
var others = []string{"cert-manager.io", "monitoring.coreos.com", "gateway.networking.k8s.io"}

// TestEachValueIsAccepted asks an API server whether it would take what each value of the chart
// renders, and whether it knows each field.
func TestEachValueIsAccepted(t *testing.T) {
	c, err := client.New(testenv.Shared().Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]bool{} // most objects are the same with all values
	for name, s := range samples {
		t.Run(name, func(t *testing.T) {
			for _, obj := range objectsOf(t, s.with) {
				raw, err := obj.MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				if key := string(raw); !asked[key] {
					asked[key] = true
					accepts(t, c, obj)
				}
			}
		})
	}
}

func accepts(t *testing.T, c client.Client, obj *unstructured.Unstructured) {
	t.Helper()
	if ns := obj.GetNamespace(); ns != "" {
		err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
		if client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
	err := c.Create(t.Context(), obj, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
	newer := strings.HasPrefix(obj.GetKind(), "MutatingAdmissionPolicy") // than the oldest API servers
	if apimeta.IsNoMatchError(err) && (newer || slices.Contains(others, obj.GroupVersionKind().Group)) || apierrors.IsAlreadyExists(err) {
		return
	}
	if err != nil {
		t.Errorf("%s %s: %v", obj.GetKind(), obj.GetName(), err)
	}
}
