package decision

import "github.com/spillway-dev/spillway/api/spillway/v1alpha1"

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
