package describe

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/fluxspec"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
)

// Assemblage is what is assigned to a cluster, whichever kind says so.
type Assemblage struct {
	client.Object

	// Cluster is the name of the cluster, Secret that of its kubeconfig.
	Cluster, Secret string
	// Assigned are those of the object itself: what is changed in them is changed there.
	Assigned []*fleetv1.Assignment
	Status   *fleetv1.AssemblageStatus
}

// AssemblageKind is the kind of the assemblages of a kind of modules.
func AssemblageKind(module string) string {
	if module == model.KindBootstrap {
		return KindRemote
	}
	return KindProxy
}

// NewAssemblages is an empty list of the assemblages of a kind of modules.
func NewAssemblages(module string) client.ObjectList {
	if module == model.KindBootstrap {
		return &fleetv1.RemoteAssemblageList{}
	}
	return &fleetv1.ProxyAssemblageList{}
}

// AssemblagesIn are those of a list.
func AssemblagesIn(list client.ObjectList) []Assemblage {
	var all []Assemblage
	_ = meta.EachListItem(list, func(item runtime.Object) error { // of a list it fails only if that function does
		if obj, ok := item.(client.Object); ok {
			all = append(all, AssemblageOf(obj))
		}
		return nil
	})
	return all
}

// AssemblageOf reads one. Of other objects it is empty.
func AssemblageOf(obj client.Object) Assemblage {
	a := Assemblage{Object: obj}
	var ref *fleetv1.ClusterReference
	switch o := obj.(type) {
	case *fleetv1.ProxyAssemblage:
		a.Secret, a.Status, ref = o.Spec.KubeconfigRef.Name, &o.Status, o.Spec.ClusterRef
		for i := range o.Spec.Assemblage.Syncs {
			a.Assigned = append(a.Assigned, &o.Spec.Assemblage.Syncs[i].Assignment)
		}
	case *fleetv1.RemoteAssemblage:
		a.Secret, a.Status, ref = o.Spec.KubeconfigRef.Name, &o.Status, o.Spec.ClusterRef
		for i := range o.Spec.Syncs {
			a.Assigned = append(a.Assigned, &o.Spec.Syncs[i].Assignment)
		}
	}
	a.Cluster = cluster.NameOf(a.Secret)
	if ref != nil {
		a.Cluster = ref.Name
	}
	return a
}

// Assignment is that of a module, nil if it is not assigned.
func (a *Assemblage) Assignment(module string) *fleetv1.Assignment {
	if i := slices.IndexFunc(a.Assigned, func(s *fleetv1.Assignment) bool { return s.Name == module }); i >= 0 {
		return a.Assigned[i]
	}
	return nil
}

// IsChart reports whether a sync is installed with Helm.
func (a *Assemblage) IsChart(sync string) bool {
	isOf := func(name string, source *fleetv1.Source, pkg *fleetv1.Package) bool {
		return name == sync && fluxspec.HelmOf(source, pkg) != nil
	}
	switch o := a.Object.(type) {
	case *fleetv1.ProxyAssemblage:
		return slices.ContainsFunc(o.Spec.Assemblage.Syncs, func(s fleetv1.ProxySync) bool { return isOf(s.Name, s.Source, s.Package) })
	case *fleetv1.RemoteAssemblage:
		return slices.ContainsFunc(o.Spec.Syncs, func(s fleetv1.RemoteSync) bool { return isOf(s.Name, s.Source, s.Package) })
	default:
		return false
	}
}
