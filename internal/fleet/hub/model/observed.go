package model

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// Observed is one module and the clusters in its namespace, read at one moment.
// It is never changed.
type Observed struct {
	Now time.Time
	// By is the manager that decides.
	By     string
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
	// Unowned is the ModuleRevision that has the name of the one for what the module
	// says, and is not the module's. Nil if there is none.
	Unowned *Unowned
	// Gates are the RolloutGates of this module, in any order.
	Gates []Gate
	// Budgets are the ClusterBudgets of the namespace, in the order of their names, and Sharers the modules that may
	// share them; none where there is no budget.
	Budgets []Budget
	Sharers []Sharer
	// Refusals are writes that the API server did not accept, by cluster.
	Refusals ring.Refusals
	// Foreign are clusters of which another manager keeps a sync of this name: in
	// another assemblage, or in the same one after ours was removed.
	Foreign map[string]bool
	// Looks is true if it is looked what a cluster has before anything is assigned to it.
	Looks bool
	// LacksFlux is true if the hub does not have the kinds of Flux, without which nothing
	// that a BootstrapModule assigns is applied.
	LacksFlux bool
}

// Revision returns a ModuleRevision by name, nil if it was not observed.
func (o *Observed) Revision(name string) *Revision {
	for i := range o.Revisions {
		if o.Revisions[i].Name == name && name != "" {
			return &o.Revisions[i]
		}
	}
	return nil
}

// Gate returns a RolloutGate by name, nil if it was not observed.
func (o *Observed) Gate(name string) *Gate {
	for i := range o.Gates {
		if o.Gates[i].Name == name {
			return &o.Gates[i]
		}
	}
	return nil
}

// Module is what matters of a Module or a BootstrapModule.
type Module struct {
	Kind, Namespace, Name string
	UID                   types.UID
	// ResourceVersion is the precondition of every write of the status.
	ResourceVersion string
	Generation      int64
	Deleting        bool
	// Finalized is true if the module has our finalizer.
	Finalized bool
	// RemovalApproval is what a user has approved of removals, as the annotation says.
	RemovalApproval string
	// Retry is what a user has retried, as the annotation says, nil if nothing was.
	Retry *Retry
	// Steered is the last command of a user, nil if there is none.
	Steered *Steering
	// Writer is the field manager that wrote last what the module stands for, empty if that is not known.
	Writer string
	Spec   v1alpha1.ModuleSpec
	Status v1alpha1.ModuleStatus
}

// Template is what is to run, from either shape of the spec.
func (m *Module) Template() v1alpha1.TemplateSpec {
	switch {
	case m.Spec.Template != nil:
		return m.Spec.Template.Spec
	case m.Spec.Sync != nil:
		return v1alpha1.TemplateSpec{ControlPlaneBindings: m.Spec.ControlPlaneBindings, Sync: *m.Spec.Sync}
	default:
		return v1alpha1.TemplateSpec{}
	}
}

// TemplatePath is the path of the sync in the spec.
func (m *Module) TemplatePath() string {
	if m.Spec.Template == nil {
		return "spec.sync"
	}
	return "spec.template.spec.sync"
}

// Rollout are the particulars, none of them set where there are none.
func (m *Module) Rollout() v1alpha1.Rollout {
	if m.Spec.Rollout == nil {
		return v1alpha1.Rollout{}
	}
	return *m.Spec.Rollout
}

// IsExternal is true if another program rolls the module out.
func (m *Module) IsExternal() bool { return m.Spec.Strategy == v1alpha1.External }

func (m *Module) isIncremental() bool { return m.Spec.Strategy == v1alpha1.Incremental }

// IsStaged is true of strategies that have stages.
func (m *Module) IsStaged() bool { return m.isIncremental() || m.IsExternal() }

// DeletionPolicy returns what becomes of what runs, Delete if the module says nothing.
func (m *Module) DeletionPolicy() v1alpha1.DeletionPolicy {
	if m.Spec.DeletionPolicy == "" {
		return v1alpha1.Delete
	}
	return m.Spec.DeletionPolicy
}

// GivenUp is what is copied to each cluster of what was given up, nil if nothing was. A
// BootstrapModule copies nothing: of what it assigns nothing but what runs is on the clusters.
func (m *Module) GivenUp() *v1alpha1.GivenUp {
	g := m.Status.GivenUp
	if g == nil || m.Kind != KindModule || g.Revision != m.Status.RolledBack {
		return nil
	}
	return g
}

// Pause returns whether the rollout is paused, and by which user where a command did so.
func (m *Module) Pause() *rollout.Pause {
	s := m.Steered
	if s == nil || s.Verb != VerbPause {
		return &rollout.Pause{Reason: "spec.suspend is set"}
	}
	p := &rollout.Pause{By: s.By, Reason: Short(s.Reason, SaidLength), Since: s.At.Time}
	if p.Reason == "" {
		p.Reason = "spec.suspend is set"
	}
	return p
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
	// Facts are what it serves, nil if it was not asked, or no check of the module depends on it.
	Facts *cluster.Facts
	// Deleting is true once it is being deleted; it is left alone then.
	Deleting bool
	// Kubeconfig names the Secret with its kubeconfig.
	Kubeconfig v1alpha1.LocalReference
	// Ref is what stands for it on the hub.
	Ref v1alpha1.ClusterReference
	// Owner is what its assemblages are removed with. Nil if there is nothing.
	Owner *metav1.OwnerReference
}

// Revision is what matters of a ModuleRevision.
type Revision struct {
	Name            string
	UID             types.UID
	ResourceVersion string
	Number          int64
	Deleting        bool
	// Resolved is the commit or digest that it turned out to be, empty if that is unknown.
	Resolved string
	// Pinned is true if clusters are assigned that in place of its tag.
	Pinned bool
	// Variants are what it says on different clusters, Written what it did before it was known
	// what its tag resolves to. Nil if it is the same on all of them.
	Variants, Written *Variants
}

// Unowned is what matters of a ModuleRevision that is not the module's.
type Unowned struct {
	Name string
	// Orphaned is true if it says what the module does and has no owner.
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
	// Reached is true once the rollout has come to it; UID and ResourceVersion are the
	// preconditions of saying so.
	Reached bool
	// Rolls is true if it is to be said of the gate when its stage is over.
	Rolls           bool
	UID             types.UID
	ResourceVersion string
}
