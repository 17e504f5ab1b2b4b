package hub

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
)

// kind is what differs between Modules and BootstrapModules: the type of the module,
// and that of the assemblages that it writes.
type kind struct {
	name string
	// assemblage is the kind of the assemblages.
	assemblage string
	modules    func() client.ObjectList
	list       func() client.ObjectList
	// render makes the sync of a module what a revision says.
	render func(v1alpha1.Assignment, *v1alpha1.TemplateSpec) any
	// spec is what an assemblage says with these syncs.
	spec func(v1alpha1.LocalReference, *v1alpha1.ClusterReference, []any) map[string]any
}

func kinds() []*kind { return []*kind{modules(), bootstrapModules()} }

func kindNamed(name string) *kind {
	if name == model.KindBootstrap {
		return bootstrapModules()
	}
	return modules()
}

func bootstrapModules() *kind {
	return &kind{
		name: model.KindBootstrap, assemblage: "RemoteAssemblage",
		modules: func() client.ObjectList { return &v1alpha1.BootstrapModuleList{} },
		list:    func() client.ObjectList { return &v1alpha1.RemoteAssemblageList{} },
		render: func(a v1alpha1.Assignment, t *v1alpha1.TemplateSpec) any {
			s := model.Tidy(t.Sync)
			return &v1alpha1.RemoteSync{
				Assignment: a, SyncOptions: s.SyncOptions, ControlPlaneBindings: t.ControlPlaneBindings, Source: s.Source, Package: s.Package,
			}
		},
		spec: func(kubeconfig v1alpha1.LocalReference, ref *v1alpha1.ClusterReference, syncs []any) map[string]any {
			return specFor(kubeconfig, ref, "syncs", syncs)
		},
	}
}

func modules() *kind {
	return &kind{
		name: model.KindModule, assemblage: "ProxyAssemblage",
		modules: func() client.ObjectList { return &v1alpha1.ModuleList{} },
		list:    func() client.ObjectList { return &v1alpha1.ProxyAssemblageList{} },
		render: func(a v1alpha1.Assignment, t *v1alpha1.TemplateSpec) any {
			return &v1alpha1.ProxySync{NamedSync: v1alpha1.NamedSync{Assignment: a, Sync: model.Tidy(t.Sync)}, ControlPlaneBindings: t.ControlPlaneBindings}
		},
		spec: func(kubeconfig v1alpha1.LocalReference, ref *v1alpha1.ClusterReference, syncs []any) map[string]any {
			return specFor(kubeconfig, ref, "assemblage", map[string]any{"syncs": syncs})
		},
	}
}

// specFor is what an assemblage says of its cluster, and one thing more.
func specFor(kubeconfig v1alpha1.LocalReference, ref *v1alpha1.ClusterReference, key string, value any) map[string]any {
	spec := map[string]any{"kubeconfigRef": kubeconfig, key: value}
	if ref != nil {
		spec["clusterRef"] = ref
	}
	return spec
}

// says is true if a sync is what a template says for an assignment, but for a hold,
// which is not the module's, and for the copy of what was given up, which does not change what runs.
func (k *kind) says(sync any, a v1alpha1.Assignment, t *v1alpha1.TemplateSpec) bool {
	switch s := sync.(type) {
	case *v1alpha1.ProxySync:
		a.Hold, a.GivenUp = s.Hold, s.GivenUp
	case *v1alpha1.RemoteSync:
		a.Hold, a.GivenUp = s.Hold, s.GivenUp
	}
	wanted := k.render(a, t)
	return equality.Semantic.DeepEqual(sync, wanted) || equality.Semantic.DeepEqual(tidied(sync), wanted)
}

// tidied is a sync as it would be written now.
func tidied(sync any) any {
	switch s := sync.(type) {
	case *v1alpha1.ProxySync:
		s = s.DeepCopy()
		s.Sync = model.Tidy(s.Sync)
		return s
	case *v1alpha1.RemoteSync:
		s = s.DeepCopy()
		tidy := model.Tidy(v1alpha1.Sync{Source: s.Source, Package: s.Package})
		s.Source, s.Package = tidy.Source, tidy.Package
		return s
	default:
		return sync
	}
}

// leaving is a sync as it is, but for what becomes of what runs when it is removed and the copy of
// what was given up; and without a hold, which is not the module's.
func (k *kind) leaving(sync any, policy v1alpha1.DeletionPolicy, given *v1alpha1.GivenUp) any {
	switch s := sync.(type) {
	case *v1alpha1.ProxySync:
		s = s.DeepCopy()
		s.Hold, s.DeletionPolicy, s.GivenUp = nil, policy, given
		return s
	case *v1alpha1.RemoteSync:
		s = s.DeepCopy()
		s.Hold, s.DeletionPolicy, s.GivenUp = nil, policy, given
		return s
	default:
		return sync
	}
}

// itemsOf are the objects of a list, without copies.
func itemsOf(list client.ObjectList) []client.Object {
	switch l := list.(type) {
	case *v1alpha1.ProxyAssemblageList:
		return pointers(l.Items, func(a *v1alpha1.ProxyAssemblage) client.Object { return a })
	case *v1alpha1.RemoteAssemblageList:
		return pointers(l.Items, func(a *v1alpha1.RemoteAssemblage) client.Object { return a })
	case *v1alpha1.ModuleList:
		return pointers(l.Items, func(m *v1alpha1.Module) client.Object { return m })
	case *v1alpha1.BootstrapModuleList:
		return pointers(l.Items, func(m *v1alpha1.BootstrapModule) client.Object { return m })
	default:
		return nil
	}
}

func pointers[T any](items []T, object func(*T) client.Object) []client.Object {
	objects := make([]client.Object, len(items))
	for i := range items {
		objects[i] = object(&items[i])
	}
	return objects
}
