package zones

import (
	"maps"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
)

// memories are those of all groups, each used by one pass at a time.
type memories struct {
	mu  sync.Mutex
	all map[types.NamespacedName]*memory
}

func (m *memories) of(key types.NamespacedName) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[types.NamespacedName]*memory{}
	}
	if m.all[key] == nil {
		m.all[key] = &memory{
			key: key, sets: map[types.UID]*appsv1.StatefulSet{}, calm: map[types.UID]calm{},
			made: map[made]time.Time{}, refusals: map[string]refusal{},
		}
	}
	return m.all[key]
}

func (m *memories) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, key)
}

// memory is what is remembered of a group from pass to pass. All of it is about
// how caches lag behind and writes fail: whoever begins without it decides the
// same, and asks the API server for some of it twice.
type memory struct {
	key types.NamespacedName
	// group is what the API server answered to our last write of it, until the
	// cache is as new; at is when.
	group *v1alpha1.RolloutGroup
	at    time.Time
	// known is the group as it was seen or written last. If somebody deletes it, what
	// it was to persist is kept here.
	known *v1alpha1.RolloutGroup
	// asOf is how new the newest view was.
	asOf v1alpha1.Seen
	// live is what the API server itself has answered in this reconcile, nil if it
	// was not asked.
	live *view
	// sets are what the API server answered to our last write of them, until the
	// cache is as new; calm says of which generations that is known, by UID.
	sets map[types.UID]*appsv1.StatefulSet
	calm map[types.UID]calm
	// made are the writes that the cache may not show yet, and when they were made.
	made map[made]time.Time
	// refusals are by the name of the Pod or the StatefulSet.
	refusals map[string]refusal
	// overtaken counts the passes in a row in which somebody else was faster.
	overtaken int
	// differs is since when the status that is written is not the present one.
	differs time.Time
	// waits is what the group was said to wait for in the log.
	waits string
	// told are mistakes that were told by an Event.
	told string
	// gauges are what the metrics of the group show.
	gauges map[series]float64
}

// made identifies a write by what it was made to.
type made struct {
	act     Act
	uid     types.UID
	version string
}

// calm are generations of a StatefulSet that follow from one another by our own
// writes alone; see [Set.Calm].
type calm struct{ opened, held int64 }

type refusal struct {
	Refusal
	attempts int
}

func keyOf(w *Write) made { return made{w.Act, w.UID, w.ResourceVersion} }

// newest is the newer of what the cache shows of the group and what the API
// server has answered; nil if there is none.
func (m *memory) newest(cached *v1alpha1.RolloutGroup, now time.Time) *v1alpha1.RolloutGroup {
	switch {
	case m.group == nil:
		return cached
	case cached == nil && now.Sub(m.at) < unseenLimit:
		return m.group
	case cached == nil || cached.UID != m.group.UID || !isOlder(cached.ResourceVersion, m.group.ResourceVersion):
		m.group = nil
		return cached
	default:
		return m.group
	}
}

// renew puts our own writes into a view that does not show them yet.
func (m *memory) renew(v *view) {
	for i := range v.sets {
		answer := m.sets[v.sets[i].UID]
		switch {
		case answer == nil:
		case isOlder(v.sets[i].ResourceVersion, answer.ResourceVersion):
			v.sets[i] = *answer
		default:
			delete(m.sets, answer.UID)
		}
	}
}

// calmed marks the sets that are calm.
func (m *memory) calmed(sets []Set) []Set {
	for i := range sets {
		sets[i].Calm = m.calm[sets[i].UID].held == sets[i].Generation
	}
	return sets
}

// written notes the answer to a write of a StatefulSet's spec. What was opened by
// us and held by us at the next generation, when it was done, is calm.
func (m *memory) written(w *Write, answer *appsv1.StatefulSet) {
	m.sets[answer.UID] = answer
	before := m.calm[answer.UID]
	switch {
	case w.Act != Hold:
		m.calm[answer.UID] = calm{opened: answer.Generation}
	case w.Done && before.opened != 0 && answer.Generation == before.opened+1:
		m.calm[answer.UID] = calm{opened: before.opened, held: answer.Generation}
	default:
		delete(m.calm, answer.UID)
	}
}

// unmade leaves out the writes that were made already.
func (m *memory) unmade(writes []Write) []Write {
	return slices.DeleteFunc(slices.Clone(writes), func(w Write) bool {
		_, done := m.made[keyOf(&w)]
		return done
	})
}

// due are the refusals as the decision knows them.
func (m *memory) due() map[string]Refusal {
	refusals := make(map[string]Refusal, len(m.refusals))
	for name, r := range m.refusals {
		refusals[name] = r.Refusal
	}
	return refusals
}

// learn remembers what became of a pass, and returns when to look again; zero if
// nothing changes by itself.
func (m *memory) learn(now time.Time, s *sight, p *pass, d *deeds) time.Time {
	m.expire(now, s.sets)
	overtaken := d.overtaken()
	for i := range d.outcomes {
		m.note(now, &d.outcomes[i])
	}
	switch {
	case d.group != nil:
		m.group, m.at, m.differs = d.group, now, time.Time{}
	case !p.differs:
		m.differs = time.Time{}
	case m.differs.IsZero():
		m.differs = now
	}
	if isOvertaken(d.groupErr) {
		m.group = nil
	}
	wake := earlier(p.wake, m.nextTry(now))
	if !overtaken {
		m.overtaken = 0
		return wake
	}
	m.overtaken++
	return earlier(wake, now.Add(backoff(overtakenFirst, m.overtaken-1, overtakenDoublings, overtakenMost)))
}

func (m *memory) note(now time.Time, out *outcome) {
	name := out.write.target()
	switch {
	case out.err == nil:
		m.made[keyOf(&out.write)] = now
		delete(m.refusals, name)
		if out.set != nil {
			m.written(&out.write, out.set)
		}
	case !isOvertaken(out.err):
		r := m.refusals[name]
		r.Refusal = Refusal{At: now.Add(backoff(retryFirst, r.attempts, retryDoublings, retryMost)), Reason: out.err.Error()}
		r.attempts++
		m.refusals[name] = r
	}
}

// target is the name of what is written to.
func (w *Write) target() string {
	if w.Pod != "" {
		return w.Pod
	}
	return w.Zone
}

// expire forgets writes that every cache shows by now, refusals of writes that
// nobody has wanted for long, and sets that are gone.
func (m *memory) expire(now time.Time, sets []appsv1.StatefulSet) {
	gone := func(uid types.UID) bool {
		return !slices.ContainsFunc(sets, func(s appsv1.StatefulSet) bool { return s.UID == uid })
	}
	maps.DeleteFunc(m.sets, func(uid types.UID, _ *appsv1.StatefulSet) bool { return gone(uid) })
	maps.DeleteFunc(m.calm, func(uid types.UID, _ calm) bool { return gone(uid) })
	for key, at := range m.made {
		if now.Sub(at) > WithdrawAfter {
			delete(m.made, key)
		}
	}
	for name, r := range m.refusals {
		if now.Sub(r.At) > retryMost {
			delete(m.refusals, name)
		}
	}
}

func (m *memory) nextTry(now time.Time) time.Time {
	var next time.Time
	for _, r := range m.refusals {
		if r.At.After(now) {
			next = earlier(next, r.At)
		}
	}
	return next
}

// earlier is the earlier of two moments, of which zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
