package plans

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/task"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// TestANameThatNoRequestCanHaveIsNotRead checks that no object of such a name exists, whatever has
// named it: an error would end each pass without a status.
func TestANameThatNoRequestCanHaveIsNotRead(t *testing.T) {
	b, s := &observer{follower: watchless{}}, &snapshot{} // it has no client
	s.Instance = &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}}
	for _, name := range []string{".", "..", "../x", "a/b", "a%b"} {
		for _, of := range []v1beta1.ObjectReference{{Name: name}, {Namespace: name, Name: "app-1"}} {
			if v, err := b.version(t.Context(), s, &v1beta1.InstanceSpec{OperatorVersion: of}, nil); v != nil || err != nil {
				t.Errorf("OperatorVersion %+v: %v, %v", of, v, err)
			}
		}
		ref := object.Ref{GroupVersionKind: task.GroupKind, Namespace: "shop", Name: name}
		if u, err := b.object(t.Context(), types.NamespacedName{}, ref, s, new(bool)); u != nil || err != nil {
			t.Errorf("RolloutGroup %s: %v, %v", name, u, err)
		}
	}
}

// What is kept for the next pass of a plan that waits has no state of its own, was applied by
// plans, is no Secret, and is good for this very Instance alone.
func TestWhatIsKeptWhileAPlanWaits(t *testing.T) {
	s := &snapshot{}
	s.Instance = &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}}
	s.Instance.Status.Execution = &v1beta1.Execution{}
	s.Objects = map[object.Ref]*unstructured.Unstructured{{}: nil} // one that does not exist
	put := func(apiVersion, kind, name string, spec map[string]any, labels map[string]string) {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "spec": spec}}
		u.SetName(name)
		u.SetLabels(labels)
		s.Objects[object.RefOf(u)] = u
	}
	ours := map[string]string{vocabulary.Heritage: vocabulary.HeritageOf}
	put("v1", "ConfigMap", "kept", nil, ours)
	put("v1", "Secret", "secret", nil, ours)
	put("v1", "Service", "kept", map[string]any{"type": "ClusterIP"}, ours)
	put("rbac.authorization.k8s.io/v1", "Role", "kept", nil, ours)
	put("v1", "ConfigMap", "foreign", nil, nil)
	put("v1", "Service", "balanced", map[string]any{"type": "LoadBalancer"}, ours)
	put("apps/v1", "Deployment", "works", nil, ours)
	put("v1", "PersistentVolumeClaim", "waits", nil, ours)

	k := keptOf(s, &results{})
	for ref := range k.of(s.Instance) {
		if ref.Name != "kept" {
			t.Errorf("%s is kept", ref)
		}
	}
	if n := len(k.of(s.Instance)); n != 3 {
		t.Errorf("%d objects are kept, want 3", n)
	}
	changed := s.Instance.DeepCopy()
	changed.ResourceVersion = "8"
	if n := len(k.of(changed)); n != 0 {
		t.Errorf("%d objects are good for another Instance", n)
	}
	s.Instance.Status.Execution.FinishedAt = &metav1.MicroTime{}
	if k := keptOf(s, &results{}); len(k.objects) != 0 {
		t.Errorf("%d objects are kept though no plan is running", len(k.objects))
	}
}
