package decision

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
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
		m.started = m.record.AssignedAt
		if !m.record.Reported && d.o.LacksFlux {
			m.leaf.Reason = "not applied: the hub does not know the kinds of Flux (" + KindOfFlux.Kind + ", " + KindOfFlux.GroupVersion().String() + ")"
		}
	default: // the cluster has nothing of ours that could be unready
		m.leaf = rollout.Leaf{Health: rollout.Healthy}
	}
	switch {
	case m.Unreachable:
		m.leaf.Health, m.leaf.Reason = rollout.Degraded, "not reachable"
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
	m.isNew = d.isNew(m)
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
