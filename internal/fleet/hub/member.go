package hub

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/rollout"
)

// saidLength bounds what others have said where it is quoted.
const saidLength = 200

// member is a cluster of the module.
type member struct {
	*Cluster
	// record is what its assemblage says, nil if there is none.
	record *Record
	// move is an assignment that was permitted and that the record does not show.
	move *v1alpha1.Move
	leaf rollout.Leaf
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

// The stages of members that belong to none.
const (
	// unmatched: no stage selects it.
	unmatched = -1
	// pinned: somebody holds it.
	pinned = -2
)

// findMembers finds the clusters of the module, in the order in which they go. One
// that is selected and was never ready is none yet; one that was assigned
// something stays one, whatever becomes of it.
func (d *decision) findMembers(selector labels.Selector) {
	all := d.meet()
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

// meet brings together what is known of each cluster, selected or not. Of ten thousand
// there is one block of memory, and one map.
func (d *decision) meet() []member {
	all := make([]member, len(d.o.Clusters))
	d.known, d.strays = make(map[string]*member, len(all)), map[string]*Record{}
	for i := range all {
		all[i].Cluster = &d.o.Clusters[i]
		d.known[all[i].Name] = &all[i]
	}
	for i := range d.o.Records {
		r := &d.o.Records[i]
		if m := d.known[r.Cluster]; m != nil {
			m.record = r
		} else {
			d.strays[r.Cluster] = r
		}
	}
	for i := range d.o.Module.Status.Moves {
		move := &d.o.Module.Status.Moves[i]
		if m := d.known[move.Cluster]; m != nil && !isDone(move, m.record) {
			m.move = move
		}
	}
	return all
}

// record is what the assemblage of a cluster says, nil if there is none.
func (d *decision) record(cluster string) *Record {
	if m := d.known[cluster]; m != nil {
		return m.record
	}
	return d.strays[cluster]
}

func (m *member) isAssigned() bool { return m.record != nil && m.record.Assigned }

// isEnding is true of a cluster whose assemblage is on its way out.
func (m *member) isEnding() bool { return m.record != nil && m.record.Deleting }

// isHeld is true if somebody has pinned the cluster.
func (m *member) isHeld() bool { return m.record != nil && m.record.Hold != nil }

// order puts the members in the order in which they go: by the number in a label,
// then by a hash, so that it is arbitrary and always the same.
func (d *decision) order() {
	by := d.o.Module.rollout().OrderBy
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

// look finds out how a member does, as the engine wants to know it.
func (d *decision) look(m *member) {
	switch {
	case m.move != nil: // its time begins to run once it is there
		m.leaf = rollout.Leaf{Current: m.move.Revision, Health: rollout.Progressing, Reason: "being assigned"}
	case m.isAssigned():
		m.leaf = m.record.leaf()
		m.started = m.record.AssignedAt
	default: // nothing of ours is there that could be unready
		m.leaf = rollout.Leaf{Health: rollout.Healthy}
	}
	switch {
	case m.Unreachable:
		m.leaf.Health, m.leaf.Reason = rollout.Degraded, "not reachable"
	case !m.Ready:
		m.leaf.Health, m.leaf.Reason = rollout.Degraded, "not ready: its control plane is not up"
	}
	if !d.isNews() { // what is gone a week after a rollout is no failure of it
		m.leaf.LostSince = time.Time{}
	}
	if m.leaf.Current == d.target { // the very same text: it is compared many times, and that is faster
		m.leaf.Current = d.target
	}
	if len(d.o.Refusals) > 0 {
		d.lookBack(m)
	}
	m.isNew = d.isNew(m)
}

// lookBack is at writes that were refused.
func (d *decision) lookBack(m *member) {
	if r, refused := d.o.Refusals[m.Name]; refused {
		m.leaf.RetryAt, m.leaf.RetryReason = r.At, r.Reason
	}
}

// isNew is true of a cluster that has never run the module, where there is a
// revision that got everywhere. One that does not get to run that is treated like
// all others, so that a later revision may fix it.
func (d *decision) isNew(m *member) bool {
	ran := m.record != nil && m.record.Succeeded != ""
	if !d.o.Module.staged() || d.good == "" || ran || m.leaf.Current != "" && m.leaf.Current != d.good {
		return false
	}
	late := !m.started.IsZero() && !d.o.Now.Before(m.started.Add(d.deadline()))
	return m.leaf.Health != rollout.Failed && !late
}

// isUp is true of a cluster that runs what its assemblage says, and is healthy,
// whatever it is about to be assigned.
func (m *member) isUp() bool {
	return m.isAssigned() && m.Ready && !m.Unreachable && m.record.leaf().Health == rollout.Healthy
}

// isDrifted is true of a cluster of which nobody knows what it runs.
func (m *member) isDrifted() bool {
	return m.isAssigned() && (m.record.Drifted || m.record.Stale) && m.move == nil
}

// drift says why.
func (r *Record) drift() string {
	if r.Drifted {
		return "not what its revision says"
	}
	return "put right, and has not said since that it is ready"
}

// succeeded is true if what it is assigned was reported to have succeeded.
func (r *Record) succeeded() bool { return r.Reported && r.State == v1alpha1.StateSucceeded }

// leaf is how a cluster does that was assigned something.
func (r *Record) leaf() rollout.Leaf {
	leaf := rollout.Leaf{Current: r.Revision, Health: rollout.Progressing}
	if !r.Reported {
		return leaf
	}
	leaf.Settled = r.Succeeded != "" && r.Succeeded == r.Revision
	switch r.State {
	case v1alpha1.StateSucceeded:
		leaf.Health, leaf.HealthySince = rollout.Healthy, later(r.Since, r.AssignedAt)
	case v1alpha1.StateFailed:
		leaf.Health, leaf.Reason = rollout.Failed, "not healthy"+r.said()
	case v1alpha1.StateUnreachable:
		leaf.Health, leaf.Reason, leaf.LostSince = rollout.Degraded, "not reachable"+r.said(), r.Since
	case v1alpha1.StateWaiting:
		leaf.Reason = "waiting" + r.said()
	default:
		leaf.Reason = "updating" + r.said()
	}
	return leaf
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// said is what was reported, as the end of a clause.
func (r *Record) said() string {
	text := ""
	if r.Reason != "" {
		text = " (" + string(r.Reason) + ")"
	}
	if r.Message != "" {
		text += ": " + short(r.Message, saidLength)
	}
	return text
}

// short is the beginning of a text, on one line.
func short(text string, length int) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= length {
		return text
	}
	return strings.ToValidUTF8(text[:length], "") + "..."
}

// assign gives each member its stage: the first that selects it and is not full.
func (d *decision) assign() error {
	specs, err := d.stageSpecs()
	if err != nil {
		return err
	}
	for _, m := range d.members {
		m.stage = unmatched
		if m.isHeld() {
			m.stage = pinned
		}
	}
	for i := range specs {
		d.stages = append(d.stages, stage{name: specs[i].Name, spec: specs[i].Stage})
		d.fill(i, &specs[i])
	}
	d.addOthers()
	d.divide()
	return nil
}

// divide puts the members into their stages, or aside.
func (d *decision) divide() {
	sizes := make([]int, len(d.stages))
	for _, m := range d.members {
		if m.stage >= 0 {
			sizes[m.stage]++
		}
	}
	for i, size := range sizes {
		d.stages[i].members = make([]*member, 0, size)
	}
	for _, m := range d.members {
		if m.stage >= 0 {
			d.stages[m.stage].members = append(d.stages[m.stage].members, m)
		} else {
			d.aside = append(d.aside, m)
		}
	}
}

// stage are clusters that go together.
type stage struct {
	name    string
	spec    v1alpha1.Stage
	members []*member
}

type stageSpec struct {
	v1alpha1.Stage
	selector labels.Selector
}

// stageSpecs are the stages of the spec, or the one that all clusters are.
func (d *decision) stageSpecs() ([]stageSpec, error) {
	stages := d.o.Module.rollout().Stages
	if len(stages) == 0 || !d.o.Module.staged() {
		return []stageSpec{{v1alpha1.Stage{Name: "all"}, labels.Everything()}}, nil
	}
	specs := make([]stageSpec, len(stages))
	for i, s := range stages {
		specs[i] = stageSpec{s, labels.Everything()}
		if s.Selector == nil {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(s.Selector)
		if err != nil {
			return nil, fmt.Errorf("spec.rollout.stages[%d].selector: %w", i, err)
		}
		specs[i].selector = selector
	}
	return specs, nil
}

// fill gives a stage its members. Where it takes but some, those go first that are
// where they should be already, in the order in which they got there, so that it does
// not begin anew when a cluster joins or follows, and those last that have never run the module.
func (d *decision) fill(i int, s *stageSpec) {
	candidates := make([]*member, 0, len(d.members))
	all := s.selector.Empty()
	for _, m := range d.members {
		if m.stage == unmatched && (all || s.selector.Matches(labels.Set(m.Labels))) {
			candidates = append(candidates, m)
		}
	}
	if s.Clusters != nil {
		candidates = d.byClaim(candidates)
		candidates = candidates[:min(len(candidates), limitOf(s.Clusters).of(len(d.members)))]
	}
	for _, m := range candidates {
		m.stage = i
	}
}

// byClaim puts those with the better claim first: of those that are where they should be
// the ones that got there first, as others may have followed them since. Otherwise it
// keeps the order.
func (d *decision) byClaim(candidates []*member) []*member {
	ordered := slices.Clone(candidates)
	slices.SortStableFunc(ordered, func(a, b *member) int {
		claim := d.claim(a)
		if other := d.claim(b); claim != other || claim != 0 {
			return claim - other
		}
		return a.since().Compare(b.since())
	})
	return ordered
}

// since is when a member was assigned what it has, or is about to have.
func (m *member) since() time.Time {
	if m.move != nil {
		return m.move.At.Time
	}
	return m.started
}

func (d *decision) claim(m *member) int {
	switch {
	case m.isNew:
		return 2
	case m.leaf.Current == d.target:
		return 0
	default:
		return 1
	}
}

// addOthers makes those a stage of their own, after the others, that belong to none.
func (d *decision) addOthers() {
	answer := d.o.Module.rollout().UnmatchedClusters
	if answer != v1alpha1.UnmatchedLast && answer != "" {
		return
	}
	others := stage{name: "others"}
	for slices.ContainsFunc(d.stages, func(s stage) bool { return s.name == others.name }) {
		others.name += "-too"
	}
	found := false
	for _, m := range d.members {
		if m.stage == unmatched {
			m.stage, found = len(d.stages), true
		}
	}
	if found {
		d.stages = append(d.stages, others)
	}
}
