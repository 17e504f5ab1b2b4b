package decision

import (
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/gates/ask"
	"github.com/spillway-dev/spillway/rollout"
)

// questions are the gates after a zone: once it was moved to its present revision, until the
// whole of it was at it and they had passed. So a group that is adopted asks about nothing,
// and one that goes back to the last good revision neither.
func (z *zone) questions() []ask.Question {
	started := z.row.Target == z.UpdateRevision && z.row.StartedAt != nil
	if len(z.o.Group.Spec.Gates) == 0 || z.stale() || !started || z.row.Revision == z.UpdateRevision {
		return nil
	}
	questions := make([]ask.Question, len(z.o.Group.Spec.Gates))
	for i, gate := range z.o.Group.Spec.Gates {
		questions[i] = ask.Question{Target: z.o.target(), Stage: z.Name, Revision: z.UpdateRevision, Gate: gate, When: rollout.After}
	}
	return questions
}

// target is the group as what rolls out.
func (o *Observed) target() ask.Target {
	return ask.Target{UID: o.Group.UID, TargetReference: v1alpha1.TargetReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "RolloutGroup", Name: o.Group.Name,
	}}
}

// gateWrites create the RolloutGates of the zones that wait for them, and delete those that
// are about another revision than the present one of their zone.
func (d *decision) gateWrites() []Write {
	var writes []Write
	for _, z := range d.zones {
		if !d.plan.Group(z.Name).AtGateAfter {
			continue
		}
		for _, q := range d.o.Gates.Missing(z.questions()) {
			writes = append(writes, Write{Act: CreateGate, Zone: z.Name, Question: &q, Reached: d.o.Now})
		}
	}
	for _, g := range d.o.Gates.Outdated(d.keepsGate) {
		writes = append(writes, Write{Act: DeleteGate, Gate: g.Name, UID: g.UID, ResourceVersion: g.ResourceVersion})
	}
	return writes
}

// keepsGate is true of the gate of a zone that is at the revision, or of which that is not
// known.
func (d *decision) keepsGate(zone, revision string) bool {
	z := d.zone(zone)
	return z == nil && !d.o.Live || z != nil && (z.stale() || z.UpdateRevision == revision)
}
