package hub

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/rollout"
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

func modules() *kind {
	return &kind{
		name: KindModule, assemblage: "ProxyAssemblage",
		modules: func() client.ObjectList { return &v1alpha1.ModuleList{} },
		list:    func() client.ObjectList { return &v1alpha1.ProxyAssemblageList{} },
		render: func(a v1alpha1.Assignment, t *v1alpha1.TemplateSpec) any {
			return &v1alpha1.ProxySync{NamedSync: v1alpha1.NamedSync{Assignment: a, Sync: t.Sync}, ControlPlaneBindings: t.ControlPlaneBindings}
		},
		spec: func(kubeconfig v1alpha1.LocalReference, ref *v1alpha1.ClusterReference, syncs []any) map[string]any {
			return specFor(kubeconfig, ref, "assemblage", map[string]any{"syncs": syncs})
		},
	}
}

func bootstrapModules() *kind {
	return &kind{
		name: KindBootstrap, assemblage: "RemoteAssemblage",
		modules: func() client.ObjectList { return &v1alpha1.BootstrapModuleList{} },
		list:    func() client.ObjectList { return &v1alpha1.RemoteAssemblageList{} },
		render: func(a v1alpha1.Assignment, t *v1alpha1.TemplateSpec) any {
			return &v1alpha1.RemoteSync{
				Assignment: a, SyncOptions: t.Sync.SyncOptions, ControlPlaneBindings: t.ControlPlaneBindings,
				Source: t.Sync.Source, Package: t.Sync.Package,
			}
		},
		spec: func(kubeconfig v1alpha1.LocalReference, ref *v1alpha1.ClusterReference, syncs []any) map[string]any {
			return specFor(kubeconfig, ref, "syncs", syncs)
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

// Parts are the spec and the status of a module of either kind.
func Parts(obj client.Object) (*v1alpha1.ModuleSpec, *v1alpha1.ModuleStatus) {
	switch o := obj.(type) {
	case *v1alpha1.Module:
		return &o.Spec, &o.Status
	case *v1alpha1.BootstrapModule:
		return &o.Spec, &o.Status
	default:
		return &v1alpha1.ModuleSpec{}, &v1alpha1.ModuleStatus{}
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

// assembled is what an assemblage of either kind says, as far as it is the same.
type assembled struct {
	client.Object

	kubeconfig v1alpha1.LocalReference
	ref        *v1alpha1.ClusterReference
	status     *v1alpha1.AssemblageStatus
}

func assembledOf(obj client.Object) assembled {
	switch o := obj.(type) {
	case *v1alpha1.ProxyAssemblage:
		return assembled{o, o.Spec.KubeconfigRef, o.Spec.ClusterRef, &o.Status}
	case *v1alpha1.RemoteAssemblage:
		return assembled{o, o.Spec.KubeconfigRef, o.Spec.ClusterRef, &o.Status}
	default:
		return assembled{Object: obj, status: &v1alpha1.AssemblageStatus{}}
	}
}

// cluster is the name of the cluster that it is for.
func (a *assembled) cluster() string {
	if a.ref != nil {
		return a.ref.Name
	}
	return strings.TrimSuffix(a.kubeconfig.Name, "-kubeconfig")
}

// names are those of its syncs.
func (a *assembled) names() []string {
	var names []string
	switch o := a.Object.(type) {
	case *v1alpha1.ProxyAssemblage:
		for i := range o.Spec.Assemblage.Syncs {
			names = append(names, o.Spec.Assemblage.Syncs[i].Name)
		}
	case *v1alpha1.RemoteAssemblage:
		for i := range o.Spec.Syncs {
			names = append(names, o.Spec.Syncs[i].Name)
		}
	}
	return names
}

// sync is the one of a name: what is assigned, and the whole of it; nil if there is
// none.
func (a *assembled) sync(name string) (assignment *v1alpha1.Assignment, sync any, assigned bool) {
	switch o := a.Object.(type) {
	case *v1alpha1.ProxyAssemblage:
		for i := range o.Spec.Assemblage.Syncs {
			if s := &o.Spec.Assemblage.Syncs[i]; s.Name == name {
				return &s.Assignment, s, s.Source != nil
			}
		}
	case *v1alpha1.RemoteAssemblage:
		for i := range o.Spec.Syncs {
			if s := &o.Spec.Syncs[i]; s.Name == name {
				return &s.Assignment, s, s.Source != nil || s.SourceRef != nil
			}
		}
	}
	return nil, nil, false
}

func (a *assembled) report(name string) *v1alpha1.SyncStatus {
	for i := range a.status.Syncs {
		if a.status.Syncs[i].Name == name {
			return &a.status.Syncs[i]
		}
	}
	return nil
}

// says is true if a sync is what a template says for an assignment, but for a hold,
// which is not the module's.
func (k *kind) says(sync any, a v1alpha1.Assignment, t *v1alpha1.TemplateSpec) bool {
	switch s := sync.(type) {
	case *v1alpha1.ProxySync:
		a.Hold = s.Hold
	case *v1alpha1.RemoteSync:
		a.Hold = s.Hold
	}
	return equality.Semantic.DeepEqual(sync, k.render(a, t))
}

// leaving is a sync as it is, but for what becomes of what runs when it is removed; and
// without a hold, which is not the module's.
func (k *kind) leaving(sync any, policy v1alpha1.DeletionPolicy) any {
	switch s := sync.(type) {
	case *v1alpha1.ProxySync:
		s = s.DeepCopy()
		s.Hold, s.DeletionPolicy = nil, policy
		return s
	case *v1alpha1.RemoteSync:
		s = s.DeepCopy()
		s.Hold, s.DeletionPolicy = nil, policy
		return s
	default:
		return sync
	}
}

// recordOf is what an assemblage says of a module.
func recordOf(a *assembled, module string) Record {
	r := Record{
		Cluster: a.cluster(), Name: a.GetName(), UID: a.GetUID(), ResourceVersion: a.GetResourceVersion(), Generation: a.GetGeneration(),
		Kubeconfig: a.kubeconfig, Ref: a.ref, Deleting: a.GetDeletionTimestamp() != nil,
	}
	assignment, sync, assigned := a.sync(module)
	if assignment == nil {
		return r
	}
	r.sync = sync
	r.Assigned, r.Hold, r.Revision, r.DeletionPolicy = assigned, assignment.Hold, assignment.Revision, assignment.DeletionPolicy
	r.AssignedAt = timeOf(assignment.AssignedAt)
	if status := a.report(module); status != nil && assigned {
		readReport(&r, status, a)
	}
	return r
}

// report reads what became of a sync.
func readReport(r *Record, s *v1alpha1.SyncStatus, a *assembled) {
	r.Reported = s.Revision == r.Revision && timeOf(s.AssignedAt).Equal(r.AssignedAt)
	r.State, r.Since, r.Reason, r.Message = s.State, timeOf(s.LastTransitionTime), rollout.Reason(s.Reason), s.Message
	r.Succeeded, r.Resolved = s.LastSucceededRevision, s.Resolved
	r.Noticed = a.status.ObservedGeneration >= a.GetGeneration() && (r.DeletionPolicy != v1alpha1.Orphan || s.DeletionPolicy == v1alpha1.Orphan)
}

func timeOf(t *metav1.MicroTime) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// New is an empty module of a kind.
func New(moduleKind string) client.Object {
	if moduleKind == KindBootstrap {
		return &v1alpha1.BootstrapModule{}
	}
	return &v1alpha1.Module{}
}

// NewAssemblage is an empty assemblage as modules of a kind write them.
func NewAssemblage(moduleKind string) client.Object {
	if moduleKind == KindBootstrap {
		return &v1alpha1.RemoteAssemblage{}
	}
	return &v1alpha1.ProxyAssemblage{}
}
