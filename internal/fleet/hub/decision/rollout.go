package decision

import (
	"cmp"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/record"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// The kinds of the units of a module.
const (
	KindStage   = "Stage"
	KindCluster = "Cluster"
)

// rollout is the record of the rollout after this decision; s is what the status says besides.
func (d *decision) rollout(s *v1alpha1.ModuleStatus) *record.Rollout {
	r := ring.Decided{
		By:        d.o.By,
		Namespace: d.o.Module.Namespace, Target: d.target, Phase: d.phase(), Total: len(d.members), Notes: d.notes(), Sentence: s.WaitingFor,
	}
	r.Reason, _, _ = d.verdict()
	if hold := d.plan.At().Hold; hold != nil {
		r.Telling = hold.Cause
	}
	switch h := s.History; {
	case len(h) > 0 && h[0].Revision == d.target:
		r.ChangedBy = h[0].ChangedBy
	case len(h) > 0 && h[0].Outcome == string(rollout.OutcomeRolledBack): // to what the clusters had
		r.ChangedBy = kube.FieldOwner
	}
	r.Units = d.waiting(s.WaitingFor)
	for i := range s.Stages {
		stage := d.stageRecord(i, &s.Stages[i])
		if s.CurrentRevision != d.target { // it has not got everywhere
			stage.Evidence = d.evidence(i)
		}
		r.Stages = append(r.Stages, stage)
	}
	return r.Record(d.o.Module.Status.Rollout, d.o.Now)
}

// waiting are the clusters that are not complete, and the stages that wait as a whole.
func (d *decision) waiting(why string) []ring.Waiting {
	var units []ring.Waiting
	for i := range d.plan.Holds {
		h := &d.plan.Holds[i]
		if stage, name := UnitOf(h.Path); name == "" {
			units = append(units, d.held(h, cmp.Or(stage, d.o.Module.Name), true))
		}
	}
	for _, m := range d.members {
		if u, waits := d.waitingMember(m, why); waits {
			units = append(units, u)
		}
	}
	for _, m := range d.unknown {
		if !m.isLeaving() {
			units = append(units, d.waitingUnknown(m))
		}
	}
	for i := range d.removals {
		units = append(units, d.waitingRemoval(&d.removals[i]))
	}
	return units
}

// held is what a hold says of a unit.
func (d *decision) held(h *rollout.Hold, unit string, whole bool) ring.Waiting {
	u := ring.Held(h)
	u.Unit, u.Whole = unit, whole
	if due := d.due(h); due != nil {
		u.Deadline = *due
	}
	switch stage, name := UnitOf(h.On); {
	case name != "":
		u.On = rollout.Ref{Kind: KindCluster, Name: name}
	case stage != "":
		u.On = rollout.Ref{Kind: KindStage, Name: stage}
	}
	return u
}

// unitName names a cluster as STAGE/CLUSTER, and by its name if it is in no stage, or new: then it waits for none.
func (d *decision) unitName(m *member) string {
	if m.stage < 0 || m.isNew {
		return m.Name
	}
	return d.stages[m.stage].name + "/" + m.Name
}

// waitingMember is why a cluster of the module is not complete, false if it is.
func (d *decision) waitingMember(m *member, why string) (u ring.Waiting, waits bool) {
	target, name := d.target, d.unitName(m)
	if m.isNew {
		target = d.good
	}
	switch {
	case m.hold != nil:
		u = d.held(m.hold, name, false)
		if u.Since.IsZero() {
			u.Since = m.started
		}
	case m.isHeld():
		return u, false
	case m.moves:
		u = ring.Waiting{Unit: name, State: ring.StateNext, Cause: rollout.Cause{Does: "is assigned " + target + " next"}}
	case m.leaf.Current != target:
		u = ring.Waiting{Unit: name, State: ring.StateWaiting, Cause: rollout.Cause{
			Does: "is " + orNothing(m.leaf.Current) + ", and nothing more is assigned at present", Why: why,
		}}
	default:
		return u, false
	}
	return u, true
}

// waitingUnknown is a cluster that nothing stands for, and that counts as down.
func (d *decision) waitingUnknown(m *member) ring.Waiting {
	if m.hold != nil {
		return d.held(m.hold, d.unitName(m), false)
	}
	return ring.Waiting{Unit: d.unitName(m), State: ring.StateWaiting, Reason: ReasonUnknown, Since: m.started, Cause: rollout.Cause{
		Does: "is unknown", Why: d.whyUnknown(m),
	}}
}

// waitingRemoval is a cluster that loses the module.
func (d *decision) waitingRemoval(r *removal) ring.Waiting {
	u := ring.Waiting{Unit: r.Name, State: ring.StateNext, Cause: rollout.Cause{Does: "no longer matches spec.selector, and loses the module next"}}
	switch {
	case r.hold != nil:
		u = d.held(r.hold, r.Name, false)
	case len(d.problems) > 0:
		u.State, u.Does = ring.StateWaiting, "no longer matches spec.selector, and keeps what it has while the module is invalid"
	}
	u.Removed = true
	return u
}

// stageRecord is the record of a stage.
func (d *decision) stageRecord(i int, row *v1alpha1.StageStatus) record.Stage {
	s := ring.StageOf(&d.stagePlans[i], row.Name, int(row.Total), int(row.Ready))
	if s.Since == nil {
		s.Since = row.StartedAt
	}
	for j := range d.stagePlans[i].Holds {
		if on, _ := UnitOf(d.stagePlans[i].Holds[j].On); on != "" && on != row.Name {
			s.WaitsFor = on
			break
		}
	}
	return s
}

// evidence is how many clusters of a stage show that the target is good, of how many that have to; nil if none has.
func (d *decision) evidence(i int) *record.Evidence {
	required := d.minEvidence(i)
	if required == 0 {
		return nil
	}
	shown := d.plan.Group(unitStages, d.stages[i].name).Counts.Evident
	return &record.Evidence{Shown: count32(min(shown, required)), Required: count32(required)}
}
