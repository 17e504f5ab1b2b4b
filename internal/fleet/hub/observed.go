package hub

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/rollout"
)

// The kinds of modules.
const (
	KindModule    = "Module"
	KindBootstrap = "BootstrapModule"
)

// Observed is one module and the clusters in its namespace, read at one moment.
// Nobody changes it.
type Observed struct {
	Now    time.Time
	Module Module
	// Clusters are those of the namespace, in any order.
	Clusters []Cluster
	// Records are what the assemblages say of this module, in any order, at most
	// one for a cluster.
	Records []Record
	// AsOf is how new the view of the assemblages is, as a resource version: it
	// shows everything up to that, and maybe more. Empty if nothing is known.
	AsOf string
	// Live is true if the assemblages were read from the API server itself, and not
	// from a cache; see [Plan.NeedsLive].
	Live bool
	// Revisions are the ModuleRevisions of this module, in any order.
	Revisions []Revision
	// Stranger is the ModuleRevision that has the name of the one for what the module
	// says, and is not the module's. Nil if there is none.
	Stranger *Stranger
	// Gates are the RolloutGates of this module, in any order.
	Gates []Gate
	// Refusals are writes that the API server did not accept, by cluster.
	Refusals map[string]Refusal
	// Foreign are clusters of which somebody else keeps a sync of this name: in
	// another assemblage, or in the same one after ours was removed.
	Foreign map[string]bool
}

// Module is what matters of a Module or a BootstrapModule.
type Module struct {
	Kind, Namespace, Name string
	UID                   types.UID
	// ResourceVersion is the precondition of every write of the status.
	ResourceVersion string
	Generation      int64
	Deleting        bool
	// Finalized is true if our finalizer is there.
	Finalized bool
	// Steered is what a person has told it last, nil if nobody has.
	Steered *Steering
	Spec    v1alpha1.ModuleSpec
	Status  v1alpha1.ModuleStatus
}

// Cluster is what the hub knows of a cluster.
type Cluster struct {
	Name   string
	UID    types.UID
	Labels map[string]string
	// Ready is true once its control plane has come up. Before that it is assigned
	// nothing; one that was assigned something before keeps it.
	Ready bool
	// Unreachable is true if it does not answer.
	Unreachable bool
	// Deleting is true once it is on its way out; it is left alone then.
	Deleting bool
	// Kubeconfig names the Secret with its kubeconfig.
	Kubeconfig v1alpha1.LocalReference
	// Ref is what stands for it on the hub.
	Ref v1alpha1.ClusterReference
	// Owner is what its assemblages are removed with. Nil if there is nothing.
	Owner *metav1.OwnerReference
}

// Record is what the assemblage of a cluster says of the module.
type Record struct {
	// Cluster is the name of the cluster.
	Cluster string
	// Name, UID, ResourceVersion and Generation are those of the assemblage.
	Name            string
	UID             types.UID
	ResourceVersion string
	Generation      int64
	// Deleting is true of an assemblage that is on its way out. What is written into
	// it goes with it.
	Deleting bool
	// Kubeconfig and Ref are what it says of the cluster.
	Kubeconfig v1alpha1.LocalReference
	Ref        *v1alpha1.ClusterReference
	// Assigned is true if there is a sync of the module. Without one, there may be
	// a Hold.
	Assigned bool
	// Revision is the one assigned. Where an assignment does not say so but is what
	// a revision says, it is that.
	Revision   string
	AssignedAt time.Time
	// Drifted is true if the sync is not what its revision and the module say.
	Drifted bool
	// Edited is true if what it is to run is not what its revision says, whatever the
	// module says besides.
	Edited bool
	// Follows is true if all that is different is that it follows a tag, of which it
	// is known by now what it stands for. It has nothing to gain by going on with it.
	Follows bool
	// Tagged is true of a sync that names such a tag, whether it is to be told now or not.
	Tagged bool
	// Stale is true if the sync was put right, and the report is of what it was before.
	Stale          bool
	DeletionPolicy v1alpha1.DeletionPolicy
	Hold           *v1alpha1.Hold
	// Reported is true if the rest speaks of this very assignment.
	Reported bool
	State    v1alpha1.State
	// Since is when the state began.
	Since   time.Time
	Reason  rollout.Reason
	Message string
	// Succeeded is the last revision at which the sync has succeeded.
	Succeeded string
	// Noticed is true once the last change of the assemblage has been seen by
	// whoever carries it out; where what runs is to stay, once it would if the sync
	// were removed.
	Noticed bool
	// Resolved is the commit or digest that runs.
	Resolved string
	// sync is the whole of what the assemblage has of the module.
	sync any
}

// Revision is what matters of a ModuleRevision.
type Revision struct {
	Name            string
	UID             types.UID
	ResourceVersion string
	Number          int64
	Deleting        bool
	Resolved        string
}

// Stranger is what matters of a ModuleRevision that is somebody else's.
type Stranger struct {
	Name string
	// Orphaned is true if it says what the module does and belongs to nobody.
	Orphaned bool
	// Whose says whose it is otherwise.
	Whose string
}

// Gate is what matters of a RolloutGate.
type Gate struct {
	Name, Revision, Stage, Gate string
	When                        v1alpha1.GateTime
	Verdict                     rollout.Verdict
	Message                     string
	Since                       time.Time
}

// Refusal is a write that was not accepted.
type Refusal struct {
	// At is when to try again.
	At time.Time
	// Reason is what the API server said.
	Reason string
}

// template is what is to run, from either shape of the spec.
func (m *Module) template() v1alpha1.TemplateSpec {
	switch {
	case m.Spec.Template != nil:
		return m.Spec.Template.Spec
	case m.Spec.Sync != nil:
		return v1alpha1.TemplateSpec{ControlPlaneBindings: m.Spec.ControlPlaneBindings, Sync: *m.Spec.Sync}
	default:
		return v1alpha1.TemplateSpec{}
	}
}

// rollout are the particulars, none of them set where there are none.
func (m *Module) rollout() v1alpha1.Rollout {
	if m.Spec.Rollout == nil {
		return v1alpha1.Rollout{}
	}
	return *m.Spec.Rollout
}

func (m *Module) isExternal() bool { return m.Spec.Strategy == v1alpha1.External }

func (m *Module) isIncremental() bool { return m.Spec.Strategy == v1alpha1.Incremental }

// staged is true of strategies that have stages.
func (m *Module) staged() bool { return m.isIncremental() || m.isExternal() }

func (o *Observed) revision(name string) *Revision {
	for i := range o.Revisions {
		if o.Revisions[i].Name == name && name != "" {
			return &o.Revisions[i]
		}
	}
	return nil
}
