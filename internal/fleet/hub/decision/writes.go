package decision

import (
	"slices"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/gates/ask"
	"github.com/spillway-dev/spillway/rollout"
)

// writes are the moves to carry out, and what else is due.
func (d *decision) writes() []Write {
	writes := append(d.prepare(), d.endGates()...)
	for _, m := range d.intents.Due() {
		c, act := d.known[m.Cluster], Assign
		if m.Remove {
			act = Unassign
		}
		writes = append(writes, Write{
			Act: act, Cluster: c.Cluster, Record: c.record, Revision: m.Revision, Overrides: d.overridesOf(m.Revision, c), AssignedAt: assignedAt(&m), Unready: m.Unready,
		})
	}
	if !d.isPaused() && !d.o.Module.IsExternal() {
		others := append(d.corrections(), d.removalCorrections()...)
		writes = append(writes, others[:min(len(others), maxWrites)]...)
	}
	return slices.Concat(writes, d.outdated())
}

// prepare creates the revision that is wanted, and its gates once it exists.
func (d *decision) prepare() []Write {
	m := &d.o.Module
	if own := model.RevisionName(m.Kind, m.Name, m.Template()); d.o.Revision(own) == nil {
		switch unowned := d.o.Unowned; {
		case unowned == nil:
			return []Write{{Act: CreateRevision, Revision: own, Number: d.nextNumber()}}
		case unowned.Orphaned && !d.isPutOff(own):
			return []Write{{Act: AdoptRevision, Revision: own}}
		default:
			return nil // it is said whose it is
		}
	}
	if !d.isNews() || d.o.Revision(d.target) == nil || d.begins() {
		return nil
	}
	var writes []Write
	for i := range d.stages {
		for _, g := range d.stages[i].spec.Gates {
			if d.o.Gate(model.GateName(d.target, d.stages[i].name, g)) == nil {
				writes = append(writes, Write{Act: CreateGate, Revision: d.target, Stage: d.stages[i].name, Gate: g})
			}
		}
	}
	return append(writes, d.reached()...)
}

// reached says of gates that the rollout has come to them: there is something to measure from
// then on.
func (d *decision) reached() []Write {
	var writes []Write
	for i := range d.stages {
		s := &d.stages[i]
		at := d.plan.Group(unitStages, s.name)
		for _, g := range s.spec.Gates {
			found := d.o.Gate(model.GateName(d.target, s.name, g))
			if found != nil && ask.IsReached(whenOf(g), at) && !found.Reached && found.Verdict == rollout.Pending {
				writes = append(writes, Write{Act: ReachGate, Revision: d.target, Stage: s.name, Gate: g, UID: found.UID, ResourceVersion: found.ResourceVersion, At: d.o.Now})
			}
		}
	}
	return writes
}

// begins is true until the status says that the target is rolled out. What gates it has then are of an
// earlier rollout of it: they are made once the status says so.
func (d *decision) begins() bool { return d.o.Module.Status.TargetRevision != d.target }

// formerGates deletes those.
func (d *decision) formerGates() []Write {
	if !d.begins() || !d.isNews() {
		return nil
	}
	var writes []Write
	for i := range d.o.Gates {
		if g := &d.o.Gates[i]; g.Revision == d.target && !d.isPutOff(g.Name) && (!d.isRetried() || d.o.Module.Status.Retried.Gate != g.Name) {
			writes = append(writes, Write{
				Act: DeleteGate, Revision: g.Revision, Stage: g.Stage, Gate: v1alpha1.Gate{Name: g.Gate, When: g.When}, UID: g.UID, ResourceVersion: g.ResourceVersion,
			})
		}
	}
	return writes
}

// endGates says of gates during a stage that this is over: of the revision that is rolled out
// once it is, of others now.
func (d *decision) endGates() []Write {
	var writes []Write
	for i := range d.o.Gates {
		g := &d.o.Gates[i]
		ends := g.Revision != d.target || ask.IsOver(d.plan.Group(unitStages, g.Stage))
		if g.Rolls && g.Reached && ends {
			writes = append(writes, Write{
				Act: EndGate, Revision: g.Revision, Stage: g.Stage, Gate: v1alpha1.Gate{Name: g.Gate, When: g.When},
				UID: g.UID, ResourceVersion: g.ResourceVersion, At: d.o.Now,
			})
		}
	}
	return writes
}

func (d *decision) nextNumber() int64 {
	number := int64(0)
	for i := range d.o.Revisions {
		number = max(number, d.o.Revisions[i].Number)
	}
	return number + 1
}

// needsFinalizer is true if something may be assigned, or is, that must be removed
// with the module.
func (d *decision) needsFinalizer() bool {
	m := &d.o.Module
	if m.Finalized || m.IsExternal() || len(d.problems) > 0 {
		return false
	}
	return len(d.plan.Steps) > 0 && !d.isPaused() || len(d.takes()) > 0 || slices.ContainsFunc(d.o.Records, func(r model.Record) bool { return r.Assigned })
}

// corrections are for syncs that are not what their revision says, of clusters that
// no user holds.
func (d *decision) corrections() []Write {
	var writes []Write
	canaries := d.canaries()
	for _, m := range d.members {
		known := m.isAssigned() && d.o.Revision(m.record.Revision) != nil
		if m.isAssigned() && (known && d.isWrong(m, canaries) || d.lacksCopy(m)) && d.mayCorrect(m) {
			writes = append(writes, Write{
				Act: Correct, Cluster: m.Cluster, Record: m.record, Revision: m.record.Revision, Overrides: m.record.Overrides, AssignedAt: m.record.AssignedAt, Unready: m.record.Unready,
			})
		}
	}
	return writes
}

// isWrong is true of a sync that is to be written again. Of those that follow a tag one
// gets the commit first.
func (d *decision) isWrong(m *member, canaries map[string]string) bool {
	if !m.record.Follows {
		return m.record.Drifted
	}
	canary := canaries[m.record.Revision]
	return canary == anyCluster || canary == m.Name
}

// mayCorrect is true of a cluster into whose assemblage no user and nothing else forbids
// to write.
func (d *decision) mayCorrect(m *member) bool {
	return !m.isHeld() && !m.isEnding() && m.move == nil && !d.isPutOff(m.Name) && !d.o.Foreign[m.Name]
}

// defaultHistory is how many revisions are kept besides those in use.
const defaultHistory = 10

// outdated returns the revisions that are not needed: they are not in use, and more of them
// are kept than should be. While something may be assigned that this view does not show,
// none is: a move that was replaced by another may have been made.
func (d *decision) outdated() []Write {
	if len(d.o.Module.Status.Moves) > 0 {
		return nil
	}
	used := d.used()
	var spare []*model.Revision
	for i := range d.o.Revisions {
		if r := &d.o.Revisions[i]; !used[r.Name] && !r.Deleting {
			spare = append(spare, r)
		}
	}
	limit := defaultHistory
	if l := d.o.Module.Spec.RevisionHistoryLimit; l != nil {
		limit = int(*l)
	}
	slices.SortFunc(spare, func(a, b *model.Revision) int { return int(b.Number - a.Number) })
	var writes []Write
	for _, r := range spare[min(len(spare), limit):] {
		writes = append(writes, Write{Act: DeleteRevision, Revision: r.Name})
	}
	return writes
}

// used are the revisions that something refers to.
func (d *decision) used() map[string]bool {
	m := &d.o.Module
	used := map[string]bool{
		model.RevisionName(m.Kind, m.Name, m.Template()): true, m.Status.CurrentRevision: true, m.Spec.TargetRevision: true, d.target: true,
	}
	for i := range d.o.Records {
		used[d.o.Records[i].Revision] = true
	}
	return used
}
