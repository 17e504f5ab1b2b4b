package decision

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/gates/ask"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// Plan is what the ring is about to do, and what it waits for.
type Plan struct {
	rollout.Plan
	// Tree is what the engine decided upon.
	Tree rollout.Observed
	// Writes are to be made in this order. There are none in a pass that permits.
	Writes []Write
	// Status is what the status of the group must be, and Permits is true if the
	// lock or the moves differ, so that this must be written before anything
	// is done. It is always written with the group's resourceVersion. Without
	// Permits it comes last, and only if it differs from what exists.
	Status  v1alpha1.RolloutGroupStatus
	Permits bool
	// NeedsLive is true if what comes next must not be decided from a cache, which
	// may not know of all that others did: a controller that replaced Pods on
	// itself, a holder whose lock has expired, a manager that was to act upon a
	// move and may have, or one that has decided from a newer view. Observe again,
	// live, and decide again immediately.
	NeedsLive bool
	// Problems are mistakes that stall the group.
	Problems []Problem
}

// Act is a kind of write.
type Act string

// The acts. Each carries the UID of its object, and its resourceVersion or generation.
const (
	// Hold sets the type to RollingUpdate and the partition to [Held], and takes
	// away the annotation of a lent strategy. It takes nothing down, so it needs
	// no permission.
	Hold Act = "Hold"
	// Open sets the partition to 0 and rollingUpdate.maxUnavailable.
	Open Act = "Open"
	// Lend sets the type to OnDelete, and the annotation of a lent strategy.
	Lend Act = "Lend"
	// Delete deletes a Pod.
	Delete Act = "Delete"
	// Advance sets status.currentRevision to the update revision.
	Advance Act = "Advance"
	// CreateGate creates a RolloutGate after a zone; DeleteGate deletes one of another
	// revision.
	CreateGate Act = "CreateGate"
	DeleteGate Act = "DeleteGate"
)

// Write is something to do to a StatefulSet or a Pod.
type Write struct {
	Act Act
	// Zone is the StatefulSet, Pod what is deleted.
	Zone, Pod       string
	UID             types.UID
	ResourceVersion string
	// Generation is the precondition in place of the resourceVersion where a zone in
	// its turn is held: that its status changes is no reason to leave it open.
	Generation int64
	// Done is true of a Hold of a zone of which every replica is where it should be.
	Done bool
	// MaxUnavailable is for Open and for Hold with a Generation, Revision for Advance.
	MaxUnavailable int
	Revision       string
	// Question, and when its gate was reached, are for CreateGate, Gate is the name for
	// DeleteGate.
	Question *ask.Question
	Reached  time.Time
	Gate     string
	// Until is when it is too late for the write; zero for never.
	Until time.Time
}

// Change identifies the write.
func (w *Write) Change() ring.Change {
	if w.Question != nil {
		return ring.Change{Act: string(w.Act), Object: w.Target()} // it has no version yet
	}
	return ring.Change{Act: string(w.Act), Object: w.Target(), Version: string(w.UID) + "/" + w.ResourceVersion}
}

// Target is the name of what is written to.
func (w *Write) Target() string {
	switch {
	case w.Pod != "":
		return w.Pod
	case w.Question != nil:
		return w.Question.Name()
	case w.Gate != "":
		return w.Gate
	default:
		return w.Zone
	}
}

// Decide makes the plan for a group. What moves is the engine's decision; the
// rest is permitting it, doing it, and keeping the records straight.
func Decide(o Observed) Plan { return plan(o, rollout.Decide) }

// engine is [rollout.Decide], or what a test puts around it.
type engine func(rollout.Observed) rollout.Plan

// plan asks the engine once about what is observed. If something is permitted, it
// asks once more about what is observed then, because that is what the status says.
func plan(o Observed, ask engine) Plan {
	o.Now = o.Now.Truncate(time.Microsecond) // as it comes back from the status
	d := decide(&o, ask)
	p := Plan{Plan: d.plan, Tree: d.tree, Problems: d.problems, Status: o.Group.Status}
	p.Wake = d.wake()
	if p.NeedsLive = o.isBehind(); p.NeedsLive {
		return p
	}
	p.Writes = d.holds()
	if len(p.Writes) == 0 {
		after, permits := d.permit()
		p.NeedsLive = d.needsLive(after)
		if permits && !p.NeedsLive {
			p.Permits = true
			p.Status = decide(after, ask).status()
			return p
		}
		p.Writes = d.acts()
	}
	p.Status = d.status()
	return p
}

// decision is one group being decided upon.
type decision struct {
	o        *Observed
	zones    []*zone
	intents  *ring.Intents[v1alpha1.Move]
	tree     rollout.Observed
	plan     rollout.Plan
	problems []Problem
}

// decide asks the engine.
func decide(o *Observed, ask engine) *decision {
	d := &decision{o: o, zones: o.zones(), problems: o.problems()}
	d.intents = o.intents(d.zone)
	d.tree = o.tree(d.zones)
	d.plan = ask(d.tree)
	return d
}

// acts are the moves to carry out, and what else is due.
func (d *decision) acts() []Write {
	var writes []Write
	due := d.intents.Due()
	for _, z := range d.zones {
		for _, m := range due {
			if m.Zone == z.Name && d.isOurs(z) {
				writes = append(writes, z.act(&m))
			}
		}
	}
	return slices.Concat(writes, d.advances(), d.gateWrites())
}

func (z *zone) act(m *v1alpha1.Move) Write {
	w := Write{Act: Delete, Zone: m.Zone, Pod: m.Pod, UID: m.UID, ResourceVersion: m.ResourceVersion, Until: ring.Until(m.At)}
	switch {
	case m.Pod != "":
	case m.Lend:
		w.Act = Lend
	default:
		w.Act, w.MaxUnavailable = Open, z.policy.Of(z.Replicas)
	}
	return w
}

// advances are for controllers that do not advance the current revision of a set
// of type OnDelete.
func (d *decision) advances() []Write {
	var writes []Write
	for _, z := range d.zones {
		due := z.Strategy == OnDelete && !d.o.Server.AdvancesRevision && z.CurrentRevision != z.UpdateRevision
		if due && !z.Deleting && len(d.problems) == 0 && d.isDone(z) && !d.o.isPutOff(z.Name) {
			writes = append(writes, Write{Act: Advance, Zone: z.Name, UID: z.UID, ResourceVersion: z.ResourceVersion, Revision: z.UpdateRevision})
		}
	}
	return writes
}

// wake is when time alone changes something: by the engine, or because a move
// or a lock runs out, or a refused write is tried again.
func (d *decision) wake() time.Time {
	wake := d.plan.Wake
	sooner := func(at time.Time) {
		if at.After(d.o.Now) && (wake.IsZero() || at.Before(wake)) {
			wake = at
		}
	}
	sooner(d.intents.Wake())
	sooner(d.o.Refusals.Wake(d.o.Now))
	for _, z := range d.zones {
		for i := range z.Pods {
			if p := &z.Pods[i]; !p.Ready && p.Revision != z.UpdateRevision {
				sooner(z.stuckAt(p))
			}
		}
	}
	if l := d.o.Group.Status.Lock; l != nil && l.Expires != nil {
		sooner(l.Expires.Time)
	}
	if d.phase() != rollout.PhaseComplete {
		sooner(d.o.closes())
	}
	return wake
}
