package decision

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/gates/ask"
	"github.com/spillway-dev/spillway/internal/ring"
)

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
	// Fence changes an annotation of a Pod or a StatefulSet, so that no write that was
	// permitted arrives any more: it names another resourceVersion.
	Fence Act = "Fence"
	// Advance sets status.currentRevision to the update revision.
	Advance Act = "Advance"
	// CreateGate creates a RolloutGate of a zone, EndGate says of one during the zone that this
	// is over; DeleteGate deletes one of another revision.
	CreateGate Act = "CreateGate"
	EndGate    Act = "EndGate"
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
	// Question is for CreateGate, Gate for the others; At is when it was reached, or its zone
	// was over.
	Question *ask.Question
	Gate     *ask.Gate
	At       time.Time
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
	case w.Gate != nil:
		return w.Gate.Name
	default:
		return w.Zone
	}
}

// holds are the zones to hold immediately: open without permission, or not in the way
// in which it must be, or for longer than there is something to do.
func (d *decision) holds() []Write {
	var writes []Write
	for _, z := range d.zones {
		if d.hasToBeHeld(z) {
			writes = append(writes, d.hold(z))
		}
	}
	return writes
}

// fences withdraw the moves that are not wanted any more. Nothing else is permitted by
// giving one up before that: the request of another manager may arrive at any time.
func (d *decision) fences() []Write {
	var writes []Write
	for _, m := range d.intents.Fences() {
		writes = append(writes, Write{Act: Fence, Zone: m.Zone, Pod: m.Pod, UID: m.UID, ResourceVersion: m.ResourceVersion})
	}
	return writes
}

// hold is made whatever has become of the status of a zone in its turn. That of one
// that is lent is not: what tells so is no part of the spec.
func (d *decision) hold(z *zone) Write {
	w := Write{Act: Hold, Zone: z.Name, UID: z.UID, ResourceVersion: z.ResourceVersion, Done: d.isDone(z)}
	if d.isOurs(z) && !z.Lent {
		w.Generation, w.MaxUnavailable = z.Generation, z.MaxUnavailable
	}
	return w
}

func (d *decision) hasToBeHeld(z *zone) bool {
	switch {
	case z.Deleting || d.o.isPutOff(z.Name):
		return false
	case z.Lent && !z.lent(): // a user has set the type back, and what we noted remains
		return true
	case !z.open():
		return false
	case !d.isOurs(z) || !z.opensNatively() && !z.lent() || z.isTooWide():
		return true
	case z.stale():
		return false
	case z.lent() && (len(z.moves) > 0 || d.plan.At(z.Name).Step != nil):
		return false
	default:
		return !d.plan.Group(z.Name).Free || d.isDone(z) && (!z.lent() || z.CurrentRevision == z.UpdateRevision)
	}
}

// opensNatively is true if the controller keeps to all that the group asks for.
func (z *zone) opensNatively() bool {
	spec := &z.o.Group.Spec
	return z.o.Server.MaxUnavailable && spec.StuckPods != v1alpha1.KeepStuckPods && z.MinReady >= seconds(spec.MinReadySeconds)
}

// isTooWide is true if the controller may take down more than may be down.
func (z *zone) isTooWide() bool {
	return !z.lent() && z.MaxUnavailable > z.policy.Of(z.Replicas)
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
	w := Write{Act: Delete, Zone: m.Zone, Pod: m.Pod, UID: m.UID, ResourceVersion: m.ResourceVersion}
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

// gateWrites create the RolloutGates that zones have reached, say of those during a zone that it
// is over, and delete those that are about another revision than the present one of their zone.
func (d *decision) gateWrites() []Write {
	var writes []Write
	for _, z := range d.zones {
		at := d.plan.Group(z.Name)
		for _, q := range d.o.Gates.Missing(z.questions()) {
			if ask.IsReached(q.When, at) {
				writes = append(writes, Write{Act: CreateGate, Zone: z.Name, Question: &q, At: d.o.Now})
			}
		}
		if z.stale() {
			continue
		}
		for _, g := range d.o.Gates.Ending(z.Name, z.UpdateRevision, at) {
			writes = append(writes, d.gateWrite(EndGate, g))
		}
	}
	for _, g := range d.o.Gates.Outdated(d.keepsGate) {
		writes = append(writes, d.gateWrite(DeleteGate, g))
	}
	return writes
}

func (d *decision) gateWrite(act Act, g ask.Gate) Write {
	return Write{Act: act, Gate: &g, UID: g.UID, ResourceVersion: g.ResourceVersion, At: d.o.Now}
}

// keepsGate is true of the gate of a zone that is at the revision, or of which that is not
// known.
func (d *decision) keepsGate(zone, revision string) bool {
	z := d.zone(zone)
	return z == nil && !d.o.Live || z != nil && (z.stale() || z.UpdateRevision == revision)
}
