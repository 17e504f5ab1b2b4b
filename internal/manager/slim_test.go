package manager

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
)

// The cache of every ring that watches Kustomizations keeps of them only what it
// reads; who has written something it keeps of modules alone.
func TestTheCacheKeepsOnlyWhatRingsLookAt(t *testing.T) {
	written := metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}}
	for name, keeps := range map[string]bool{RingFleet: true, RingAssemblage: false} {
		rings, err := Options{Rings: []string{name}}.rings()
		if err != nil {
			t.Fatal(err)
		}
		slim := slimmed(rings)
		k := &kustomizev1.Kustomization{ObjectMeta: written, Status: kustomizev1.KustomizationStatus{Inventory: &kustomizev1.ResourceInventory{}}}
		if _, err := slim(k); err != nil || k.Status.Inventory != nil || k.ManagedFields != nil {
			t.Errorf("%s keeps %+v: %v", name, k, err)
		}
		for obj, want := range map[client.Object]bool{
			&v1alpha1.Module{ObjectMeta: *written.DeepCopy()}: keeps, &v1alpha1.ProxyAssemblage{ObjectMeta: *written.DeepCopy()}: false,
		} {
			if _, err := slim(obj); err != nil || (obj.GetManagedFields() != nil) != want {
				t.Errorf("%s keeps who has written %T: %v", name, obj, err)
			}
		}
	}
}
