package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/zones/decision"
)

// view is what a manager sees: each kind as it was at some moment.
type view struct {
	group  group
	sets   []set
	pods   []pod
	setsAt uint64
	podsAt uint64
}

// request is something that a manager is about to write.
type request struct {
	// status is that of the group, written if version is still its version.
	status  *v1alpha1.RolloutGroupStatus
	version uint64
	permits bool
	write   decision.Write
}

// flight is a request that was sent, and arrives when it does: its manager has given up to
// wait for an answer, and nothing ends it but its preconditions.
type flight struct {
	request request
	manager *manager
	at      time.Time
}

// manager is a replica of the manager.
type manager struct {
	*rules
	world    *world
	name     string
	view     view
	requests []request
	refusals ring.Refusals
	// verified are the generations of a set that follow from its own writes alone.
	verified map[types.UID]generations
	// own are the moves that it has permitted.
	own []v1alpha1.Move
	// looked is true while nothing has changed since it last decided; wake is when
	// it looks again nevertheless.
	looked bool
	wake   time.Time
	// crash is how likely it crashes.
	crash float64
	// frozen is until when a kind's watch is lost, asleep until when its process
	// does not run.
	frozen [3]time.Time
	asleep time.Time
}

// generations are those at which a manager has opened a set, and held it when it was done.
type generations struct{ opened, held int64 }

func newManager(w *world, r *rules, name string) *manager {
	m := &manager{rules: r, world: w, name: name, crash: 0.03, refusals: ring.Refusals{}, verified: map[types.UID]generations{}}
	m.refresh(0)

	return m
}

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

		switch {
		case kind == 0 && m.view.group.version != w.group.version:
			m.view.group, m.looked = w.group, false
		case kind == 1 && m.view.setsAt != w.setsAt:
			m.view.sets, m.view.setsAt = slices.Clone(w.sets), w.setsAt
			m.looked = false
		case kind == 2 && m.view.podsAt != w.podsAt:
			m.view.pods, m.view.podsAt = slices.Clone(w.pods), w.podsAt
			m.looked = false
		}
	}
}

// act does one thing: it falls asleep, it crashes, it goes on with what it was about to write, or
// it looks and decides.
func (m *manager) act() {
	switch {
	case m.world.now.Before(m.asleep):
	case m.world.storm && m.world.chance(m.world.sleepy):
		m.asleep = m.world.now.Add(m.world.seconds(5, 120))
		m.world.notef("%s sleeps until %s", m.name, m.asleep.Format(time.TimeOnly))
	case m.world.storm && m.world.chance(m.crash):
		m.world.notef("%s crashes", m.name)
		m.world.count("crashes")
		m.requests, m.looked, m.refusals, m.verified = nil, false, ring.Refusals{}, map[types.UID]generations{}
	case len(m.requests) > 0:
		m.goOn()
	default:
		m.refresh(m.world.lazy * float64(one(m.world.storm)))
		m.decide()
	}
}

func (m *manager) decide() {
	w := m.world
	if m.looked && (m.wake.IsZero() || w.now.Before(m.wake)) {
		return
	}

	m.requests = nil
	if _, err := m.loop().Run(context.Background()); err != nil {
		w.oracle.complainf("the loop fails: %v", err)
	}
}

// loop is the ring's, but for the writes: they are made one by one, later.
func (m *manager) loop() *ring.Loop[decision.Observed, decision.Plan, []request] {
	return &ring.Loop[decision.Observed, decision.Plan, []request]{
		Most:      2,
		Now:       m.now,
		Observe:   func(_ context.Context, live bool) (decision.Observed, error) { return m.observe(live), nil },
		NeedsLive: func(p *decision.Plan) bool { return p.NeedsLive },
		Plan: func(o *decision.Observed) decision.Plan {
			p := m.plan(m, *o)
			m.looked, m.wake = true, p.Wake

			return p
		},
		Act: func(_ context.Context, o *decision.Observed, p *decision.Plan) []request {
			m.world.oracle.planned(o, p)

			return m.order(*p)
		},
		Report: func(context.Context, *decision.Observed, *decision.Plan, *[]request) {},
		Learn: func(_ context.Context, _ *decision.Observed, _ *decision.Plan, requests *[]request) (ring.Next, error) {
			m.requests = *requests

			return ring.Next{}, nil
		},
	}
}

func (m *manager) now() time.Time { return m.world.now }

// observe is what the ring observes, from a cache or live.
func (m *manager) observe(live bool) decision.Observed {
	if !live {
		return m.observed()
	}

	m.world.count("live looks")
	m.lookLive()
	o := m.observed()
	o.Live, o.Orphans = true, m.orphans(o.Group.Status.Moves)

	return o
}

// lookLive asks the API server itself for the kinds that a cache shows otherwise.
func (m *manager) lookLive() {
	if w := m.world; !m.trusting {
		m.view.sets, m.view.setsAt = slices.Clone(w.sets), w.setsAt
		m.view.pods, m.view.podsAt = slices.Clone(w.pods), w.podsAt
	}
}

// order is the writes of a plan as requests.
func (m *manager) order(p decision.Plan) []request {
	var requests []request
	if m.rash && p.Permits {
		p = m.actParallel(p)
	}

	for _, write := range p.Writes {
		requests = append(requests, request{write: write})
	}

	if !reflect.DeepEqual(p.Status, m.view.group.status) {
		requests = append(requests, request{status: &p.Status, version: m.view.group.version, permits: p.Permits})
	}

	return requests
}

// observed makes of the view what the ring would make of it.
func (m *manager) observed() decision.Observed {
	v := &m.view
	asOf := v1alpha1.Seen{Pods: number(v.podsAt), StatefulSets: number(v.setsAt)}
	o := decision.Observed{
		Now: m.world.now, Server: m.world.caps, Refusals: m.refusals,
		AsOf: asOf,
		Group: decision.Group{
			Name: groupName, ResourceVersion: number(v.group.version), Generation: v.group.generation,
			Spec: v.group.spec, Status: v.group.status,
		},
	}

	if m.ageless {
		o.AsOf, o.Group.Status.Seen = v1alpha1.Seen{}, nil
	}

	o.Sets = make([]decision.Set, 0, len(v.sets))
	for i := range v.sets {
		s := v.observed(&v.sets[i])
		s.Verified = m.verified[s.UID].held == s.Generation
		o.Sets = append(o.Sets, s)
	}

	return o
}

func (v *view) observed(s *set) decision.Set {
	o := decision.Set{
		Name: s.name, UID: s.uid, ResourceVersion: number(s.version), Generation: s.generation, ObservedGeneration: s.observed,
		Deleting: s.deleting, Replicas: s.replicas, FirstOrdinal: s.first, Strategy: s.strategy, Lent: s.lent,
		Partition: s.partition, MaxUnavailable: max(1, s.maxUnavailable), MinReady: s.minReady, Ordered: s.ordered,
		CurrentRevision: s.current, UpdateRevision: s.update, Settings: decision.Settings{Paused: s.paused, Order: s.order},
	}

	o.Pods = make([]decision.Pod, 0, s.replicas)

	for i := range v.pods {
		p := &v.pods[i]
		if p.owner == s.uid {
			o.Pods = append(o.Pods, decision.Pod{
				Name: p.name, Ordinal: p.ordinal, UID: p.uid, ResourceVersion: number(p.version), Revision: p.revision,
				Created: p.created, Terminating: p.terminating, Ready: p.ready && !p.terminating, Since: p.since, Broken: p.broken,
				NeverReady: !p.wasReady,
			})
		}
	}

	return o
}

// orphans are the Pods of moves of zones that are gone.
func (m *manager) orphans(moves []v1alpha1.Move) (orphans []decision.Pod) {
	for _, move := range moves {
		for i := range m.view.pods {
			if p := &m.view.pods[i]; p.name == move.Pod {
				orphans = append(orphans, decision.Pod{Name: p.name, UID: p.uid, ResourceVersion: number(p.version)})
			}
		}
	}

	return orphans
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

// goOn sends the next request. One that is slow arrives at any later time; the manager looks
// again, and decides from what it sees.
func (m *manager) goOn() {
	r := m.requests[0]
	m.requests = m.requests[1:]

	if !m.world.storm || !m.world.chance(0.1) {
		m.arrive(r)

		return
	}

	w := m.world
	w.count("slow requests")
	w.flights = append(w.flights, flight{request: r, manager: m, at: w.now.Add(w.seconds(1, w.pick(5, 60, 600)))})
	m.looked = false
}

// land lets those requests arrive whose time has come. What the API server answers to them,
// nothing hears.
func (w *world) land() {
	for _, f := range w.flights {
		if !w.now.Before(f.at) {
			deaf := *f.manager
			deaf.verified = map[types.UID]generations{}
			w.notef("a request of %s arrives late", f.manager.name)
			deaf.arrive(f.request)
		}
	}

	w.flights = slices.DeleteFunc(w.flights, func(f flight) bool { return !w.now.Before(f.at) })
}

func (m *manager) arrive(r request) {
	w := m.world

	switch {
	case r.status != nil:
		m.writeStatus(r)
	case w.storm && w.chance(0.02):
		w.notef("%s is refused to %s %s%s", m.name, r.write.Act, r.write.Zone, r.write.Pod)
		m.refusals[r.write.Zone] = ring.Refusal{At: w.now.Add(10 * time.Second), Reason: "it was refused"}
		m.looked = false
	case r.write.Act == decision.Delete:
		m.deletePod(r.write)
	case r.write.Act == decision.Fence && r.write.Pod != "":
		m.fencePod(r.write)
	default:
		m.writeSet(r.write)
	}
}

func (m *manager) writeStatus(r request) {
	w := m.world
	read := &v1alpha1.RolloutGroup{ObjectMeta: metav1.ObjectMeta{Name: groupName, ResourceVersion: number(r.version)}}

	_, err := ring.UpdateStatus(context.Background(), groupWriter{manager: m}, read, func(g *v1alpha1.RolloutGroup) { g.Status = *r.status })
	if err != nil {
		w.count("conflicts")

		return
	}

	if r.permits {
		m.own = append(m.own, r.status.Moves...)
		w.notef("%s permits%v", m.name, moves{r.status})
	} else {
		w.notef("%s writes the status: %s %s, lock %v", m.name, r.status.Phase, r.status.WaitingFor, r.status.Lock != nil)
	}
}

// groupWriter is the API server as far as the status of the group goes.
type groupWriter struct {
	client.SubResourceWriter

	manager *manager
}

// Update refuses what was decided from another version. An update that names none is
// unconditional, as with the real one.
func (g groupWriter) Update(_ context.Context, obj client.Object, _ ...client.SubResourceUpdateOption) error {
	m := g.manager
	w := m.world

	if version := obj.GetResourceVersion(); version != "" && version != number(w.group.version) && !m.overwrites {
		return ring.ErrConflict
	}

	group, ok := obj.(*v1alpha1.RolloutGroup)
	if !ok {
		return fmt.Errorf("%T is no RolloutGroup", obj)
	}

	w.writes++
	w.oracle.statusWritten(&m.view, &group.Status)
	w.group.status, w.group.version = group.Status, w.next()
	m.view.group, m.looked = w.group, false

	return nil
}

// moves tells what a status permits.
type moves struct{ *v1alpha1.RolloutGroupStatus }

// String is the moves and the zone of the lock.
func (s moves) String() string {
	text := ""
	for _, m := range s.Moves {
		text += " " + m.Zone + "/" + m.Pod
	}

	return text + " under the lock for " + strconv.Quote(s.Lock.Zone)
}

// meets is true if the preconditions of a write hold, as the API server checks them: one
// that the write does not name is none.
func (m *manager) meets(uid types.UID, version uint64, want client.Preconditions) bool {
	if m.unconditional || (want.UID == nil || *want.UID == uid) && (want.ResourceVersion == nil || *want.ResourceVersion == number(version)) {
		return true
	}

	m.world.count("conflicts")

	return false
}

// ofPatch are the preconditions in a patch, as the ring writes it.
func (m *manager) ofPatch(write decision.Write) (want client.Preconditions) {
	patch, err := ring.MergePatch(write.UID, write.ResourceVersion, map[string]any{})
	if err != nil {
		m.world.oracle.complainf("no patch: %v", err)

		return want
	}

	raw, _ := patch.Data(nil)
	object := struct {
		Metadata *client.Preconditions `json:"metadata"`
	}{&want}

	if err := json.Unmarshal(raw, &object); err != nil {
		m.world.oracle.complainf("no patch: %v", err)
	}

	return want
}

func (m *manager) deletePod(write decision.Write) {
	w := m.world
	p := w.podNamed(write.Pod)

	if p == nil || p.terminating || !m.meets(p.uid, p.version, ring.Preconditions(write.UID, write.ResourceVersion)) {
		return
	}

	s := w.set(p.zone)
	up := w.isUp(s, p)
	p.terminating, p.ready, p.version = true, false, w.nextPod()
	w.writes++
	w.notef("%s deletes %s, up: %v", m.name, p.name, up)
	w.oracle.tookDown(s, p, up, m.name)
}

// fencePod changes nothing of a Pod but its version.
func (m *manager) fencePod(write decision.Write) {
	w := m.world
	if p := w.podNamed(write.Pod); p != nil && m.meets(p.uid, p.version, ring.Preconditions(write.UID, write.ResourceVersion)) {
		w.writes++
		w.count(string(write.Act))
		w.notef("%s withdraws the delete of %s", m.name, p.name)
		p.version = w.nextPod()
	}
}

func (m *manager) writeSet(write decision.Write) {
	w := m.world
	s := w.set(write.Zone)

	if s == nil || !m.meetsSet(s, write) {
		return
	}

	w.writes++
	w.notef("%s: %s %s", m.name, write.Act, s.name)
	w.count(string(write.Act))

	switch write.Act {
	case decision.Hold:
		s.strategy, s.partition, s.lent = decision.RollingUpdate, decision.Held, false
	case decision.Open:
		s.partition, s.maxUnavailable = 0, write.MaxUnavailable
	case decision.Lend:
		s.strategy, s.partition, s.lent = decision.OnDelete, 0, true
	case decision.Fence:
		w.changed(s)

		return
	case decision.Advance:
		s.current = write.Revision
		w.changed(s)

		return
	case decision.Delete:
	}

	w.respecified(s)
	m.written(s, write)
}

// meetsSet is meets for a set; what is held in its turn is held at its generation.
func (m *manager) meetsSet(s *set, write decision.Write) bool {
	if write.Generation == 0 {
		return m.meets(s.uid, s.version, m.ofPatch(write))
	}

	if m.unconditional || s.uid == write.UID && s.generation == write.Generation {
		return true
	}

	m.world.count("conflicts")

	return false
}

// written takes over what the API server has answered.
func (m *manager) written(s *set, write decision.Write) {
	if i := slices.IndexFunc(m.view.sets, func(seen set) bool { return seen.uid == s.uid }); i >= 0 {
		m.view.sets = slices.Clone(m.view.sets)
		m.view.sets[i] = *s
	}

	m.looked = false

	switch before := m.verified[s.uid]; {
	case write.Act != decision.Hold:
		m.verified[s.uid] = generations{opened: s.generation}
	case write.Done && before.opened != 0 && s.generation == before.opened+1 || m.careless:
		m.verified[s.uid] = generations{opened: before.opened, held: s.generation}
	default:
		delete(m.verified, s.uid)
	}
}
