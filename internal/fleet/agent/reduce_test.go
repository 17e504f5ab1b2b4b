package agent

import (
	"encoding/json"
	"fmt"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
)

// bearing is a Kustomization that has applied so many objects, as Flux keeps it.
func bearing(objects int) *kustomizev1.Kustomization {
	k := &kustomizev1.Kustomization{}
	k.Namespace, k.Name, k.Generation = "clusters", "c1-shop", 2
	k.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "RemoteAssemblage", Name: "c1", UID: "a"}}
	k.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "spillway"}}
	k.Spec.SourceRef = kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Name: "shop-1"}
	k.Spec.Path = "deploy"
	k.Status.ObservedGeneration, k.Status.LastAppliedRevision = 2, "v1@sha1:1"
	k.Status.Conditions = []metav1.Condition{{Type: "Healthy", Status: "True"}, {Type: meta.ReadyCondition, Status: "True", ObservedGeneration: 2}}
	k.Status.Inventory = &kustomizev1.ResourceInventory{}
	for i := range objects {
		k.Status.Inventory.Entries = append(k.Status.Inventory.Entries, kustomizev1.ResourceRef{ID: fmt.Sprintf("clusters_shop-%d_apps_Deployment", i), Version: "v1"})
		k.Status.History = append(k.Status.History, meta.Snapshot{Digest: fmt.Sprintf("sha256:%d", i)})
	}
	return k
}

func lengthOf(t *testing.T, k *kustomizev1.Kustomization) int {
	t.Helper()
	raw, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	return len(raw)
}

// What the cache keeps of a Kustomization does not grow with what it has applied, and
// says the same about it.
func TestTheCacheKeepsOfAKustomizationWhatIsLookedAt(t *testing.T) {
	none, many := bearing(0), bearing(300)
	before := lengthOf(t, many)
	source := &Source{Generation: 1, ObservedGeneration: 1, Revision: "v1@sha1:1"}
	whole := settle(&Observed{}, source, kustomization{many}, nil)
	reduceKustomization(none)
	reduceKustomization(many)
	if after := lengthOf(t, many); lengthOf(t, none) != after || after*10 > before {
		t.Errorf("of %d bytes %d are kept", before, after)
	}
	if got := settle(&Observed{}, source, kustomization{many}, nil); got != whole || got.state != v1alpha1.StateSucceeded {
		t.Errorf("%+v, and of the whole of it %+v", got, whole)
	}
	if many.Spec.Path != "deploy" {
		t.Error("what is wanted cannot be compared any more")
	}
}

// Of an unowned Kustomization, the cache keeps what it fetches from, so
// that no source is collected under it, and that it has its name.
func TestTheCacheKeepsTheExistenceOfAnUnownedKustomization(t *testing.T) {
	k := bearing(3)
	k.OwnerReferences = nil
	k.UID = "theirs"
	k.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"}
	reduceKustomization(k)
	want := &kustomizev1.Kustomization{}
	want.Namespace, want.Name, want.Generation, want.UID = k.Namespace, k.Name, k.Generation, "theirs"
	want.Spec.SourceRef = k.Spec.SourceRef
	if lengthOf(t, k) != lengthOf(t, want) || (kustomization{k}).fetches().String() != "GitRepository/shop-1" {
		t.Errorf("%+v", k)
	}
}
