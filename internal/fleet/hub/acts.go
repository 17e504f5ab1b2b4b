package hub

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/rollout"
)

// defaultHistory is how many revisions are kept besides those in use.
const defaultHistory = 10

// acts are the moves to carry out, and what else is due.
func (d *decision) acts() []Write {
	writes := d.prepare()
	for i := range d.o.Module.Status.Moves {
		m := &d.o.Module.Status.Moves[i]
		if d.keeps(m) && d.wants(m) && d.inTime(m) && !d.isPutOff(m.Cluster) {
			c := d.member(m.Cluster)
			writes = append(writes, Write{
				Act: Assign, Cluster: c.Cluster, Record: c.record, Revision: m.Revision, AssignedAt: m.At.Time, Until: m.At.Add(ActWithin),
			})
		}
	}
	if !d.isPaused() && !d.o.Module.isExternal() {
		others := append(d.corrections(), d.removals()...)
		writes = append(writes, others[:min(len(others), writesParallel)]...)
	}
	return slices.Concat(writes, d.outdated())
}

// prepare makes the revision that is wanted, and its gates once it is there.
func (d *decision) prepare() []Write {
	m := &d.o.Module
	if own := RevisionName(m.Kind, m.Name, m.template()); d.o.revision(own) == nil {
		switch stranger := d.o.Stranger; {
		case stranger == nil:
			return []Write{{Act: CreateRevision, Revision: own, Number: d.nextNumber()}}
		case stranger.Orphaned && !d.isPutOff(own):
			return []Write{{Act: AdoptRevision, Revision: own}}
		default:
			return nil // it is said whose it is
		}
	}
	if !d.isNews() || d.o.revision(d.target) == nil {
		return nil
	}
	var writes []Write
	for i := range d.stages {
		for _, g := range d.stages[i].spec.Gates {
			if d.o.gate(GateName(d.target, d.stages[i].name, g)) == nil {
				writes = append(writes, Write{Act: CreateGate, Revision: d.target, Stage: d.stages[i].name, Gate: g})
			}
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

// needsFinalizer is true if something may be assigned, or is, that has to be taken
// away with the module.
func (d *decision) needsFinalizer() bool {
	m := &d.o.Module
	if m.Finalized || m.isExternal() || len(d.problems) > 0 {
		return false
	}
	return len(d.plan.Steps) > 0 && !d.isPaused() || slices.ContainsFunc(d.o.Records, func(r Record) bool { return r.Assigned })
}

// corrections are for syncs that are not what their revision says, of clusters that
// nobody holds.
func (d *decision) corrections() []Write {
	var writes []Write
	pioneers := d.pioneers()
	for _, m := range d.members {
		if m.isAssigned() && d.isWrong(m, pioneers) && d.o.revision(m.record.Revision) != nil && d.mayCorrect(m) {
			writes = append(writes, Write{
				Act: Correct, Cluster: m.Cluster, Record: m.record, Revision: m.record.Revision, AssignedAt: m.record.AssignedAt,
			})
		}
	}
	return writes
}

// isWrong is true of a sync that is to be written anew. Of those that follow a tag one
// is told first what it is.
func (d *decision) isWrong(m *member, pioneers map[string]string) bool {
	if !m.record.Follows {
		return m.record.Drifted
	}
	pioneer := pioneers[m.record.Revision]
	return pioneer == anybody || pioneer == m.Name
}

// anybody may be told what a tag is: one that was has shown that it can be fetched.
const anybody = "*"

// pioneers are, for each revision, the cluster that is told before all others that follow
// its tag what that is. It is nobody while one that was told, or that was assigned the
// commit from the outset, is on its way; and there is no more need of one once one of
// these runs the commit by that name. So a commit that cannot be fetched, because it
// is on no branch, is found out by one cluster.
func (d *decision) pioneers() map[string]string {
	if !slices.ContainsFunc(d.o.Records, func(r Record) bool { return r.Follows }) {
		return nil
	}
	pioneers, onTheirWay := map[string]string{}, map[string]bool{}
	for _, m := range d.members {
		if !m.isAssigned() || m.record.Drifted {
			continue
		}
		r := m.record
		switch known := d.o.revision(r.Revision); {
		case known == nil || known.Resolved == "":
		case r.Follows && pioneers[r.Revision] == "" && d.mayCorrect(m) && m.isUp():
			pioneers[r.Revision] = m.Name
		case r.Tagged:
		case r.succeeded() && !r.Stale && r.Resolved != known.Resolved:
			pioneers[r.Revision] = anybody
		case m.Ready && !m.isUnreachable() && r.State != v1alpha1.StateFailed:
			onTheirWay[r.Revision] = true
		}
	}
	maps.DeleteFunc(pioneers, func(revision, name string) bool { return name != anybody && onTheirWay[revision] })
	return pioneers
}

// mayCorrect is true of a cluster into whose assemblage nobody and nothing forbids to
// write.
func (d *decision) mayCorrect(m *member) bool {
	return !m.isHeld() && !m.isEnding() && m.move == nil && !d.isPutOff(m.Name) && !d.o.Foreign[m.Name]
}

// removals are for clusters that are there, on nobody's way out, and not selected
// any more. One that merely is not ready, or is not known at present, keeps what
// it has.
func (d *decision) removals() []Write {
	var writes []Write
	for i := range d.o.Clusters {
		c := &d.o.Clusters[i]
		r := d.record(c.Name)
		if r == nil || !r.Assigned || c.Deleting || d.isSelected(c) {
			continue
		}
		writes = append(writes, d.removal(c, r)...)
	}
	return writes
}

func (d *decision) isSelected(c *Cluster) bool {
	return d.selector != nil && d.selector.Matches(labels.Set(c.Labels))
}

// removal takes a sync away. Where what runs is to stay, that has to have come to
// the Kustomization before: nothing else keeps Flux from deleting it.
func (d *decision) removal(c *Cluster, r *Record) []Write {
	switch {
	case d.isPutOff(r.Cluster) || d.o.Foreign[r.Cluster]:
		return nil
	case r.DeletionPolicy != d.o.Module.deletionPolicy():
		return []Write{{Act: Correct, Cluster: c, Record: r, Revision: r.Revision, AssignedAt: r.AssignedAt}}
	case d.o.Module.deletionPolicy() == v1alpha1.Orphan && !r.Noticed:
		return nil
	default:
		return []Write{{Act: Unassign, Cluster: c, Record: r}}
	}
}

func (m *Module) deletionPolicy() v1alpha1.DeletionPolicy {
	if m.Spec.DeletionPolicy == "" {
		return v1alpha1.Delete
	}
	return m.Spec.DeletionPolicy
}

// dissolve takes away everything that was assigned, also from clusters that are
// not known any more, and lets the module go once nothing can come back.
func (d *decision) dissolve() []Write {
	if !d.o.Module.Finalized {
		return nil
	}
	clusters := make(map[string]*Cluster, len(d.o.Clusters))
	for i := range d.o.Clusters {
		clusters[d.o.Clusters[i].Name] = &d.o.Clusters[i]
	}
	var writes []Write
	left := 0
	for i := range d.o.Records {
		r := &d.o.Records[i]
		if r.Assigned && !d.o.Foreign[r.Cluster] {
			left++
			writes = append(writes, d.removal(clusters[r.Cluster], r)...)
		}
	}
	if left == 0 && len(d.moves()) == 0 {
		return []Write{{Act: RemoveFinalizer}}
	}
	return writes[:min(len(writes), writesParallel)]
}

// outdated are revisions that nobody needs: they are in no use, and more of them
// are kept than should be.
func (d *decision) outdated() []Write {
	used := d.used()
	var spare []*Revision
	for i := range d.o.Revisions {
		if r := &d.o.Revisions[i]; !used[r.Name] && !r.Deleting {
			spare = append(spare, r)
		}
	}
	limit := defaultHistory
	if l := d.o.Module.Spec.RevisionHistoryLimit; l != nil {
		limit = int(*l)
	}
	slices.SortFunc(spare, func(a, b *Revision) int { return int(b.Number - a.Number) })
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
		RevisionName(m.Kind, m.Name, m.template()): true, m.Status.CurrentRevision: true, m.Spec.TargetRevision: true, d.target: true,
	}
	for i := range d.o.Records {
		used[d.o.Records[i].Revision] = true
	}
	for i := range m.Status.Moves {
		used[m.Status.Moves[i].Revision] = true
	}
	return used
}

// isComplete is true once the target has got everywhere: all is where it should
// be, but for as many failures as are borne. Where nobody has run it, it has not
// got anywhere.
func (d *decision) isComplete() bool {
	if len(d.problems) > 0 || d.o.revision(d.target) == nil || d.o.Module.Spec.Selector == nil {
		return false
	}
	ran := slices.ContainsFunc(d.members, func(m *member) bool { return m.stage >= 0 && !m.isNew })
	for i := range d.stages {
		if !d.isStageDone(i) {
			return false
		}
	}
	return ran
}

func (d *decision) isStageDone(i int) bool {
	if len(d.stagePlans[i].Steps) > 0 {
		return false
	}
	n, failed := 0, 0
	for _, m := range d.stages[i].members {
		if m.isNew {
			continue
		}
		n++
		switch {
		case m.leaf.Current != d.target || m.move != nil:
			return false
		case m.hold == nil:
		case m.hasFailed():
			failed++
		default:
			return false
		}
	}
	unit := &d.tree.Root.Children[1].Children[i]
	groupHolds := len(d.stagePlans[i].Holds) > failed // a gate, or a soak
	return !groupHolds && failed <= mayFail(unit.Policy.MaxFailures, n)
}

// mayFail is how many of n may fail; none of no limit.
func mayFail(l rollout.Limit, n int) int {
	if l.Value == 0 {
		return 0
	}
	return limit(l).of(n)
}

// hasFailed is true of a member that has failed where it is.
func (m *member) hasFailed() bool {
	if m.leaf.Health == rollout.Failed {
		return true
	}
	return m.hold != nil && m.hold.Reason == rollout.ReasonDeadline && m.leaf.Current != "" && !m.started.IsZero()
}
