package decision

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	spillway "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// Decide makes the plan for a module. Which cluster moves is the engine's
// decision; the rest is permitting it, doing it, and keeping the records straight.
func Decide(o model.Observed) Plan {
	o.Now = o.Now.Truncate(time.Microsecond) // as it comes back from the status
	d := decide(&o)
	p := Plan{Plan: d.plan, Tree: d.tree, Aside: d.rest, Status: o.Module.Status}
	p.Holds = append(p.Holds, d.restPlan.Holds...)
	p.Wake, p.Asks = d.wake(), d.asks
	if p.NeedsLive = !o.Live && (d.isBehind() || d.intents.Unverified()); p.NeedsLive {
		return p
	}
	if o.Module.Deleting {
		p.Writes, p.Status = append(d.budgetNotes(), d.deletionWrites()...), d.deletingStatus()
		return p
	}
	if d.needsFinalizer() {
		p.Writes = []Write{{Act: AddFinalizer}}
		return p
	}
	if p.Writes = append(d.fences(), d.withdraw()...); len(p.Writes) > 0 { // before anything else is permitted
		p.Status = d.status()
		return p
	}
	if p.Writes = d.formerGates(); len(p.Writes) > 0 { // nor does anything begin while a gate of another time stands
		return p
	}
	if d.resolve(&p) {
		return p
	}
	if retried := d.retried(); retried != nil {
		p.Permits, p.Status = true, d.status()
		p.Status.RolledBack, p.Status.GivenUp, p.Status.Retried = "", nil, retried
		return p
	}
	if given := d.toldGivenUp(); given != nil { // before anything is taken over that tells so
		p.Permits, p.Status = true, d.status()
		p.Status.RolledBack, p.Status.GivenUp = d.wanted, given
		return p
	}
	// Nothing rolls before it is known what runs, before there is a gate, which measures nothing until then, and before what
	// permits it.
	for _, first := range []func() []Write{d.takes, d.creates, d.budgetNotes} {
		if p.Writes = first(); len(p.Writes) > 0 {
			p.Status = d.status()
			return p
		}
	}
	if status, permits := d.permit(); permits {
		p.Permits, p.Status = true, *status
		return p
	}
	p.Writes, p.Status = d.writes(), d.status()
	return p
}

// Plan is what the ring is about to do, and what it waits for.
type Plan struct {
	rollout.Plan
	// Tree is what the engine decided upon; Aside are clusters that are not part of
	// the rollout, with their holds at the end of the plan's.
	Tree, Aside rollout.Observed
	// Writes are to be made in this order. There are none in a pass that permits.
	Writes []Write
	// Status is what the status of the module must be, and Permits is true if it
	// must be written before anything is done. It is always written with the
	// module's resourceVersion. Without Permits it comes last, and only if it
	// differs from the current status.
	Status  v1alpha1.ModuleStatus
	Permits bool
	// Asks are clusters of which it is to be known what they serve.
	Asks []string
	// NeedsLive is true if what comes next must not be decided from a cache, which
	// may not know of all that others did. Observe again, live, and decide again.
	NeedsLive bool
}

// Act is a kind of write.
type Act string

// The acts.
const (
	// AddFinalizer and RemoveFinalizer are about the module itself.
	AddFinalizer    Act = "AddFinalizer"
	RemoveFinalizer Act = "RemoveFinalizer"
	// CreateRevision creates the ModuleRevision of the template; DeleteRevision deletes
	// one that is not needed any more.
	CreateRevision Act = "CreateRevision"
	DeleteRevision Act = "DeleteRevision"
	// AdoptRevision makes one ours that says what the template does and has
	// no owner: its module was deleted without it.
	AdoptRevision Act = "AdoptRevision"
	// Resolve notes in a ModuleRevision which commit or digest it turned out to be.
	Resolve Act = "Resolve"
	// CreateGate creates a RolloutGate for a user or another client to decide.
	CreateGate Act = "CreateGate"
	// ReachGate notes in a RolloutGate that the rollout has come to it, EndGate in one during
	// a stage that this is over.
	ReachGate Act = "ReachGate"
	EndGate   Act = "EndGate"
	// DeleteGate deletes the gate of an earlier rollout of the revision that is rolled out now: what was
	// decided then says nothing about this one.
	DeleteGate Act = "DeleteGate"
	// CreateAssemblage makes an empty assemblage for a cluster that has none.
	CreateAssemblage Act = "CreateAssemblage"
	// Fence changes an annotation of an assemblage, so that no move that was permitted is
	// made any more: it names another resourceVersion.
	Fence Act = "Fence"
	// Assign writes the sync of the module into the assemblage of a cluster, as a
	// move permits.
	Assign Act = "Assign"
	// Correct writes a sync again that is not what its revision says; of one whose
	// revision is gone nothing but what becomes of what runs. It moves nothing to
	// another revision.
	Correct Act = "Correct"
	// Take writes into the assemblage of a cluster that it has what was found there.
	Take Act = "Take"
	// Note writes into a budget that several modules share which clusters the module is updating.
	Note Act = "Note"
	// Unassign removes the sync.
	Unassign Act = "Unassign"
)

// Write is something to do.
type Write struct {
	Act Act
	// Cluster is that of an assemblage, nil if there is none any more; Record is
	// what was seen of it, nil if there is no assemblage.
	Cluster *model.Cluster
	Record  *model.Record
	// Revision is what is assigned, made or deleted, Overrides those of it that the cluster has,
	// AssignedAt since when, and Unready whether the cluster was not ready before.
	Revision   string
	Overrides  []string
	AssignedAt time.Time
	Unready    bool
	// Number is for CreateRevision, Resolved and the UID of the revision for Resolve,
	// Stage and Gate for CreateGate.
	Number   int64
	Resolved string
	UID      types.UID
	Stage    string
	Gate     v1alpha1.Gate
	// ResourceVersion and At are for ReachGate, EndGate and DeleteGate, with UID, Stage and Gate.
	ResourceVersion string
	At              time.Time
	// Budget and Note are for Note: what is written to, and what the module says there, nil if nothing.
	Budget *model.Budget
	Note   *spillway.BudgetModule
}

// Change identifies the write.
func (w *Write) Change() ring.Change {
	c := ring.Change{Act: string(w.Act), Object: w.Target()}
	switch {
	case w.Record != nil:
		c.Version = w.Record.ResourceVersion
	case w.Budget != nil:
		c.Version = string(w.Budget.UID) + "/" + w.Budget.ResourceVersion
	case w.isOfGate():
		c.Version = string(w.UID) + "/" + w.ResourceVersion
	case w.Act == Resolve:
		c.Version = string(w.UID) // there may be another revision of the name
	case w.Act == Assign:
		c.Version = w.AssignedAt.String()
	}
	return c
}

// Target is what is written to, by name.
func (w *Write) Target() string {
	switch {
	case w.Record != nil:
		return w.Record.Cluster
	case w.Cluster != nil:
		return w.Cluster.Name
	case w.Budget != nil:
		return budgetTarget(w.Budget)
	case w.Act == CreateGate, w.isOfGate():
		return model.GateName(w.Revision, w.Stage, w.Gate)
	default:
		return w.Revision
	}
}

// isOfGate is true of a write to a gate that exists.
func (w *Write) isOfGate() bool { return w.Act == ReachGate || w.Act == EndGate || w.Act == DeleteGate }
