package decision

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// removal is a cluster that loses the module, because its selector no longer matches.
type removal struct {
	*member

	// leaving is true once it was taken away, or may be at any moment, until what ran
	// is gone. What cannot be seen to be gone is leaving.
	leaving bool
	// stage is its place among the stages, by its labels alone.
	stage int
}

// findRemovals finds the clusters that lose the module, in the order in which they go
// within their stage. One that merely is not ready, or is not known at present, keeps
// what it has, and so does one that is being deleted.
func (d *decision) findRemovals(specs []stageSpec) {
	if d.selector == nil || d.o.Module.IsExternal() || d.o.Module.Deleting {
		return
	}
	for i := range d.o.Clusters {
		m := d.known[d.o.Clusters[i].Name]
		if m.belongs || m.Deleting || d.isSelected(m.Cluster) || d.o.Foreign[m.Name] || m.record == nil {
			continue
		}
		if !m.isAssigned() && !m.record.Leaving {
			continue
		}
		r := removal{member: m, leaving: m.isLeaving(), stage: stageByLabels(specs, m)}
		d.assess(m)
		d.removals = append(d.removals, r)
	}
	for _, m := range d.unknown {
		if m.isLeaving() {
			d.removals = append(d.removals, removal{member: m, leaving: true, stage: anyStage})
		}
	}
	slices.SortFunc(d.removals, func(a, b removal) int { return strings.Compare(a.Name, b.Name) })
}

// stageByLabels is the first stage that selects a cluster by its labels. One that takes
// but some clusters is no stage of a removal: it is the others that go first.
func stageByLabels(specs []stageSpec, m *member) int {
	i := slices.IndexFunc(specs, func(s stageSpec) bool { return s.Clusters == nil && s.selector.Matches(labels.Set(m.Labels)) })
	if i < 0 {
		return len(specs)
	}
	return i
}

// removalUnits are what is taken away: the last stage first, each under the budget that it
// has for updates as well. From what is unready anyway nothing is taken that serves, so it
// waits for no other stage: it may be what keeps the budget of a stage that others wait for.
func (d *decision) removalUnits() []rollout.Unit {
	var block *rollout.Block
	if name := d.returning(); name != "" {
		block = &rollout.Block{Reason: ReasonTerminating, Message: name + " is losing the module, and is selected again"}
	}
	units := []rollout.Unit{{Name: unitRemovals}, {Name: unitUnready}}
	for i := range units {
		u := &units[i]
		u.Group, u.Block, u.Policy = true, block, d.totalPolicy()
		u.Policy.OnFailure = rollout.Continue
		for at := len(d.stages); at >= 0; at-- {
			u.Children = append(u.Children, d.removalGroup(at, u.Name == unitUnready))
		}
	}
	units[0].Policy.Order = rollout.Series
	return units
}

// removalGroup is what is taken away from the clusters of a stage, from the unready ones or
// from the others. What is leaving already is one of the latter.
func (d *decision) removalGroup(at int, unready bool) rollout.Unit {
	s := stage{name: unitUnmatched}
	if at < len(d.stages) {
		s = d.stages[at]
	}
	group := rollout.Unit{Name: s.name, Group: true, Policy: d.stagePolicy(&s)}
	for j := range d.removals {
		r := &d.removals[j]
		if r.stage == at && unready == (!r.leaving && (!r.isUp() || r.move != nil)) {
			group.Children = append(group.Children, d.removalLeaf(r))
		}
	}
	return group
}

// returning is a cluster that is losing the module, or may be at any moment, and is selected
// again, empty if there is none: until it is assigned something, no other loses the module.
// That it is selected may be an old view, or be reverted, and then it has a place in the budget.
func (d *decision) returning() string {
	for i := range d.o.Clusters {
		m := d.known[d.o.Clusters[i].Name]
		if m.isLeaving() && d.isSelected(m.Cluster) {
			return m.Name
		}
	}
	return ""
}

// removalLeaf is a cluster as the engine sees it. Where what runs is to stay, that must
// have come to the Kustomization before: nothing else keeps Flux from deleting it.
func (d *decision) removalLeaf(r *removal) rollout.Unit {
	unit := rollout.Unit{Name: r.Name, Leaf: r.leaf}
	unit.Leaf.Target = rollout.Removed
	switch {
	case r.leaving:
		unit.Leaf = leavingLeaf("")
	case d.isOrphanPending(r.record):
		unit.Block = &rollout.Block{Reason: ReasonOrphan, Message: "deletionPolicy Orphan is not applied in it yet"}
	default:
		unit.Block = d.crowded(r.member)
	}
	return unit
}

// isLeaving is true of a cluster from which the module was taken away, or may be at any
// moment, until what ran is gone.
func (m *member) isLeaving() bool {
	return m.removing || m.record != nil && !m.isAssigned() && m.record.Leaving
}

func leavingLeaf(reason string) rollout.Leaf {
	return rollout.Leaf{Current: rollout.Removed, Target: rollout.Removed, Health: rollout.Progressing, Reason: reason}
}

// removalWindow is for how long after the last removal without an approval those before count, too.
const removalWindow = time.Hour

// recentRemovals is how many clusters have lost the module lately without an approval, those included
// that are losing it; r is what a status says of them.
func (d *decision) recentRemovals(r *v1alpha1.RecentRemovals) int {
	if r == nil || !d.o.Now.Before(r.At.Add(removalWindow)) {
		return 0
	}
	return int(r.Clusters)
}

// removedLately are those of them that are no more among the removals.
func (d *decision) removedLately() int {
	return max(0, d.recentRemovals(d.o.Module.Status.RecentRemovals)-d.leaving())
}

// leaving counts the clusters that are losing the module.
func (d *decision) leaving() int {
	n := 0
	for i := range d.removals {
		n += one(d.removals[i].leaving)
	}
	return n
}

// noteRemovals adds removals that are permitted now without an approval.
func (d *decision) noteRemovals(s *v1alpha1.ModuleStatus, n int) {
	if n > 0 && d.approved == 0 {
		s.RecentRemovals = &v1alpha1.RecentRemovals{Clusters: count32(d.recentRemovals(s.RecentRemovals) + n), At: metav1.NewMicroTime(d.o.Now)}
	}
}

// keptLately is what a status says of recent removals without those that come to nothing: a cluster that
// keeps the module is not one that has lost it as well.
func (d *decision) keptLately() *v1alpha1.RecentRemovals {
	r := d.o.Module.Status.RecentRemovals
	if r == nil {
		return nil
	}
	left := int(r.Clusters) - d.givenUp(false)
	if left <= 0 {
		return nil
	}
	return &v1alpha1.RecentRemovals{Clusters: count32(left), At: r.At}
}

// wakeForRemovals is when the removals that wait for an approval need none any more, zero for never.
func (d *decision) wakeForRemovals() time.Time {
	if d.removedLately() == 0 || !d.isRemovalHeld() {
		return time.Time{}
	}
	return d.o.Module.Status.RecentRemovals.At.Add(removalWindow)
}

// MaxRemoved is how many clusters may lose a module without an approval.
func MaxRemoved(r *v1alpha1.Rollout) rollout.Limit {
	if r == nil || r.MaxRemoved == nil {
		return ring.LimitOf(new(intstr.FromString(defaultMaxRemoved)))
	}
	return ring.LimitOf(r.MaxRemoved)
}

// approve reads what a user has approved. An approval names how many clusters lose the
// module, and is valid for the very clusters that it was given for: their assignments
// are part of it, so that it is of no use once they have lost the module. From when it
// is accepted, the status counts down how many are left of it, also where an old view has
// those clusters again; and the next approval is another one.
func (d *decision) approve() {
	n := len(d.removals)
	if n == 0 {
		return
	}
	leaving := d.leaving()
	d.approval = strconv.Itoa(n) + "-" + d.removalHash()
	given, was := d.o.Module.RemovalApproval, d.o.Module.Status.Removal
	switch {
	case given == "":
	case was != nil && was.Approved == given:
		d.approvedLeft = int(was.Left)
		d.approved = d.approvedLeft + leaving
	case given == d.approval: // the very same, so none of them has gone
		d.approvedLeft, d.approved = n-leaving, n
	}
}

// removalHash names the clusters that are to lose the module, with what they have, and the
// approval that was accepted before, so that it cannot be accepted again.
func (d *decision) removalHash() string {
	parts := make([]string, 0, len(d.removals)+1)
	if was := d.o.Module.Status.Removal; was != nil && was.Approved != "" {
		parts = append(parts, "after "+was.Approved)
	}
	for i := range d.removals {
		r := &d.removals[i]
		parts = append(parts, fmt.Sprintf("%s/%s/%d", r.Name, r.UID, r.record.AssignedAt.UnixMicro()))
	}
	return model.Hash(d.o.Module.UID, parts)
}

// removalStatus is what the status says of removals, nil if there are none: with the
// last of them an approval lapses.
func (d *decision) removalStatus() *v1alpha1.RemovalStatus {
	if len(d.removals) == 0 {
		return nil
	}
	s := &v1alpha1.RemovalStatus{Clusters: count32(len(d.removals)), Removing: count32(d.leaving())}
	if d.approved > 0 {
		s.Approved, s.Left = d.o.Module.RemovalApproval, count32(d.approvedLeft+d.givenUp(true))
	}
	if d.isRemovalHeld() {
		s.Approval = d.approval
	}
	return s
}

// givenUp counts the removals that were permitted, by an approval or without one, and come to nothing: what was
// approved is good for them again, and maxRemoved does not count them.
func (d *decision) givenUp(approved bool) int {
	n := 0
	for i := range d.o.Module.Status.Moves {
		m := &d.o.Module.Status.Moves[i]
		n += one(m.Remove && m.Approved == approved && d.state(m) == ring.Ended && !isDone(m, d.record(m.Cluster)))
	}
	return n
}

// isRemovalHeld is true if clusters keep the module only until a user approves.
func (d *decision) isRemovalHeld() bool {
	return slices.ContainsFunc(d.plan.Holds, func(h rollout.Hold) bool { return h.Reason == rollout.ReasonRemovalApproval })
}

// removalCorrections are for clusters that lose the module, and whose syncs do not say
// yet what becomes of what runs.
func (d *decision) removalCorrections() []Write {
	var writes []Write
	for i := range d.removals {
		r := &d.removals[i]
		if !r.leaving && r.record.DeletionPolicy != d.o.Module.DeletionPolicy() && !d.isPutOff(r.Name) {
			writes = append(writes, d.takeAway(r.Cluster, r.record)...)
		}
	}
	return writes
}

// wantsRemoval is true if a permitted removal is still right. One of a cluster that was
// down is not, once the cluster is up: the budget was not asked for it.
func (d *decision) wantsRemoval(move *v1alpha1.Move) bool {
	m := d.known[move.Cluster]
	return m != nil && m.isAssigned() && !m.Deleting && (!move.Repair || !m.isUp()) && d.selector != nil && !d.isSelected(m.Cluster) &&
		!d.isPaused() && !d.o.Module.IsExternal() && !d.o.Module.Deleting && !d.o.Foreign[move.Cluster] && !d.isOrphanPending(m.record)
}

func (d *decision) isSelected(c *model.Cluster) bool {
	return d.selector != nil && d.selector.Matches(labels.Set(c.Labels))
}

// deletionWrites take away everything that was assigned, also from clusters that are
// not known any more, and let the module go once nothing can come back.
func (d *decision) deletionWrites() []Write {
	if !d.o.Module.Finalized {
		return nil
	}
	clusters := make(map[string]*model.Cluster, len(d.o.Clusters))
	for i := range d.o.Clusters {
		clusters[d.o.Clusters[i].Name] = &d.o.Clusters[i]
	}
	writes := d.fences()
	left := 0
	for i := range d.o.Records {
		r := &d.o.Records[i]
		if r.Assigned && !d.o.Foreign[r.Cluster] {
			left++
			writes = append(writes, d.takeAway(clusters[r.Cluster], r)...)
		}
	}
	if left == 0 && len(d.intents.Kept()) == 0 {
		return []Write{{Act: RemoveFinalizer}}
	}
	return writes[:min(len(writes), maxWrites)]
}

// takeAway removes a sync, or says before what becomes of what runs.
func (d *decision) takeAway(c *model.Cluster, r *model.Record) []Write {
	switch {
	case d.isPutOff(r.Cluster) || d.o.Foreign[r.Cluster]:
		return nil
	case r.DeletionPolicy != d.o.Module.DeletionPolicy():
		return []Write{{Act: Correct, Cluster: c, Record: r, Revision: r.Revision, Overrides: r.Overrides, AssignedAt: r.AssignedAt, Unready: r.Unready}}
	case d.isOrphanPending(r):
		return nil
	default:
		return []Write{{Act: Unassign, Cluster: c, Record: r}}
	}
}

// isOrphanPending is true of a sync that must not be removed before it is known what
// becomes of what runs.
func (d *decision) isOrphanPending(r *model.Record) bool {
	policy := d.o.Module.DeletionPolicy()
	return r.DeletionPolicy != policy || policy == v1alpha1.Orphan && !r.Noticed
}
