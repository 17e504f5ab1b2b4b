package zones

import (
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/zones/decision"
)

// memory is what is remembered of a group from pass to pass. All of it is about
// caches that lag and writes that fail: a manager that begins without it decides the
// same, and asks the API server for some of it twice.
type memory struct {
	ring.Memory[*v1alpha1.RolloutGroup]

	key types.NamespacedName
	// known is the group as it was read or written last. If a user deletes it, what it
	// was to persist is kept here.
	known *v1alpha1.RolloutGroup
	// asOf is how new the newest view was.
	asOf v1alpha1.Seen
	// live is what the API server itself has answered in this reconcile, nil if it
	// was not asked.
	live *view
	// sets are what the API server answered to our last write of them, until the
	// cache is as new; verified says of which generations that is known, by UID.
	sets     map[types.UID]*appsv1.StatefulSet
	verified map[types.UID]verified
}

func newMemory(key types.NamespacedName) *memory {
	return &memory{key: key, sets: map[types.UID]*appsv1.StatefulSet{}, verified: map[types.UID]verified{}}
}

// verified are generations of a StatefulSet that follow from one another by our own
// writes alone; see [Set.Verified].
type verified struct{ opened, held int64 }

// renew puts our own writes into a view that does not show them yet.
func (m *memory) renew(v *view) {
	for i := range v.sets {
		answer := m.sets[v.sets[i].UID]
		switch {
		case answer == nil:
		case ring.Older(v.sets[i].ResourceVersion, answer.ResourceVersion):
			v.sets[i] = *answer
		default:
			delete(m.sets, answer.UID)
		}
	}
}

// mark marks the sets that are verified.
func (m *memory) mark(sets []decision.Set) []decision.Set {
	for i := range sets {
		sets[i].Verified = m.verified[sets[i].UID].held == sets[i].Generation
	}
	return sets
}

// learn remembers what became of a pass, and returns when to observe again; zero if
// time alone changes nothing.
func (m *memory) learn(now time.Time, s *snapshot, p *pass, r *results) time.Time {
	m.expire(s.sets)
	for i := range r.Writes {
		if w := &r.Writes[i]; w.Err == nil && w.Write.set != nil {
			m.written(&w.Write.Write, w.Write.set)
		}
	}
	return ring.Earlier(p.wake, ring.Learn(&m.Memory, now, r, p.differs))
}

// written notes the answer to a write of a StatefulSet's spec. What was opened by
// us and held by us at the next generation, when it was done, is verified.
func (m *memory) written(w *decision.Write, answer *appsv1.StatefulSet) {
	m.sets[answer.UID] = answer
	before := m.verified[answer.UID]
	switch {
	case w.Act == decision.Fence: // it is no part of the spec
	case w.Act != decision.Hold:
		m.verified[answer.UID] = verified{opened: answer.Generation}
	case w.Done && before.opened != 0 && answer.Generation == before.opened+1:
		m.verified[answer.UID] = verified{opened: before.opened, held: answer.Generation}
	default:
		delete(m.verified, answer.UID)
	}
}

// expire forgets sets that are gone.
func (m *memory) expire(sets []appsv1.StatefulSet) {
	gone := func(uid types.UID) bool {
		return !slices.ContainsFunc(sets, func(s appsv1.StatefulSet) bool { return s.UID == uid })
	}
	maps.DeleteFunc(m.sets, func(uid types.UID, _ *appsv1.StatefulSet) bool { return gone(uid) })
	maps.DeleteFunc(m.verified, func(uid types.UID, _ verified) bool { return gone(uid) })
}
