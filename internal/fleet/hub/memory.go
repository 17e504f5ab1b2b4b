package hub

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
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
	conflicts int
	// differs is since when the status that is written is not the present one.
	differs time.Time
	// waits is what the module was said to wait for in the log.
	waits string
}

// made identifies a write by what it was made to.
type made struct {
	act     decision.Act
	target  string
	version string
}

type refusal struct {
	model.Refusal

	attempts int
}

func keyOf(w *decision.Write) made {
	key := made{act: w.Act, target: w.Target()}
	if w.Record != nil {
		key.version = w.Record.ResourceVersion
	}
	if w.Act == decision.Resolve {
		key.version = string(w.UID) // there may be another revision of the name
	}
	if w.Act == decision.Assign && w.Record == nil {
		key.version = w.AssignedAt.String()
	}
	return key
}

// newest is the newer of what the cache shows of the module and what the API server
// has answered; nil if there is none.
func (m *memory) newest(cached client.Object) client.Object {
	if m.object == nil || cached == nil || cached.GetUID() != m.object.GetUID() ||
		!model.IsOlder(cached.GetResourceVersion(), m.object.GetResourceVersion()) {
		m.object = nil
		return cached
	}
	return m.object
}

// unmade leaves out the writes that were made already, and says when the first of these
// has to be made again unless a cache shows it by then.
func (m *memory) pending(writes []decision.Write) (left []decision.Write, again time.Time) {
	left = slices.DeleteFunc(slices.Clone(writes), func(w decision.Write) bool {
		at, done := m.made[keyOf(&w)]
		if done {
			again = model.Earlier(again, at.Add(decision.WithdrawAfter))
		}
		return done
	})
	return left, again
}

// seen forgets that something was made, as a cache has shown it: if it is not there any
// more, somebody has taken it away.
func (m *memory) seen(act decision.Act, name string) { delete(m.made, made{act: act, target: name}) }

// due are the refusals as the decision knows them.
func (m *memory) due() map[string]model.Refusal {
	refusals := make(map[string]model.Refusal, len(m.refusals))
	for name, r := range m.refusals {
		refusals[name] = r.Refusal
	}
	return refusals
}

// learn remembers what became of a pass, and returns when to look again; zero if
// nothing changes by itself.
func (m *memory) learn(now time.Time, p *pass, d *results) time.Time {
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
	if isConflict(d.err) {
		m.object = nil
	}
	wake := model.Earlier(p.wake, m.nextTry(now))
	if d.foundForeign() { // no watch tells: of the entry only who owns it has changed
		wake = now
	}
	if !d.overtaken() {
		m.conflicts = 0
		return wake
	}
	m.conflicts++
	return model.Earlier(wake, now.Add(backoff(conflictFirst, m.conflicts-1, conflictDoublings, conflictMost)))
}

func (m *memory) note(now time.Time, out *outcome) {
	name := out.write.Target()
	switch {
	case out.err == nil:
		m.made[keyOf(&out.write)] = now
		delete(m.refusals, name)
		if out.foreign {
			m.foreign[name] = out.version
		}
	case !isConflict(out.err):
		r := m.refusals[name]
		r.Refusal = model.Refusal{At: now.Add(backoff(retryFirst, r.attempts, retryDoublings, retryMost)), Reason: model.Short(out.err.Error(), model.SaidLength)}
		r.attempts++
		m.refusals[name] = r
	}
}

// expire forgets writes that every cache shows by now, and refusals of writes that
// nobody has wanted for long.
func (m *memory) expire(now time.Time) {
	maps.DeleteFunc(m.made, func(_ made, at time.Time) bool { return now.Sub(at) >= decision.WithdrawAfter })
	maps.DeleteFunc(m.refusals, func(_ string, r refusal) bool { return now.Sub(r.At) > retryMost })
}

func (m *memory) nextTry(now time.Time) time.Time {
	var next time.Time
	for _, r := range m.refusals {
		if r.At.After(now) {
			next = model.Earlier(next, r.At)
		}
	}
	return next
}
