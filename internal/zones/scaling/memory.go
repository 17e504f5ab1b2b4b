package scaling

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/ring"
)

// memory is what is known of a group besides what can be read. Losing it repeats
// calls, and changes no outcome.
type memory struct {
	ring.Memory[*v1alpha1.RolloutGroup]

	// answers are what Pods answered, by the UID of their set and their ordinal.
	answers map[types.UID]map[int]Answer
}

func newMemory() *memory { return &memory{answers: map[types.UID]map[int]Answer{}} }

// recall returns what the Pods of a set answered, as far as there still are replicas for
// it.
func (m *memory) recall(s *Set) map[int]Answer {
	maps.DeleteFunc(m.answers[s.UID], func(ordinal int, a Answer) bool {
		return ordinal < s.FirstOrdinal || ordinal >= s.FirstOrdinal+s.Replicas || a.AsOf != "" && a.AsOf != s.ResourceVersion
	})
	return maps.Clone(m.answers[s.UID])
}

// note remembers what Pods answered.
func (m *memory) note(set types.UID, answers map[int]Answer) {
	if m.answers[set] == nil {
		m.answers[set] = map[int]Answer{}
	}
	maps.Copy(m.answers[set], answers)
}

// expire drops what is remembered of sets that are gone.
func (m *memory) expire(sets []Set) {
	exists := map[types.UID]bool{}
	for i := range sets {
		exists[sets[i].UID] = true
	}
	maps.DeleteFunc(m.answers, func(uid types.UID, _ map[int]Answer) bool { return !exists[uid] })
}

// learn records what became of a pass, and says how to go on: immediately where Pods
// have answered.
func (m *memory) learn(now time.Time, p *Plan, r *results) ring.Next {
	failed := false
	for i := range r.Writes {
		failed = failed || r.Writes[i].Err != nil
	}
	wake := ring.Learn(&m.Memory, now, r, false)
	return ring.Next{Again: len(p.Calls) > 0 && !failed, Wake: ring.Earlier(wake, p.Wake)}
}
