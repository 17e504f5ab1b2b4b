package sim

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
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
	// status is that of the module, written if version is still its version. That is the
	// version from which any other write was decided, too.
	status  *v1alpha1.ModuleStatus
	version uint64
	permits bool
	// over is true of a status that permits removals which need the approval.
	over     bool
	approval string
	write    decision.Write
	// deselected is true if the cluster was not selected in the moment in which it was sent,
	// needed what a revision was needed for then.
	deselected bool
	needed     string
}

// flight is a request that was sent, and arrives when it does, with what its manager saw
// then. That has given up to wait for an answer; nothing ends it but its preconditions.
type flight struct {
	request request
	manager *manager
	at      time.Time
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
	// lost is how often the hub was lost when it was started.
	lost int
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

// refresh looks again at some of the kinds.
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
		m.view.clusters, m.view.clustersAt, m.looked = w.shown(), w.clustersAt, false
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

	if m.lost != w.lost {
		m.begins()
	}

	switch {
	case w.now.Before(m.asleep):
	case w.storm && w.chance(m.sleepiness()):
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

// sleepiness is how likely it falls asleep. It does so more often where that may do harm:
// with a move that it has yet to make, and that others give up meanwhile.
func (m *manager) sleepiness() float64 {
	if len(m.requests) > 0 && (m.requests[0].write.Act == decision.Assign || m.requests[0].write.Act == decision.Unassign) {
		return 5 * m.world.sleepy
	}

	return m.world.sleepy
}

func (m *manager) decide() {
	w := m.world
	if m.looked && (m.wake.IsZero() || m.now().Before(m.wake)) {
		return
	}

	m.requests = nil
	if _, err := m.loop().Run(context.Background()); err != nil {
		w.oracle.complainf("the loop fails: %v", err)
	}
}

// loop is the ring's, but for the writes: they are made one by one, later.
func (m *manager) loop() *ring.Loop[model.Observed, decision.Plan, []request] {
	return &ring.Loop[model.Observed, decision.Plan, []request]{
		Most:      2,
		Now:       m.now,
		Observe:   func(_ context.Context, live bool) (model.Observed, error) { return m.observe(live), nil },
		NeedsLive: func(p *decision.Plan) bool { return p.NeedsLive },
		Plan: func(o *model.Observed) decision.Plan {
			p := m.plan(m, *o)
			m.looked, m.wake = true, p.Wake

			return p
		},
		Act: func(_ context.Context, o *model.Observed, p *decision.Plan) []request {
			m.world.oracle.planned(o, p)
			requests := m.order(*p)

			if n := len(requests); n > 0 && p.Permits {
				requests[n-1].over, requests[n-1].approval = m.world.oracle.isOver(o), o.Module.RemovalApproval
			}

			return requests
		},
		Report: func(context.Context, *model.Observed, *decision.Plan, *[]request) {},
		Learn: func(_ context.Context, _ *model.Observed, _ *decision.Plan, requests *[]request) (ring.Next, error) {
			m.requests = *requests

			return ring.Next{}, nil
		},
	}
}

// observe is what the ring observes, from a cache or live.
func (m *manager) observe(live bool) model.Observed {
	if live {
		m.world.count("live looks")
		m.lookLive()
	}
	o := m.observed()
	o.Live = live

	return o
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
		requests = append(requests, request{write: write, version: m.view.module.version})
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
		Now: m.now(), Looks: m.world.mortal, AsOf: number(v.recordsAt), Refusals: m.refusals, Revisions: v.revisions, Gates: v.gates,
		Module: model.Module{
			Kind: model.KindModule, Name: moduleName, ResourceVersion: number(v.module.version), Generation: v.module.generation,
			Finalized: v.module.finalized, RemovalApproval: v.module.approval, Retry: v.module.retry, Spec: v.module.spec, Status: v.module.status,
		},
	}

	if m.ageless {
		o.AsOf = ""
		o.Module.Status.Seen = nil
	}

	o.Clusters = make([]model.Cluster, len(v.clusters))
	for i := range v.clusters {
		o.Clusters[i] = v.clusters[i].Cluster
	}

	for _, name := range slices.Sorted(maps.Keys(v.assemblages)) {
		a := v.assemblages[name]
		r := a.record(name, v.module.spec.DeletionPolicy, v.resolved(a.revision))
		r.Drifted = r.Drifted || a.kept && v.has(a.revision) // it is written once that is known
		o.Records = append(o.Records, r)
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
		Cluster: name, Name: name, UID: a.uid, ResourceVersion: number(a.version), Generation: a.generation, Fence: a.fence,
		Assigned: a.assigned, Leaving: a.leaving, Revision: a.revision, AssignedAt: a.at, Unready: a.unready, Drifted: a.drifted || a.policy != policy, DeletionPolicy: a.policy, Hold: a.hold,
		Reported: a.state != "" && a.reported == a.revision && a.reportOf.Equal(a.at), State: a.state, Since: a.since,
		Succeeded: a.succeeded, Proven: a.succeeded == a.revision && a.proven.Equal(a.at), Noticed: a.seen == a.generation, Resolved: a.resolved,
		Found: a.found, Silent: a.silent, Unseen: !a.looked && !a.assigned, GivenUp: a.givenUp,
	}
	if a.state == v1alpha1.StateWaiting {
		r.Reason = outcome.ReasonSuspended
	}

	if a.triedOnce && a.state == v1alpha1.StateUpdating {
		r.Reason = triedOnce
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

// triedOnce is the reason of a sync that Flux could not apply once, and tries again.
const triedOnce = "TriedOnce"

func number(n uint64) string { return strconv.FormatUint(n, 10) }

// haste is how many requests it sends at a time: after the storm all of them, and
// more of them in larger worlds, as these would take for ever.
func (m *manager) haste() int {
	if !m.world.storm {
		return len(m.requests)
	}

	return min(len(m.requests), 1+len(m.world.clusters)/20)
}

// goOn sends the next request, unless it is wrong by now. One that is slow arrives at any
// later time.
func (m *manager) goOn() {
	r := m.requests[0]
	m.requests = m.requests[1:]
	w := m.world

	switch {
	case !m.isRight(&r):
		w.count("removals not made")
		m.looked = false
	case w.storm && w.chance(0.1):
		w.count("slow requests")
		w.flights = append(w.flights, m.slow(r, w.seconds(1, []int{5, 60, 600}[w.rnd.IntN(3)])))
		m.looked = false
	default:
		m.arrive(&r)
	}
}

// slow is a request that arrives later.
func (m *manager) slow(r request, by time.Duration) flight {
	then := *m
	then.own, then.refusals = maps.Clone(m.own), maps.Clone(m.refusals)

	return flight{request: r, manager: &then, at: m.world.now.Add(by)}
}

// land lets those requests arrive whose time has come. What the API server answers to them,
// nothing hears.
func (w *world) land() {
	flights := w.flights
	w.flights = slices.DeleteFunc(slices.Clone(flights), func(f flight) bool { return !w.now.Before(f.at) })

	for _, f := range flights {
		if !w.now.Before(f.at) {
			w.notef("a request of %s arrives late", f.manager.name)
			f.manager.arrive(&f.request)
		}
	}
}

// isRight is false of a removal of which the API server itself says, when it is sent, that
// it is none any more.
func (m *manager) isRight(r *request) bool {
	switch r.write.Act {
	case decision.DeleteRevision:
		r.needed = m.world.oracle.needs(r.write.Revision)

		return r.version == m.world.module.version || m.careless
	case decision.Unassign:
	default:
		return true
	}

	c := m.world.cluster(r.write.Cluster.Name)
	r.deselected = c == nil || !c.hidden && !m.world.isSelected(&c.Cluster)

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
	case r.write.Act == decision.CreateRevision, r.write.Act == decision.DeleteRevision, r.write.Act == decision.CreateGate,
		r.write.Act == decision.ReachGate, r.write.Act == decision.EndGate, r.write.Act == decision.DeleteGate:
		m.writeOther(r)
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
	m.looked = false
	read := &v1alpha1.Module{ObjectMeta: metav1.ObjectMeta{Name: moduleName, ResourceVersion: number(r.version)}}

	_, err := ring.UpdateStatus(context.Background(), moduleWriter{manager: m, request: r}, read, func(o *v1alpha1.Module) { o.Status = *r.status })
	if err != nil {
		m.world.count("conflicts")

		return
	}

	for _, move := range r.status.Moves {
		if r.permits {
			m.own[move.Cluster] = move.At.Time
		}
	}
	m.world.notef("%s writes the status: %s %s, moves [%s], target %s good %s", m.name, r.status.Phase, r.status.WaitingFor, nameMoves(r.status.Moves), r.status.TargetRevision, r.status.CurrentRevision)
}

// moduleWriter is the API server as far as the status of the module goes.
type moduleWriter struct {
	client.SubResourceWriter

	manager *manager
	request *request
}

// Update refuses what was decided from another version. An update that names none is
// unconditional, as with the real one.
func (u moduleWriter) Update(_ context.Context, obj client.Object, _ ...client.SubResourceUpdateOption) error {
	m, w := u.manager, u.manager.world

	if version := obj.GetResourceVersion(); version != "" && version != number(w.module.version) && !m.overwrites {
		return ring.ErrConflict
	}

	w.writes++
	w.oracle.checkRetry(u.request)
	w.oracle.permitted(u.request)
	w.module.status, w.module.version = *u.request.status, w.next()
	m.view.module = w.module
	w.count("permits")
	w.oracle.statusWritten(u.request.status)

	return nil
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
	w.revisions[at].Resolved, w.revisions[at].ResourceVersion = write.Resolved, number(w.next())
	w.revisions[at].Pinned = true
	w.writes++
	w.othersAt = w.next()
	w.count(string(decision.Resolve))
	w.notef("%s: %s is %s", m.name, write.Revision, write.Resolved)
}

// writeOther makes revisions and gates, and takes them away.
func (m *manager) writeOther(r *request) {
	w, write := m.world, &r.write

	switch write.Act {
	case decision.CreateRevision:
		if slices.ContainsFunc(w.revisions, func(r model.Revision) bool { return r.Name == write.Revision }) {
			return
		}
		w.revisions = append(slices.Clone(w.revisions), w.newRevision(write.Revision, write.Number))
	case decision.DeleteRevision:
		if !m.deleteRevision(r) {
			return
		}
	case decision.ReachGate, decision.EndGate, decision.DeleteGate:
		if !m.noteInGate(write) {
			return
		}
	default:
		name := model.GateName(write.Revision, write.Stage, write.Gate)
		if slices.ContainsFunc(w.gates, func(g model.Gate) bool { return g.Name == name }) {
			return
		}
		w.gates = append(slices.Clone(w.gates), model.Gate{
			Name: name, Revision: write.Revision, Stage: write.Stage, Gate: write.Gate.Name, When: write.Gate.When,
			Rolls: write.Gate.When == v1alpha1.During, UID: types.UID(number(w.next())), ResourceVersion: number(w.next()),
		})
	}

	w.writes++
	w.othersAt = w.next()
}

// noteInGate notes that the rollout has come to a gate, or that its stage is over, or deletes the gate, if
// it is as it was seen.
func (m *manager) noteInGate(write *decision.Write) bool {
	w := m.world
	name := model.GateName(write.Revision, write.Stage, write.Gate)
	at := slices.IndexFunc(w.gates, func(g model.Gate) bool { return g.Name == name })

	if at < 0 || !m.meets(w.gates[at].UID, w.gates[at].ResourceVersion, ring.Preconditions(write.UID, write.ResourceVersion)) {
		w.count("conflicts")
		m.looked = false

		return false
	}

	w.count(string(write.Act))

	if w.gates = slices.Clone(w.gates); write.Act == decision.DeleteGate {
		w.gates = slices.Delete(w.gates, at, at+1)

		return true
	}
	w.gates[at].Reached, w.gates[at].ResourceVersion = true, number(w.next())
	w.gates[at].Rolls = w.gates[at].Rolls && write.Act == decision.ReachGate

	return true
}

// deleteRevision deletes the revision that was seen.
func (m *manager) deleteRevision(r *request) bool {
	w, name := m.world, r.write.Revision
	named := func(r model.Revision) bool { return r.Name == name }
	at, seen := slices.IndexFunc(w.revisions, named), slices.IndexFunc(m.view.revisions, named)

	if at < 0 {
		return false
	}
	is, was := &w.revisions[at], &m.view.revisions[seen]

	if !m.meets(is.UID, is.ResourceVersion, ring.Preconditions(was.UID, was.ResourceVersion)) {
		w.count("conflicts")

		return false
	}
	w.oracle.deleted(r, is, was)
	w.revisions = slices.DeleteFunc(slices.Clone(w.revisions), named)
	w.count(string(decision.DeleteRevision))
	w.notef("%s deletes %s", m.name, name)

	return true
}

// meets is true if the preconditions of a write hold, as the API server checks them: one
// that the write does not name is none.
func (m *manager) meets(uid types.UID, version string, want client.Preconditions) bool {
	return m.unconditional || (want.UID == nil || *want.UID == uid) && (want.ResourceVersion == nil || *want.ResourceVersion == version)
}

// ofPart are the preconditions of what is applied to an assemblage, as the ring writes them.
func ofPart(write *decision.Write) (want client.Preconditions) {
	metadata := map[string]any{}
	ring.Require(metadata, write.Record.UID, write.Record.ResourceVersion)

	if uid, ok := metadata["uid"].(types.UID); ok {
		want.UID = &uid
	}

	if version, ok := metadata["resourceVersion"].(string); ok {
		want.ResourceVersion = &version
	}

	return want
}

// writeRecord writes the sync of a cluster, if its assemblage is as it was seen.
func (m *manager) writeRecord(r *request) {
	w, write := m.world, &r.write
	c := w.cluster(write.Cluster.Name)
	a, there := w.assemblages[write.Cluster.Name]

	switch {
	case c == nil:
		return
	case write.Act == decision.CreateAssemblage && there, write.Record != nil && !m.meets(a.uid, number(a.version), ofPart(write)):
		w.count("conflicts")
		m.looked = false

		return
	case write.Act == decision.Fence && !there:
		return
	case !there:
		a = assemblage{uid: types.UID(strconv.FormatUint(w.next(), 10))}
	}

	w.writes++
	w.count(string(write.Act))
	w.oracle.written(m, r, c, a)
	w.notef("%s: %s %s %s", m.name, write.Act, c.Name, write.Revision)

	switch known := m.view.has(write.Revision); {
	case write.Act == decision.CreateAssemblage:
	case write.Act == decision.Fence:
		a.fence = number(a.version)
		w.changed(c.Name, a, false)

		return
	case write.Act == decision.Unassign, write.Act == decision.Assign && !known: // there is nothing to write
		a = assemblage{uid: a.uid, generation: a.generation, fence: a.fence, hold: a.hold, leaving: a.assigned, looked: true}
	case write.Act == decision.Take:
		a = w.takenOver(c, a, write)
	case known:
		a.leaving, a.kept, a.found, c.tried = false, false, nil, false
		a.givenUp, a.unready, a.triedOnce = m.copyOf(), write.Unready, false
		a.assigned, a.revision, a.at, a.drifted = true, write.Revision, write.AssignedAt, false
		a.exact = digest(m.view.resolved(write.Revision))
		a.corrected = 0

		if write.Act == decision.Correct {
			a.corrected = a.generation + 1
		}

		fallthrough
	default: // what becomes of it is said where the rest is not known any more
		a.givenUp = m.copyOf()
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
	}
	return strings.Join(names, ", ")
}
