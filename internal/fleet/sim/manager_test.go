package sim

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/ring"
)

// view is what a manager sees: each kind as it was at some moment.
type view struct {
	module      module
	clusters    []cluster
	assemblages map[string]assemblage
	revisions   []model.Revision
	gates       []model.Gate

	clustersAt, recordsAt, othersAt uint64
}

// request is something that a manager is about to write.
type request struct {
	// status is that of the module, written if version is still its version.
	status  *v1alpha1.ModuleStatus
	version uint64
	permits bool
	// over is true of a status that permits removals which need the approval.
	over     bool
	approval string
	write    decision.Write
	// sent is true once it is too late to think better of it, deselected if the cluster
	// was not selected in that moment.
	sent, deselected bool
}

// manager is a replica of the hub.
type manager struct {
	*rules

	world    *world
	name     string
	view     view
	requests []request
	refusals ring.Refusals
	// skew is by how much its clock is ahead.
	skew time.Duration
	// looked is true if nothing has changed in the view since it was last looked at.
	looked bool
	wake   time.Time
	// frozen is until when a watch is lost, asleep until when its process does not run.
	frozen [4]time.Time
	asleep time.Time
	// own are the moves that it has written down itself.
	own map[string]time.Time
}

func newManager(w *world, r *rules, name string) *manager {
	m := &manager{rules: r, world: w, name: name, refusals: map[string]ring.Refusal{}, own: map[string]time.Time{}}
	if w.skewed {
		m.skew = map[string]time.Duration{"hub-1": skewMost, "hub-2": -skewMost}[name]
	}
	m.refresh(0)

	return m
}

// skewMost is by how much the clock of a manager is wrong at most. Two of them are apart
// by less than what a move counts longer than it is acted upon.
const skewMost = 5 * time.Second

// now is what time a manager takes it for.
func (m *manager) now() time.Time { return m.world.now.Add(m.skew) }

// refresh looks anew at some of the kinds.
func (m *manager) refresh(lazy float64) {
	w := m.world

	for kind := range m.frozen {
		if w.storm && lazy > 0 && w.chance(w.frozen) {
			m.frozen[kind] = w.now.Add(w.seconds(10, 120))
		}

		if lazy > 0 && (w.now.Before(m.frozen[kind]) || w.chance(lazy)) {
			continue
		}

		m.see(kind)
	}
}

func (m *manager) see(kind int) {
	w := m.world

	switch {
	case kind == 0 && m.view.module.version != w.module.version:
		m.view.module, m.looked = w.module, false
	case kind == 1 && m.view.clustersAt != w.clustersAt:
		m.view.clusters, m.view.clustersAt, m.looked = slices.Clone(w.clusters), w.clustersAt, false
	case kind == 2 && m.view.recordsAt != w.recordsAt:
		m.view.assemblages, m.view.recordsAt, m.looked = maps.Clone(w.assemblages), w.recordsAt, false
	case kind == 3 && m.view.othersAt != w.othersAt:
		m.view.revisions, m.view.gates = slices.Clone(w.revisions), slices.Clone(w.gates)
		m.view.othersAt, m.looked = w.othersAt, false
	}
}

// act does one thing: it falls asleep, it crashes, it goes on with what it was about
// to write, or it looks and decides.
func (m *manager) act() {
	w := m.world

	switch {
	case w.now.Before(m.asleep):
	case w.storm && w.chance(w.sleepy):
		m.asleep = w.now.Add(w.seconds(5, 120))
	case w.storm && w.chance(0.03):
		w.notef("%s crashes", m.name)
		w.count("crashes")
		m.requests, m.looked, m.refusals = nil, false, map[string]ring.Refusal{}
	case len(m.requests) > 0:
		for range m.haste() {
			m.goOn()
		}
	default:
		lazy := w.lazy
		if !w.storm {
			lazy = 0
		}
		m.refresh(lazy)
		m.decide()
	}
}

func (m *manager) decide() {
	w := m.world
	if m.looked && (m.wake.IsZero() || m.now().Before(m.wake)) {
		return
	}

	o := m.observed()
	p := m.plan(m, o)
	m.looked, m.wake = true, p.Wake

	if p.NeedsLive {
		w.count("live looks")
		m.lookLive()
		o = m.observed()
		o.Live = true
		p = m.plan(m, o)
		m.wake = p.Wake
	}

	w.oracle.planned(&o, &p)
	m.requests = m.order(p)
	if n := len(m.requests); n > 0 && p.Permits {
		m.requests[n-1].over, m.requests[n-1].approval = w.oracle.isOver(&o), o.Module.RemovalApproval
	}
}

// lookLive asks the API server itself for the assemblages.
func (m *manager) lookLive() {
	if !m.trusting {
		m.view.assemblages, m.view.recordsAt = maps.Clone(m.world.assemblages), m.world.recordsAt
	}
}

// order is the writes of a plan as requests.
func (m *manager) order(p decision.Plan) []request {
	if m.rash && p.Permits {
		p = m.actWithoutPermit(p)
	}

	requests := make([]request, 0, len(p.Writes)+1)
	for _, write := range p.Writes {
		requests = append(requests, request{write: write})
	}

	if p.Permits || len(p.Writes) == 0 && !reflect.DeepEqual(p.Status, m.view.module.status) {
		requests = append(requests, request{status: &p.Status, version: m.view.module.version, permits: p.Permits})
	}

	return requests
}

// observed makes of the view what the ring would make of it.
func (m *manager) observed() model.Observed {
	v := &m.view
	o := model.Observed{
		Now: m.now(), AsOf: number(v.recordsAt), Refusals: m.refusals, Revisions: v.revisions, Gates: v.gates,
		Module: model.Module{
			Kind: model.KindModule, Name: moduleName, ResourceVersion: number(v.module.version), Generation: v.module.generation,
			Finalized: v.module.finalized, RemovalApproval: v.module.approval, Spec: v.module.spec, Status: v.module.status,
		},
	}

	if m.ageless {
		o.AsOf = ""
		o.Module.Status.Seen = nil
	}

	o.Clusters = make([]model.Cluster, len(v.clusters))
	for i := range v.clusters {
		o.Clusters[i] = v.clusters[i].Cluster
		if a, ok := v.assemblages[o.Clusters[i].Name]; ok {
			o.Records = append(o.Records, a.record(o.Clusters[i].Name, v.module.spec.DeletionPolicy, v.resolved(a.revision)))
		}
	}

	return o
}

// resolved is the commit that the tag of a revision turned out to be, as far as it is
// known.
func (v *view) resolved(revision string) string {
	for i := range v.revisions {
		if v.revisions[i].Name == revision {
			return v.revisions[i].Resolved
		}
	}

	return ""
}

// digest is a commit without the tag by which it was found.
func digest(resolved string) string { return strings.TrimPrefix(resolved, "tag@") }

// has is true of a revision that is seen.
func (v *view) has(revision string) bool {
	return slices.ContainsFunc(v.revisions, func(r model.Revision) bool { return r.Name == revision })
}

func (a *assemblage) record(name string, policy v1alpha1.DeletionPolicy, resolved string) model.Record {
	if policy == "" {
		policy = v1alpha1.Delete
	}

	r := model.Record{
		Cluster: name, Name: name, UID: a.uid, ResourceVersion: number(a.version), Generation: a.generation,
		Assigned: a.assigned, Leaving: a.leaving, Revision: a.revision, AssignedAt: a.at, Drifted: a.drifted || a.policy != policy, DeletionPolicy: a.policy, Hold: a.hold,
		Reported: a.state != "" && a.reported == a.revision && a.reportOf.Equal(a.at), State: a.state, Since: a.since,
		Succeeded: a.succeeded, Noticed: a.seen == a.generation, Resolved: a.resolved,
	}
	succeeded, elsewhere := r.Reported && r.State == v1alpha1.StateSucceeded, false

	switch {
	case a.exact == digest(resolved):
	case a.exact != "" || succeeded && digest(a.resolved) != digest(resolved):
		r.Drifted, elsewhere = true, true
	case r.Drifted: // it is put right as it is
	default:
		r.Tagged = true
		r.Follows = succeeded || r.Reported && r.State == v1alpha1.StateFailed
	}
	r.Edited = a.drifted || a.exact != "" && a.exact != digest(resolved)
	r.Stale = succeeded && !r.Edited && !elsewhere && !r.Follows && (a.seen < a.corrected || resolved == "" && a.seen < a.generation || resolved != "" && digest(a.resolved) != digest(resolved))

	return r
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

// haste is how many requests it sends at a time: after the storm all of them, and
// more of them in larger worlds, as these would take for ever.
func (m *manager) haste() int {
	if !m.world.storm {
		return len(m.requests)
	}

	return min(len(m.requests), 1+len(m.world.clusters)/20)
}

// goOn sends the next request, or lets one arrive that was sent.
func (m *manager) goOn() {
	r := &m.requests[0]
	if !r.sent && !r.write.Until.IsZero() && !m.now().Before(r.write.Until) && !m.late {
		m.requests = m.requests[1:]
		m.looked = false

		return
	}

	if !r.sent && !m.isRight(r) {
		m.requests = m.requests[1:]
		m.looked = false
		m.world.count("removals not made")

		return
	}

	if !r.sent && m.world.storm && m.world.chance(0.1) {
		r.sent = true

		return
	}

	arrived := *r
	m.requests = m.requests[1:]
	m.arrive(&arrived)
}

// isRight is false of a removal of which the API server itself says, when it is sent, that
// it is none any more.
func (m *manager) isRight(r *request) bool {
	if r.write.Act != decision.Unassign {
		return true
	}

	c := m.world.cluster(r.write.Cluster.Name)
	r.deselected = c == nil || !m.world.isSelected(&c.Cluster)

	return r.deselected || m.blindly
}

func (m *manager) arrive(r *request) {
	w := m.world

	switch {
	case r.status != nil:
		m.writeStatus(r)
	case w.storm && r.write.Cluster != nil && w.chance(0.02):
		m.refusals[r.write.Cluster.Name] = ring.Refusal{At: m.now().Add(10 * time.Second), Reason: "it was refused"}
		m.looked = false
		w.count("refusals")
	case r.write.Act == decision.AddFinalizer:
		m.finalize()
	case r.write.Act == decision.Resolve:
		m.resolve(&r.write)
	case r.write.Act == decision.CreateRevision, r.write.Act == decision.DeleteRevision, r.write.Act == decision.CreateGate:
		m.writeOther(&r.write)
	default:
		m.writeRecord(r)
	}
}

func (m *manager) finalize() {
	w := m.world
	m.looked = false

	if w.module.version != m.view.module.version {
		w.count("conflicts")

		return
	}

	w.writes++
	w.module.finalized, w.module.version = true, w.next()
	m.view.module = w.module
}

func (m *manager) writeStatus(r *request) {
	w := m.world
	m.looked = false

	if w.module.version != r.version && !m.overwrites {
		w.count("conflicts")

		return
	}

	w.writes++
	w.oracle.permitted(r)
	w.module.status, w.module.version = *r.status, w.next()
	m.view.module = w.module
	w.count("permits")
	w.oracle.statusWritten(r.status)

	for _, move := range r.status.Moves {
		if r.permits {
			m.own[move.Cluster] = move.At.Time
		}
	}
	w.notef("%s writes the status: %s %s, moves [%s], target %s good %s", m.name, r.status.Phase, r.status.WaitingFor, nameMoves(r.status.Moves), r.status.TargetRevision, r.status.CurrentRevision)
}

// resolve writes down what a tag is, if no manager has done so.
func (m *manager) resolve(write *decision.Write) {
	w := m.world
	m.looked = false
	at := slices.IndexFunc(w.revisions, func(r model.Revision) bool { return r.Name == write.Revision })

	if at < 0 || w.revisions[at].Resolved != "" {
		w.count("conflicts")

		return
	}

	w.oracle.resolved(write)
	w.revisions = slices.Clone(w.revisions)
	w.revisions[at].Resolved = write.Resolved
	w.writes++
	w.othersAt = w.next()
	w.count(string(decision.Resolve))
	w.notef("%s: %s is %s", m.name, write.Revision, write.Resolved)
}

// writeOther makes revisions and gates, and takes them away.
func (m *manager) writeOther(write *decision.Write) {
	w := m.world

	switch write.Act {
	case decision.CreateRevision:
		if slices.ContainsFunc(w.revisions, func(r model.Revision) bool { return r.Name == write.Revision }) {
			return
		}
		w.revisions = append(slices.Clone(w.revisions), model.Revision{Name: write.Revision, Number: write.Number})
	case decision.DeleteRevision:
		w.oracle.deleted(write.Revision)
		w.revisions = slices.DeleteFunc(slices.Clone(w.revisions), func(r model.Revision) bool { return r.Name == write.Revision })
	default:
		name := model.GateName(write.Revision, write.Stage, write.Gate)
		if slices.ContainsFunc(w.gates, func(g model.Gate) bool { return g.Name == name }) {
			return
		}
		w.gates = append(slices.Clone(w.gates), model.Gate{Name: name, Revision: write.Revision, Stage: write.Stage, Gate: write.Gate.Name})
	}

	w.writes++
	w.othersAt = w.next()
}

// writeRecord writes the sync of a cluster, if its assemblage is as it was seen.
func (m *manager) writeRecord(r *request) {
	w, write := m.world, &r.write
	c := w.cluster(write.Cluster.Name)
	a, there := w.assemblages[write.Cluster.Name]

	switch {
	case c == nil:
		return
	case !m.unconditional && write.Record != nil && (!there || a.uid != write.Record.UID || number(a.version) != write.Record.ResourceVersion):
		w.count("conflicts")
		m.looked = false

		return
	case !there:
		a = assemblage{uid: types.UID(strconv.FormatUint(w.next(), 10))}
	}

	w.writes++
	w.count(string(write.Act))
	w.oracle.written(m, r, c, a)
	w.notef("%s: %s %s %s", m.name, write.Act, c.Name, write.Revision)

	switch known := m.view.has(write.Revision); {
	case write.Act == decision.Unassign, write.Act == decision.Assign && !known: // there is nothing to write
		a = assemblage{uid: a.uid, generation: a.generation, hold: a.hold, leaving: a.assigned}
	case known:
		a.leaving = false
		a.assigned, a.revision, a.at, a.drifted = true, write.Revision, write.AssignedAt, false
		a.exact = digest(m.view.resolved(write.Revision))
		a.corrected = 0

		if write.Act == decision.Correct {
			a.corrected = a.generation + 1
		}

		fallthrough
	default: // what becomes of it is said where the rest is not known any more
		a.policy = cmp.Or(m.view.module.spec.DeletionPolicy, v1alpha1.Delete)
	}
	w.changed(c.Name, a, true)
}

// nameMoves says what is permitted, for the log.
func nameMoves(moves []v1alpha1.Move) string {
	names := make([]string, len(moves))
	for i := range moves {
		m := &moves[i]
		names[i] = m.Cluster + " to " + m.Revision
		if m.Remove {
			names[i] = m.Cluster + " removed"
		}
		if m.Repair {
			names[i] += " (down)"
		}
		if m.Withdrawn {
			names[i] += " (withdrawn)"
		}
	}
	return strings.Join(names, ", ")
}
