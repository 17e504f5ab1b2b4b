package hub

import (
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

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

// recordOf is what an assemblage says of a module.
func recordOf(a *assembled, module string) model.Record {
	r := model.Record{
		Cluster: a.cluster(), Name: a.GetName(), UID: a.GetUID(), ResourceVersion: a.GetResourceVersion(), Generation: a.GetGeneration(),
		Fence:      vocabulary.Withdrawn.Get(a.GetAnnotations()),
		Kubeconfig: a.kubeconfig, Ref: a.ref, Deleting: a.GetDeletionTimestamp() != nil,
	}
	assignment, sync, assigned := a.sync(module)
	r.Leaving = !assigned && a.report(module) != nil
	r.Found, r.Silent, r.Unseen = a.found(module)
	if assignment == nil {
		return r
	}
	r.Sync = sync
	r.Assigned, r.Hold, r.Revision, r.DeletionPolicy = assigned, assignment.Hold, assignment.Revision, assignment.DeletionPolicy
	r.AssignedAt, r.Unready, r.GivenUp = ring.TimeOf(assignment.AssignedAt), assignment.Unready, assignment.GivenUp
	r.Overrides = assignment.Overrides
	if status := a.report(module); status != nil && assigned {
		readReport(&r, status, a)
	}
	return r
}

// cluster is the name of the cluster that it is for.
func (a *assembled) cluster() string {
	if a.ref != nil {
		return a.ref.Name
	}
	return strings.TrimSuffix(a.kubeconfig.Name, "-kubeconfig")
}

// sync is the one of a name: what is assigned, and the whole of it; nil if there is
// none.
func (a *assembled) sync(name string) (assignment *v1alpha1.Assignment, sync any, assigned bool) {
	switch o := a.Object.(type) {
	case *v1alpha1.ProxyAssemblage:
		for i := range o.Spec.Assemblage.Syncs {
			if s := &o.Spec.Assemblage.Syncs[i]; s.Name == name {
				return &s.Assignment, s, s.Source != nil || s.Found
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

// found is what was found of a module on the cluster, nil if nothing was; whether the cluster does
// not answer, so that nothing is known; and whether no manager has looked yet.
func (a *assembled) found(name string) (sync *v1alpha1.FoundSync, silent, unseen bool) {
	f := a.status.Found
	if f == nil {
		_, proxied := a.Object.(*v1alpha1.ProxyAssemblage)
		return nil, false, proxied && len(a.status.Syncs) == 0
	}
	for i := range f.Syncs {
		if f.Syncs[i].Name == name {
			return &f.Syncs[i], false, false
		}
	}
	return nil, f.Silent, false
}

func (a *assembled) report(name string) *v1alpha1.SyncStatus {
	for i := range a.status.Syncs {
		if a.status.Syncs[i].Name == name {
			return &a.status.Syncs[i]
		}
	}
	return nil
}

// readReport reads what became of a sync.
func readReport(r *model.Record, s *v1alpha1.SyncStatus, a *assembled) {
	r.Reported = s.Revision == r.Revision && ring.TimeOf(s.AssignedAt).Equal(r.AssignedAt)
	r.State, r.Since, r.Reason, r.Message = s.State, ring.TimeOf(s.LastTransitionTime), rollout.Reason(s.Reason), s.Message
	r.Succeeded, r.Resolved = s.LastSucceededRevision, s.Resolved
	r.Proven = r.Succeeded == r.Revision && s.LastSucceededAssignedAt != nil && ring.TimeOf(s.LastSucceededAssignedAt).Equal(r.AssignedAt)
	r.Noticed = a.status.ObservedGeneration >= a.GetGeneration() && (r.DeletionPolicy != v1alpha1.Orphan || s.DeletionPolicy == v1alpha1.Orphan)
}
