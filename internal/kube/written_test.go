package kube_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/kube"
)

// TestLastWrite checks when and by whom an object was written last, also by what a cache keeps of that.
func TestLastWrite(t *testing.T) {
	created := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	wrote := func(by, field string, after time.Duration) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: by, Time: &metav1.Time{Time: created.Add(after)}, FieldsV1: metav1.NewFieldsV1(`{"f:` + field + `":{}}`)}
	}
	for name, c := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		after   time.Duration
		by      string
	}{
		"created":               {[]metav1.ManagedFieldsEntry{wrote("helm", "data", 0)}, 0, "helm"},
		"edited":                {[]metav1.ManagedFieldsEntry{wrote("kubectl-edit", "data", time.Minute), wrote("helm", "data", 0)}, time.Minute, "kubectl-edit"},
		"created by two":        {[]metav1.ManagedFieldsEntry{wrote("helm", "data", 0), wrote("kubectl", "data", 0)}, 0, ""},
		"edited elsewhere":      {[]metav1.ManagedFieldsEntry{wrote("helm", "data", 0), wrote("kubectl-label", "metadata", time.Minute)}, 0, "helm"},
		"edited twice":          {[]metav1.ManagedFieldsEntry{wrote("a", "data", time.Minute), wrote("b", "data", time.Hour)}, time.Hour, "b"},
		"by two in one second":  {[]metav1.ManagedFieldsEntry{wrote("a", "data", time.Hour), wrote("b", "data", time.Hour)}, time.Hour, ""},
		"two parts of the same": {[]metav1.ManagedFieldsEntry{wrote("a", "data", time.Hour), wrote("a", "data", time.Hour)}, time.Hour, "a"},
		"nothing is known":      {nil, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created), ManagedFields: c.entries}}
			kept := obj.DeepCopy()
			kept.ManagedFields = kube.Attribution(obj, "data")
			for _, o := range []*corev1.ConfigMap{obj, kept} {
				want := c.by
				if o == kept && c.after == 0 { // a cache keeps who has written it since
					want = ""
				}
				if at, by := kube.LastWrite(o, "data"); !at.Equal(created.Add(c.after)) || by != want {
					t.Errorf("written at %s by %q, want %s and %q", at, by, created.Add(c.after), c.by)
				}
			}
		})
	}
}
