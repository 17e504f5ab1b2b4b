package decision

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
	"github.com/spillway-dev/spillway/internal/shell"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// member is a cluster of the module.
type member struct {
	*model.Cluster
	// record is what its assemblage says, nil if there is none.
	record *model.Record
	// move is an assignment that was permitted and that the record does not show.
	move *v1alpha1.Move
	// removing is true while some manager may take its sync away.
	removing bool
	leaf     rollout.Leaf
	// started is when it was assigned what it has.
	started time.Time
	// belongs is true of a cluster that is one of the module's.
	belongs bool
	// isNew is true of a cluster that gets the good revision outside of any stage,
	// because it has never run the module.
	isNew bool
	// untouched is true of one that the target changes nothing on.
	untouched bool
	// unready is true of one that is assigned the target though it can tell nothing of it.
	unready bool
	// skip is why it is not assigned the target now, though nothing else keeps it, nil if it is.
	skip *rollout.Block
	// barred is true of one on which a check does not hold.
	barred bool
	// stage is its place in decision.stages, or what else becomes of it.
	stage int
	// hold is why it waits, nil if it does not; moves is true if it moves now.
	hold  *rollout.Hold
	moves bool
}

// KindOfFlux is the kind that the hub applies what a BootstrapModule assigns with.
var KindOfFlux = schema.GroupVersionKind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"}

// The stages of members that belong to none.
const (
	// unmatched: no stage selects it.
	unmatched = -1
	// pinned: a user holds it.
	pinned = -2
	// anyStage: it is unknown which stage selects it.
	anyStage = -3
)

// findMembers finds the clusters of the module, in the order in which they go. One
// that is selected and was never ready is none yet; one that was assigned
// something stays one, whatever becomes of it.
func (d *decision) findMembers(selector labels.Selector) {
	all := d.joinRecords()
	d.members = make([]*member, 0, len(all))
	for i := range all {
		m := &all[i]
		if m.Deleting || !selector.Matches(labels.Set(m.Labels)) || !m.Ready && !m.isAssigned() && m.move == nil {
			continue
		}
		m.belongs = true
		d.members = append(d.members, m)
	}
}

// joinRecords brings together what is known of each cluster, selected or not. Of ten thousand
// there is one block of memory, and one map.
func (d *decision) joinRecords() []member {
	all := make([]member, len(d.o.Clusters))
	d.known, d.absent = make(map[string]*member, len(all)), map[string]*member{}
	for i := range all {
		all[i].Cluster = &d.o.Clusters[i]
		d.known[all[i].Name] = &all[i]
	}
	for i := range d.o.Records {
		r := &d.o.Records[i]
		d.findOrAdd(r.Cluster).record = r
	}
	for i := range d.o.Module.Status.Moves {
		move := &d.o.Module.Status.Moves[i]
		m := d.findOrAdd(move.Cluster)
		switch {
		case isDone(move, m.record):
		case move.Remove:
			m.removing = true
		default:
			m.move = move
		}
	}
	return all
}

// isEnding is true of a cluster whose assemblage is being deleted.
func (m *member) isEnding() bool { return m.record != nil && m.record.Deleting }

// isHeld is true if a user has pinned the cluster.
func (m *member) isHeld() bool { return m.record != nil && m.record.Hold != nil }

func (m *member) isUnreachable() bool {
	if m.record != nil && !m.isAssigned() && m.record.Silent {
		return true
	}
	return m.Unreachable || m.isAssigned() && m.record.Reported && m.record.State == v1alpha1.StateUnreachable
}

// isUp is true of a cluster that runs what its assemblage says, and is healthy,
// whatever it is about to be assigned.
func (m *member) isUp() bool {
	return m.isAssigned() && m.Ready && !m.Unreachable && m.record.Leaf().Health == rollout.Healthy
}

// isDrifted is true of a cluster of which it is unknown what it runs.
func (m *member) isDrifted() bool {
	return m.isAssigned() && (m.record.Drifted || m.record.Stale) && m.move == nil
}

// hasFailed is true of a member that has failed where it is.
func (m *member) hasFailed() bool {
	if m.leaf.Health == rollout.Failed {
		return true
	}
	return m.hold != nil && m.hold.Reason == rollout.ReasonDeadline && m.leaf.Current != "" && !m.started.IsZero()
}

// order puts the members in the order in which they go: by the number in a label,
// then by a hash, so that it is arbitrary and always the same.
func (d *decision) order() {
	by := d.o.Module.Rollout().OrderBy
	places := make([]place, len(d.members))
	for i, m := range d.members {
		places[i] = place{hash: hashOf(string(m.UID)), member: m}
		if by != nil {
			places[i].rank = rankOf(m.Labels[by.LabelKey])
		}
	}
	slices.SortFunc(places, comparePlaces)
	for i := range places {
		d.members[i] = places[i].member
	}
}

// place is where a member stands in the order.
type place struct {
	rank float64
	hash uint64
	*member
}

// hashOf is the FNV-1a hash of a text.
func hashOf(text string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	hash := uint64(offset)
	for i := range len(text) {
		hash = (hash ^ uint64(text[i])) * prime
	}
	return hash
}

func comparePlaces(a, b place) int {
	switch {
	case a.rank != b.rank:
		return cmp.Compare(a.rank, b.rank)
	case a.hash != b.hash:
		return cmp.Compare(a.hash, b.hash)
	default:
		return strings.Compare(a.Name, b.Name)
	}
}

func rankOf(value string) float64 {
	rank, err := strconv.ParseFloat(value, 64)
	if err != nil || math.IsNaN(rank) {
		return math.Inf(1)
	}
	return rank
}

// assess makes a leaf of a member: what it has, and how healthy it is.
func (d *decision) assess(m *member) {
	switch {
	case m.move != nil: // its time begins to run once the assignment is written
		m.leaf = rollout.Leaf{Current: m.move.Revision, Health: rollout.Progressing, Reason: "being assigned"}
	case m.isAssigned():
		m.leaf = m.record.Leaf()
		m.leaf.Current = d.current(m)
		m.started = m.record.AssignedAt
		if !m.record.Reported && d.o.LacksFlux {
			m.leaf.Reason = "not applied: the hub does not know the kinds of Flux (" + KindOfFlux.Kind + ", " + KindOfFlux.GroupVersion().String() + ")"
		}
	default: // the cluster has nothing of ours that could be unready
		m.leaf = rollout.Leaf{Health: rollout.Healthy}
	}
	switch {
	case m.Unreachable:
		m.leaf.Health, m.leaf.Reason, m.leaf.Cause = rollout.Degraded, "not reachable", outcome.ReasonUnreachable
	case !m.Ready:
		m.leaf.Health, m.leaf.Reason = rollout.Degraded, "not ready: its control plane is not up"
	}
	if m.removing {
		m.leaf.Health, m.leaf.Reason = rollout.Degraded, "its removal was permitted and may still be made"
	}
	if !d.isNews() { // what is gone a week after a rollout is no failure of it
		m.leaf.LostSince = time.Time{}
	}
	if m.leaf.Current == d.target { // the very same text: it is compared many times, and that is faster
		m.leaf.Current = d.target
	}
	if len(d.o.Refusals) > 0 {
		d.addRefusal(m)
	}
	if m.isNew = d.isNew(m); !m.isNew {
		d.addEvidence(m)
	}
	d.addChecks(m)
}

func (m *member) isAssigned() bool { return m.record != nil && m.record.Assigned }

// addRefusal adds when a write that was refused is tried again.
func (d *decision) addRefusal(m *member) {
	if r, refused := d.o.Refusals[m.Name]; refused {
		m.leaf.RetryAt, m.leaf.RetryReason = r.At, model.Short(r.Reason, model.SaidLength)
	}
}

// isNew is true of a cluster that has never run the module, where there is a
// revision that got everywhere. One that does not get to run that is treated like
// all others, so that a later revision may fix it.
func (d *decision) isNew(m *member) bool {
	ran := m.record != nil && m.record.Succeeded != ""
	if !d.o.Module.IsStaged() || d.good == "" || ran || m.leaf.Current != "" && m.leaf.Current != d.good {
		return false
	}
	late := !m.started.IsZero() && !d.o.Now.Before(m.started.Add(d.deadline()))
	return m.leaf.Health != rollout.Failed && !late
}

// record is what the assemblage of a cluster says, nil if there is none.
func (d *decision) record(cluster string) *model.Record {
	if m := d.find(cluster); m != nil {
		return m.record
	}
	return nil
}

// member is a cluster of the module by name, nil if it is none.
func (d *decision) member(name string) *member {
	if m := d.known[name]; m != nil && m.belongs {
		return m
	}
	return nil
}

// A cluster is unknown while nothing stands for it on the hub, or this view does not show
// it: its Secret is being replaced, or a watch is behind. What runs there goes on, and may be
// unready. So it counts as down until its assemblage is gone, or says that it is ready.

// findUnknown finds the unknown clusters that may be down, in the order of their names.
func (d *decision) findUnknown() {
	for _, m := range d.absent {
		if d.assess(m); d.mayBeDown(m) {
			m.stage = d.stageOfUnknown(m)
			d.unknown = append(d.unknown, m)
		}
	}
	slices.SortFunc(d.unknown, func(a, b *member) int { return strings.Compare(a.Name, b.Name) })
}

// mayBeDown is true of an unknown cluster that takes a place in the budget, unless its
// assemblage says that what it is assigned is ready. One that is new or pinned takes none,
// known or not.
func (d *decision) mayBeDown(m *member) bool {
	switch {
	case m.isLeaving():
		return true
	case m.isHeld() || m.isNew:
		return false
	case m.move != nil:
		return true
	default:
		return m.isAssigned() && (m.leaf.Health != rollout.Healthy || m.isDrifted() || d.isSoaking(m)) && d.isOnUs(m)
	}
}

// isOnUs is true of an unknown cluster that may be down because of what it was assigned. What was ready
// with that once, or had its time with what reached all, is down for reasons of its own, as
// one is that does not answer: its credentials may be gone for good, and nothing that is rolled out
// elsewhere takes anything from it.
func (d *decision) isOnUs(m *member) bool {
	switch {
	case m.leaf.Current == d.target || m.isDrifted():
		return true
	case m.record.Unready || m.record.Proven:
		return false
	default:
		return d.isInTime(m) || !d.isProven(m.revision())
	}
}

// isSoaking is true of a cluster that has not been ready at the target for long enough.
func (d *decision) isSoaking(m *member) bool {
	soak := seconds(d.o.Module.Rollout().MinReadySeconds)
	return m.leaf.Current == d.target && d.o.Now.Before(m.leaf.HealthySince.Add(soak))
}

// stageOfUnknown is the stage of an unknown cluster that was assigned the target: the first
// that was open by then, as the status says when each has begun and was complete, and the
// first of all where it does not say so. Of any other it is unknown, and it keeps no stage
// from being complete.
func (d *decision) stageOfUnknown(m *member) int {
	since := m.since()
	switch {
	case m.isLeaving() || len(d.stages) == 0:
		return anyStage
	case m.leaf.Current == d.target:
	case m.isAssigned() && m.record.Revision == d.target: // and is to move, which may come to nothing
		since = m.record.AssignedAt
	default:
		return anyStage
	}
	for i := range d.stages {
		began, finished := d.former(d.stages[i].name)
		if began != nil && !began.After(since) && (finished == nil || finished.After(since)) {
			return i
		}
	}
	return 0
}

// unknownIn are the unknown clusters of a stage.
func (d *decision) unknownIn(stage int) []*member {
	return slices.DeleteFunc(slices.Clone(d.unknown), func(m *member) bool { return m.stage != stage })
}

// unknownUnit has unknown clusters of a stage, or of any. They count in the budgets of all
// stages: by their labels, which are unknown, they may belong to another one.
func (d *decision) unknownUnit(members []*member, in int) rollout.Unit {
	unit := rollout.Unit{Group: true, Policy: d.stagePolicy(&stage{name: unitUnmatched})}
	for _, m := range members {
		unit.Children = append(unit.Children, d.unknownLeaf(m))
	}
	for i := range d.stages {
		if i != in {
			unit = rollout.Unit{Group: true, Policy: d.stagePolicy(&d.stages[i]), Children: []rollout.Unit{unit}}
		}
	}
	if in == anyStage { // what is in a stage is beneath all of them
		unit = rollout.Unit{Group: true, Policy: d.totalPolicy(), Children: []rollout.Unit{unit}}
	}
	unit.Name = unitUnknown
	return unit
}

// unknownLeaf is an unknown cluster as the engine sees it: nothing is assigned to it, and
// it is where it should be only once it is known.
func (d *decision) unknownLeaf(m *member) rollout.Unit {
	unit := rollout.Unit{Name: m.Name}
	if m.isLeaving() {
		unit.Leaf = leavingLeaf("nothing of it is known at present")
		return unit
	}
	if m.leaf.Health == rollout.Failed && m.leaf.Current == d.target { // that it is unknown changes nothing about it
		unit.Leaf = m.leaf
		unit.Leaf.Target, unit.Leaf.Reason = d.target, m.leaf.Reason+"; and it is unknown since: "+d.whyUnknown(m)
		return unit
	}
	// Without a revision it is none of those of which a part may be removed without approval.
	unit.Leaf = rollout.Leaf{Target: "(known)", Health: rollout.Degraded, Reason: "unknown at present"}
	unit.Block = &rollout.Block{Reason: ReasonUnknown, Message: d.whyUnknown(m)}
	return unit
}

func (d *decision) whyUnknown(m *member) string {
	return fmt.Sprintf("neither a Cluster nor a labeled Secret %s found, and it is assigned %s; restore it, or if the cluster is gone for good: %s",
		cluster.SecretName(m.Name), m.leaf.Current, d.toForget(m.Name))
}

// toForget is the command by which a user has a cluster forgotten that is gone for good.
func (d *decision) toForget(name string) string {
	return toForget(d.o.Module.Kind, d.o.Module.Namespace, name)
}

func toForget(moduleKind, namespace, name string) string {
	kind := "proxyassemblage"
	if moduleKind == model.KindBootstrap {
		kind = "remoteassemblage"
	}
	object := shell.Join(kind, name, "-n", namespace)
	return "kubectl annotate " + object + " " + vocabulary.AbandonCluster.Native + "=true && kubectl delete " + object
}

// forgotten are the unknown clusters that count in no budget, in the order of their names.
func (d *decision) forgotten() []string {
	var names []string
	for name, m := range d.absent {
		if m.isAssigned() && m.leaf.Health != rollout.Healthy && !m.isHeld() && !slices.Contains(d.unknown, m) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// find is a cluster by name, known or not, nil if nothing is known of it.
func (d *decision) find(name string) *member {
	if m := d.known[name]; m != nil {
		return m
	}
	return d.absent[name]
}

// findOrAdd is find, and adds a cluster that is unknown.
func (d *decision) findOrAdd(name string) *member {
	m := d.find(name)
	if m == nil {
		m = &member{Cluster: &model.Cluster{Name: name, Ready: true}} // what its assemblage says is all that is known
		d.absent[name] = m
	}
	return m
}
