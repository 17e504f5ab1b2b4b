package hub

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// memories are those of all modules of a kind, each used by one pass at a time.
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
			key: key, made: map[made]time.Time{}, refusals: map[string]refusal{},
			foreign: map[string]string{}, drifts: map[types.UID]drift{},
		}
	}
	return m.all[key]
}

func (m *memories) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, key)
}

// memory is what is remembered of a module from pass to pass. All of it is about
// how caches lag behind and writes fail: whoever begins without it decides the
// same, and asks the API server for some of it twice.
type memory struct {
	key types.NamespacedName
	// object is what the API server answered to our last write of the module, until
	// the cache is as new.
	object client.Object
	// asOf is how new the newest view was.
	asOf string
	// live is what the API server itself has answered in this reconcile, nil if it
	// was not asked.
	live *view
	// made are the writes that the cache may not show yet, and when they were made.
	made map[made]time.Time
	// refusals are by cluster.
	refusals map[string]refusal
	// foreign are clusters of which somebody else keeps the sync, by the
	// resourceVersion of the assemblage from which ours was removed. That holds for
	// what a cache that lags shows of it, too.
	foreign map[string]string
	// drifts are whether syncs are what their revisions say, by assemblage.
	drifts map[types.UID]drift
	// overtaken counts the passes in a row in which somebody else was faster.
	overtaken int
	// differs is since when the status that is written is not the present one.
	differs time.Time
	// waits is what the module was said to wait for in the log.
	waits string
}

// made identifies a write by what it was made to.
type made struct {
	act     Act
	target  string
	version string
}

type refusal struct {
	Refusal

	attempts int
}

// drift is whether a sync was what its revision says, and when that was so.
type drift struct {
	version  string
	revision string
	policy   string
	resolved string
	known    bool
	drifted  bool
	edited   bool
	follows  bool
	tagged   bool
	// corrected is the generation of the assemblage by which it was put right, zero if
	// it was not.
	corrected int64
}

func keyOf(w *Write) made {
	key := made{act: w.Act, target: w.target()}
	if w.Record != nil {
		key.version = w.Record.ResourceVersion
	}
	if w.Act == Resolve {
		key.version = string(w.UID) // there may be another revision of the name
	}
	if w.Act == Assign && w.Record == nil {
		key.version = w.AssignedAt.String()
	}
	return key
}

// newest is the newer of what the cache shows of the module and what the API server
// has answered; nil if there is none.
func (m *memory) newest(cached client.Object) client.Object {
	if m.object == nil || cached == nil || cached.GetUID() != m.object.GetUID() ||
		!isOlder(cached.GetResourceVersion(), m.object.GetResourceVersion()) {
		m.object = nil
		return cached
	}
	return m.object
}

// unmade leaves out the writes that were made already, and says when the first of these
// has to be made again unless a cache shows it by then.
func (m *memory) unmade(writes []Write) (left []Write, again time.Time) {
	left = slices.DeleteFunc(slices.Clone(writes), func(w Write) bool {
		at, done := m.made[keyOf(&w)]
		if done {
			again = earlier(again, at.Add(WithdrawAfter))
		}
		return done
	})
	return left, again
}

// seen forgets that something was made, as a cache has shown it: if it is not there any
// more, somebody has taken it away.
func (m *memory) seen(act Act, name string) { delete(m.made, made{act: act, target: name}) }

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
func (m *memory) learn(now time.Time, p *pass, d *deeds) time.Time {
	for i := range d.outcomes {
		m.note(now, &d.outcomes[i])
	}
	switch {
	case d.object != nil:
		m.object, m.differs = d.object, time.Time{}
	case !p.differs:
		m.differs = time.Time{}
	case m.differs.IsZero():
		m.differs = now
	}
	if isOvertaken(d.err) {
		m.object = nil
	}
	wake := earlier(p.wake, m.nextTry(now))
	if d.foundForeign() { // no watch tells: of the entry only who owns it has changed
		wake = now
	}
	if !d.overtaken() {
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
		if out.foreign {
			m.foreign[name] = out.version
		}
	case !isOvertaken(out.err):
		r := m.refusals[name]
		r.Refusal = Refusal{At: now.Add(backoff(retryFirst, r.attempts, retryDoublings, retryMost)), Reason: short(out.err.Error(), saidLength)}
		r.attempts++
		m.refusals[name] = r
	}
}

// expire forgets writes that every cache shows by now, and refusals of writes that
// nobody has wanted for long.
func (m *memory) expire(now time.Time) {
	maps.DeleteFunc(m.made, func(_ made, at time.Time) bool { return now.Sub(at) >= WithdrawAfter })
	maps.DeleteFunc(m.refusals, func(_ string, r refusal) bool { return now.Sub(r.At) > retryMost })
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
