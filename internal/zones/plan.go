package zones

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/rollout"
)

// Plan is what the ring is about to do, and what it waits for.
type Plan struct {
	rollout.Plan
	// Tree is what the engine decided upon.
	Tree rollout.Observed
	// Writes are to be made in this order. There are none in a pass that permits.
	Writes []Write
	// Status is what the status of the group has to be, and Permits is true if the
	// lock or the moves differ, so that this has to be written before anything
	// is done. It is always written with the group's resourceVersion. Without
	// Permits it comes last, and only if it differs from what is there.
	Status  v1alpha1.RolloutGroupStatus
	Permits bool
	// NeedsLive is true if what comes next must not be decided from a cache, which
	// may not know of all that others did: a controller that replaced Pods by
	// itself, a holder whose lock has expired, or a manager that was to act upon a
	// move and may have. Observe again, live, and decide again at once.
	NeedsLive bool
	// Problems are mistakes that stall the group.
	Problems []Problem
}

// Act is a kind of write.
type Act string

// The acts. Each carries the UID and the resourceVersion of its object.
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
)

// Write is something to do to a StatefulSet or a Pod.
type Write struct {
	Act Act
	// Zone is the StatefulSet, Pod what is deleted.
	Zone, Pod       string
	UID             types.UID
	ResourceVersion string
	// MaxUnavailable is for Open, Revision for Advance.
	MaxUnavailable int
	Revision       string
	// Until is when it is too late for the write; zero for never.
	Until time.Time
}

// Decide makes the plan for a group. What moves is the engine's decision; the
// rest is permitting it, doing it, and keeping the records straight.
func Decide(o Observed) Plan {
	d := decide(&o)
	p := Plan{Plan: d.plan, Tree: d.tree, Problems: d.problems, Status: o.Group.Status}
	p.Wake = d.wake()
	if o.isBehind() {
		return p
	}
	p.Writes = d.holds()
	if len(p.Writes) == 0 {
		after, permits := d.permit()
		p.NeedsLive = d.needsLive(after)
		if permits && !p.NeedsLive {
			p.Permits = true
			p.Status = decide(after).status()
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
	tree     rollout.Observed
	plan     rollout.Plan
	problems []Problem
}

// decide asks the engine. A zone that is held and must not be opened now is told
// apart by what the engine says of its other Pods and zones, and it is asked again.
func decide(o *Observed) *decision {
	d := &decision{o: o, zones: o.zones(), problems: o.problems()}
	d.ask()
	if barred := d.bar(); barred != nil {
		d.ask()
		if d.isStuck() {
			barred.barred, barred.lends = false, true
			d.ask()
		}
	}
	return d
}

// isStuck is true if nothing moves, and nothing is on its way that might change that.
func (d *decision) isStuck() bool {
	return len(d.plan.Steps) == 0 && d.plan.Phase != rollout.PhaseProgressing
}

func (d *decision) ask() {
	d.tree = d.o.tree(d.zones)
	d.plan = rollout.Decide(d.tree)
}

// bar finds the zones that are held and must not be opened, and returns the first.
// The engine may let Pods move there that are down, which takes nothing away; but
// to open the zone lets those move as well that are up, or will be by then.
func (d *decision) bar() *zone {
	var first *zone
	for i, z := range d.zones {
		if z.held() && d.plan.At(z.Name).Step != nil && (d.waits(i) || d.isSecond(i)) {
			z.barred = true
			first = cmp.Or(first, z)
		}
	}
	return first
}

// isSecond is true if another zone than this one is disrupted or settles, so that
// the engine lets nothing here move that is up.
func (d *decision) isSecond(i int) bool {
	return slices.ContainsFunc(d.zones, func(other *zone) bool {
		return other != d.zones[i] && d.claims(other)
	})
}

// claims is true of a zone of which some Pod is not available, or that only has to
// soak or to be held again.
func (d *decision) claims(z *zone) bool {
	i := slices.Index(d.zones, z)
	counts := d.count(i)
	return counts.Available < counts.Total || slices.ContainsFunc(d.plan.Holds, func(h rollout.Hold) bool {
		return len(h.Path) == 1 && h.Path[0] == z.Name
	})
}

func (d *decision) zone(name string) *zone {
	i := slices.IndexFunc(d.zones, func(z *zone) bool { return z.Name == name })
	if i < 0 {
		return nil
	}
	return d.zones[i]
}

// waits is true if a Pod of a zone that is outdated has to wait for something
// other than the budget of its zone.
func (d *decision) waits(i int) bool {
	z := &d.tree.Root.Children[i]
	return slices.ContainsFunc(z.Children, func(u rollout.Unit) bool {
		hold := d.plan.At(z.Name, u.Name).Hold
		return u.Leaf.Current != u.Leaf.Target && hold != nil && !queues(hold.Reason)
	})
}

func queues(r rollout.Reason) bool {
	return slices.Contains([]rollout.Reason{rollout.ReasonBudget, rollout.ReasonRate, rollout.ReasonRetry, ReasonStuck, ReasonRipening}, r)
}

// isDone is true if every replica of a zone is where it should be.
func (d *decision) isDone(i int) bool {
	z := &d.tree.Root.Children[i]
	return !d.zones[i].stale() && !slices.ContainsFunc(z.Children, func(u rollout.Unit) bool {
		return d.plan.At(z.Name, u.Name) != rollout.Answer{}
	})
}

// isOurs is true if the lock permits to disrupt a zone.
func (d *decision) isOurs(z *zone) bool {
	l := d.tree.Root.Lock
	return l.Holder == d.tree.Self && (l.Unit == z.Name || l.Unit == "")
}

// permit is the group after what the engine wants has been permitted; false if
// there is nothing to permit.
func (d *decision) permit() (*Observed, bool) {
	moves := d.newMoves()
	renewed, again := d.renewed()
	if len(moves) == 0 && !again || d.hasOpen(d.plan.Acquire) {
		return nil, false
	}
	after := *d.o
	status := *after.Group.Status.DeepCopy()
	if a := d.plan.Acquire; a != nil {
		status.Lock = &v1alpha1.Lock{Holder: a.Holder, Purpose: v1alpha1.Purpose(a.Purpose), Zone: a.Unit, Since: metav1.NewMicroTime(a.Since)}
	}
	status.Moves = replace(renewed, moves)
	status.Seen = d.o.seen()
	status.History = d.begin(moves)
	status.Zones = d.start(moves)
	after.Group.Status = status
	return &after, true
}

// replace adds moves; one of what has moved before takes the place of that.
func replace(moves, by []v1alpha1.Move) []v1alpha1.Move {
	moves = slices.DeleteFunc(moves, func(old v1alpha1.Move) bool {
		return slices.ContainsFunc(by, func(m v1alpha1.Move) bool { return m.Zone == old.Zone && m.Pod == old.Pod })
	})
	return append(moves, by...)
}

// needsLive is true if a cache is not good enough to permit what follows, or to
// give the lock back.
func (d *decision) needsLive(after *Observed) bool {
	switch {
	case d.o.Live:
		return false
	case d.mayWithdraw():
		return true
	case after == nil && !d.plan.Release:
		return false
	}
	return d.o.takesOver() || slices.ContainsFunc(d.zones, func(z *zone) bool {
		return z.row.Opened && (after == nil || disrupts(after, z.Name))
	})
}

// disrupts is true if a move is permitted in another zone than this one.
func disrupts(after *Observed, zone string) bool {
	return slices.ContainsFunc(after.Group.Status.Moves, func(m v1alpha1.Move) bool { return m.Zone != zone })
}

// hasOpen is true if some zone is open that the lock would no longer be for.
func (d *decision) hasOpen(l *rollout.Lock) bool {
	return l != nil && l.Unit != "" && slices.ContainsFunc(d.zones, func(z *zone) bool {
		return z.Name != l.Unit && (z.open() || len(z.moves) > 0 && z.moves[""] != nil)
	})
}

// newMoves are those for the steps of the plan.
func (d *decision) newMoves() []v1alpha1.Move {
	var moves []v1alpha1.Move
	opening := map[string]bool{}
	for _, step := range d.plan.Steps {
		z := d.zone(step.Path[0])
		pod := z.podNamed(step.Path[1])
		switch {
		case z.held() && !z.barred && !opening[z.Name]:
			moves = append(moves, d.o.opening(z))
			opening[z.Name] = true
		case pod == nil || pod.Terminating || opening[z.Name] || !z.isOnUs(step):
		default:
			moves = append(moves, d.o.moveOf(z, pod))
		}
	}
	return moves
}

// isOnUs is true if it is not the controller that takes a step: of a zone that is
// open or will be, it replaces what is up; of one that is held, nobody does.
func (z *zone) isOnUs(step rollout.Step) bool {
	return step.Repair && z.moves[""] == nil || z.Strategy == OnDelete
}

// renewed are the moves that are kept, and whether some have to be permitted anew
// because nobody has acted upon them in time.
func (d *decision) renewed() ([]v1alpha1.Move, bool) {
	moves, again := d.moves(), false
	for i := range moves {
		m := &moves[i]
		if z := d.zone(m.Zone); z != nil && z.awaits(m) && !d.inTime(m) {
			m.At, again = metav1.NewMicroTime(d.o.Now), true
		}
	}
	return moves, again
}

func (d *decision) inTime(m *v1alpha1.Move) bool { return d.o.Now.Before(m.At.Add(ActWithin)) }

// awaits is true if a move stands and is wanted.
func (z *zone) awaits(m *v1alpha1.Move) bool {
	return z.stands(m) && z.wants(m) && (m.Pod != "" || !z.open())
}

// holds are the zones to hold at once: open without permission, or not in the way
// in which it has to be, or for longer than there is something to do.
func (d *decision) holds() []Write {
	var writes []Write
	for i, z := range d.zones {
		if d.hasToBeHeld(i) {
			writes = append(writes, Write{Act: Hold, Zone: z.Name, UID: z.UID, ResourceVersion: z.ResourceVersion})
		}
	}
	return writes
}

func (d *decision) hasToBeHeld(i int) bool {
	z := d.zones[i]
	switch {
	case z.Deleting || d.isPutOff(z.Name):
		return false
	case z.Lent && !z.lent(): // somebody has set the type back, and what we noted remains
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
		return d.waits(i) || d.isDone(i) && z.CurrentRevision == z.UpdateRevision
	}
}

// opensNatively is true if the controller keeps to all that the group asks for.
func (z *zone) opensNatively() bool {
	spec := &z.o.Group.Spec
	return z.o.Server.MaxUnavailable && spec.StuckPods != v1alpha1.KeepStuckPods && z.Set.MinReady >= seconds(spec.MinReadySeconds)
}

// isTooWide is true if the controller may take down more than may be down.
func (z *zone) isTooWide() bool {
	return !z.lent() && z.MaxUnavailable > number(z.policy, z.Replicas)
}

// acts are the moves to carry out, and what else is due.
func (d *decision) acts() []Write {
	var writes []Write
	for _, z := range d.zones {
		for _, m := range d.o.Group.Status.Moves {
			if m.Zone == z.Name && z.awaits(&m) && d.inTime(&m) && d.isOurs(z) && !d.isPutOff(m.Pod) && !d.isPutOff(m.Zone) {
				writes = append(writes, z.act(&m))
			}
		}
	}
	return append(writes, d.advances()...)
}

func (z *zone) act(m *v1alpha1.Move) Write {
	w := Write{Act: Delete, Zone: m.Zone, Pod: m.Pod, UID: m.UID, ResourceVersion: m.ResourceVersion, Until: m.At.Add(ActWithin)}
	switch {
	case m.Pod != "":
	case m.Lend:
		w.Act = Lend
	default:
		w.Act, w.MaxUnavailable = Open, number(z.policy, z.Replicas)
	}
	return w
}

// advances are for controllers that do not advance the current revision of a set
// of type OnDelete.
func (d *decision) advances() []Write {
	var writes []Write
	for i, z := range d.zones {
		due := z.Strategy == OnDelete && !d.o.Server.AdvancesRevision && z.CurrentRevision != z.UpdateRevision
		if due && !z.Deleting && len(d.problems) == 0 && d.isDone(i) && !d.isPutOff(z.Name) {
			writes = append(writes, Write{Act: Advance, Zone: z.Name, UID: z.UID, ResourceVersion: z.ResourceVersion, Revision: z.UpdateRevision})
		}
	}
	return writes
}

// isPutOff is true while a write that was refused waits for its next try.
func (d *decision) isPutOff(name string) bool {
	r, ok := d.o.Refusals[name]
	return ok && d.o.Now.Before(r.At)
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
	for _, m := range d.moves() {
		if z := d.zone(m.Zone); z == nil || z.stands(&m) || m.Pod != "" && !z.has(m.Pod) {
			sooner(m.At.Add(ActWithin))
			sooner(m.At.Add(WithdrawAfter))
		}
	}
	for _, r := range d.o.Refusals {
		sooner(r.At)
	}
	if l := d.o.Group.Status.Lock; l != nil && l.Expires != nil {
		sooner(l.Expires.Time)
	}
	return wake
}
