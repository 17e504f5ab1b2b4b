package zones

import (
	"slices"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/rollout"
)

// bar finds the zones that are held and must not be opened. The engine may let
// Pods move there that are down, which takes nothing away; but to open the zone
// lets those move as well that are up, or will be by then.
func (d *decision) bar() []*zone {
	var barred []*zone
	for i, z := range d.zones {
		if z.held() && d.plan.At(z.Name).Step != nil && (d.waits(i) || d.isSecond(i)) {
			z.barred = true
			barred = append(barred, z)
		}
	}
	return barred
}

// isStuck is true if nothing moves, and nothing is being replaced that might change
// that: zones that are barred wait for each other.
func (d *decision) isStuck() bool {
	return len(d.plan.Steps) == 0 && d.plan.Phase != rollout.PhaseProgressing
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

// holds are the zones to hold immediately: open without permission, or not in the way
// in which it must be, or for longer than there is something to do.
func (d *decision) holds() []Write {
	var writes []Write
	for i := range d.zones {
		if d.hasToBeHeld(i) {
			writes = append(writes, d.hold(i))
		}
	}
	return writes
}

// hold is made whatever has become of the status of a zone in its turn. That of one
// that is lent is not: what tells so is no part of the spec.
func (d *decision) hold(i int) Write {
	z := d.zones[i]
	w := Write{Act: Hold, Zone: z.Name, UID: z.UID, ResourceVersion: z.ResourceVersion, Done: d.isDone(i)}
	if d.isOurs(z) && !z.Lent {
		w.Generation, w.MaxUnavailable = z.Generation, z.MaxUnavailable
	}
	return w
}

func (d *decision) hasToBeHeld(i int) bool {
	z := d.zones[i]
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
		return d.waits(i) || d.isDone(i) && (!z.lent() || z.CurrentRevision == z.UpdateRevision)
	}
}

// opensNatively is true if the controller keeps to all that the group asks for.
func (z *zone) opensNatively() bool {
	spec := &z.o.Group.Spec
	return z.o.Server.MaxUnavailable && spec.StuckPods != v1alpha1.KeepStuckPods && z.MinReady >= seconds(spec.MinReadySeconds)
}

// isTooWide is true if the controller may take down more than may be down.
func (z *zone) isTooWide() bool {
	return !z.lent() && z.MaxUnavailable > number(z.policy, z.Replicas)
}
