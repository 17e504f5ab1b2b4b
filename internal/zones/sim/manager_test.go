package sim

import (
	"reflect"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/zones"
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
	write   zones.Write
	// sent is true once it is too late to think better of it.
	sent bool
}

// manager is a replica of the manager.
type manager struct {
	*rules
	world    *world
	name     string
	view     view
	requests []request
	refusals map[string]zones.Refusal
	// looked is true while nothing has changed since it last decided; wake is when
	// it looks again nevertheless.
	looked bool
	wake   time.Time
	// lazy is how likely a kind is not looked at anew, crash how likely it crashes.
	lazy, crash float64
	// frozen is until when a kind's watch is lost.
	frozen [3]time.Time
}

func newManager(w *world, r *rules, name string) *manager {
	m := &manager{rules: r, world: w, name: name, lazy: 0.4, crash: 0.03, refusals: map[string]zones.Refusal{}}
	m.refresh(0)

	return m
}

// refresh looks anew at some of the kinds.
func (m *manager) refresh(lazy float64) {
	w := m.world

	for kind := range m.frozen {
		if w.storm && lazy > 0 && w.chance(0.01) {
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

// act does one thing: it crashes, it goes on with what it was about to write, or
// it looks and decides.
func (m *manager) act() {
	switch {
	case m.world.storm && m.world.chance(m.crash):
		m.world.notef("%s crashes", m.name)
		m.world.count("crashes")
		m.requests, m.looked, m.refusals = nil, false, map[string]zones.Refusal{}
	case len(m.requests) > 0:
		m.goOn()
	default:
		m.refresh(m.lazy * float64(one(m.world.storm)))
		m.decide()
	}
}

func (m *manager) decide() {
	w := m.world
	if m.looked && (m.wake.IsZero() || w.now.Before(m.wake)) {
		return
	}

	o := m.observed()
	p := m.plan(o)
	m.looked, m.wake = true, p.Wake

	if p.NeedsLive && !m.trusting {
		w.count("live looks")

		m.view.sets, m.view.setsAt = slices.Clone(w.sets), w.setsAt
		m.view.pods, m.view.podsAt = slices.Clone(w.pods), w.podsAt
		o = m.observed()
		o.Live = true
		p = m.plan(o)
		m.wake = p.Wake
	}

	w.oracle.planned(&o, &p)
	m.requests = m.order(p)
}

// order is the writes of a plan as requests.
func (m *manager) order(p zones.Plan) []request {
	var requests []request
	for _, write := range p.Writes {
		requests = append(requests, request{write: write})
	}

	if !reflect.DeepEqual(p.Status, m.view.group.status) {
		requests = append(requests, request{status: &p.Status, version: m.view.group.version, permits: p.Permits})
	}

	return requests
}

// observed makes of the view what the ring would make of it.
func (m *manager) observed() zones.Observed {
	v := &m.view
	asOf := v1alpha1.Seen{Pods: number(v.podsAt), StatefulSets: number(v.setsAt)}
	if m.ageless {
		asOf = v1alpha1.Seen{}
	}

	o := zones.Observed{
		Now: m.world.now, Server: m.world.caps, Refusals: m.refusals,
		AsOf: asOf,
		Group: zones.Group{
			Name: groupName, ResourceVersion: number(v.group.version), Generation: v.group.generation,
			Spec: v.group.spec, Status: v.group.status,
		},
	}

	for i := range v.sets {
		o.Sets = append(o.Sets, v.observed(&v.sets[i]))
	}

	return o
}

func (v *view) observed(s *set) zones.Set {
	o := zones.Set{
		Name: s.name, UID: s.uid, ResourceVersion: number(s.version), Generation: s.generation, ObservedGeneration: s.observed,
		Deleting: s.deleting, Replicas: s.replicas, FirstOrdinal: s.first, Strategy: s.strategy, Lent: s.lent,
		Partition: s.partition, MaxUnavailable: max(1, s.maxUnavailable), MinReady: s.minReady,
		CurrentRevision: s.current, UpdateRevision: s.update, Settings: zones.Settings{Paused: s.paused, Order: s.order},
	}

	for i := range v.pods {
		p := &v.pods[i]
		if p.owner == s.uid {
			o.Pods = append(o.Pods, zones.Pod{
				Name: p.name(), Ordinal: p.ordinal, UID: p.uid, ResourceVersion: number(p.version), Revision: p.revision,
				Created: p.created, Terminating: p.terminating, Ready: p.ready && !p.terminating, Since: p.since,
			})
		}
	}

	return o
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

// goOn sends the next request, or lets one arrive that was sent.
func (m *manager) goOn() {
	r := &m.requests[0]
	if !r.sent && !r.write.Until.IsZero() && !m.world.now.Before(r.write.Until) && !m.late {
		m.requests = m.requests[1:]

		return
	}

	if !r.sent && m.world.storm && m.world.chance(0.1) {
		r.sent = true

		return
	}

	arrived := *r
	m.requests = m.requests[1:]
	m.arrive(arrived)
}

func (m *manager) arrive(r request) {
	w := m.world

	switch {
	case r.status != nil:
		m.writeStatus(r)
	case w.storm && w.chance(0.02):
		w.notef("%s is refused to %s %s%s", m.name, r.write.Act, r.write.Zone, r.write.Pod)
		m.refusals[r.write.Zone] = zones.Refusal{At: w.now.Add(10 * time.Second), Reason: "it was refused"}
		m.looked = false
	case r.write.Act == zones.Delete:
		m.deletePod(r.write)
	default:
		m.writeSet(r.write)
	}
}

func (m *manager) writeStatus(r request) {
	w := m.world
	if w.group.version != r.version && !m.overwrites {
		w.count("conflicts")

		return
	}

	w.writes++
	w.oracle.statusWritten(&m.view, r.status)
	w.group.status, w.group.version = *r.status, w.next()
	m.view.group, m.looked = w.group, false

	if r.permits {
		w.notef("%s permits%v", m.name, moves{r.status})
	} else {
		w.notef("%s writes the status: %s %s, lock %v", m.name, r.status.Phase, r.status.WaitingFor, r.status.Lock != nil)
	}
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

func (m *manager) meets(uid types.UID, version uint64, write zones.Write) bool {
	if m.unconditional || uid == write.UID && number(version) == write.ResourceVersion {
		return true
	}

	m.world.count("conflicts")

	return false
}

func (m *manager) deletePod(write zones.Write) {
	w := m.world
	p := w.podNamed(write.Pod)

	if p == nil || p.terminating || !m.meets(p.uid, p.version, write) {
		return
	}

	s := w.set(p.zone)
	up := w.isUp(s, p)
	p.terminating, p.ready, p.version = true, false, w.nextPod()
	w.writes++
	w.notef("%s deletes %s, up: %v", m.name, p.name(), up)
	w.oracle.tookDown(s, p, up, m.name)
}

func (m *manager) writeSet(write zones.Write) {
	w := m.world
	s := w.set(write.Zone)

	if s == nil || !m.meets(s.uid, s.version, write) {
		return
	}

	w.writes++
	w.notef("%s: %s %s", m.name, write.Act, s.name)
	w.count(string(write.Act))

	switch write.Act {
	case zones.Hold:
		s.strategy, s.partition, s.lent = zones.RollingUpdate, zones.Held, false
	case zones.Open:
		s.partition, s.maxUnavailable = 0, write.MaxUnavailable
	case zones.Lend:
		s.strategy, s.partition, s.lent = zones.OnDelete, 0, true
	case zones.Advance:
		s.current = write.Revision
		w.changed(s)

		return
	case zones.Delete:
	}

	w.respecified(s)
}
