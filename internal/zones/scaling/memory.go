package scaling

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// memory is what is known of a group besides what can be read. Losing it repeats
// calls, and changes no outcome.
type memory struct {
	mu sync.Mutex
	// told is what Pods said, by the UID of their set and their ordinal.
	told map[types.UID]map[int]Told
	// failures are what was refused.
	failures map[string]failure
	// warned are problems that were told already.
	warned map[string]string
}

type failure struct {
	Refusal

	times int
}

// memories are those of all groups.
type memories struct {
	mu sync.Mutex
	of map[types.NamespacedName]*memory
}

func (m *memories) get(key types.NamespacedName) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[types.NamespacedName]*memory{}
	}
	if m.of[key] == nil {
		m.of[key] = newMemory()
	}
	return m.of[key]
}

func newMemory() *memory {
	return &memory{told: map[types.UID]map[int]Told{}, failures: map[string]failure{}, warned: map[string]string{}}
}

// recall is what the Pods of a set said, as far as there still are replicas for it.
func (m *memory) recall(s *Set) map[int]Told {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.told[s.UID], func(ordinal int, told Told) bool {
		return ordinal < s.FirstOrdinal || ordinal >= s.FirstOrdinal+s.Replicas || told.AsOf != "" && told.AsOf != s.ResourceVersion
	})
	return maps.Clone(m.told[s.UID])
}

// note remembers what Pods said.
func (m *memory) note(set types.UID, said map[int]Told) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.told[set] == nil {
		m.told[set] = map[int]Told{}
	}
	maps.Copy(m.told[set], said)
}

// forget drops what is remembered of sets that are gone.
func (m *memory) forget(sets []Set) {
	m.mu.Lock()
	defer m.mu.Unlock()
	there := map[types.UID]bool{}
	for i := range sets {
		there[sets[i].UID] = true
	}
	maps.DeleteFunc(m.told, func(uid types.UID, _ map[int]Told) bool { return !there[uid] })
}

// learn notes how something ended.
func (m *memory) learn(name string, err error, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		delete(m.failures, name)
		return
	}
	f := m.failures[name]
	wait := min(retryFirst<<min(f.times, retryDoublings), retryMost)
	m.failures[name] = failure{Refusal: Refusal{At: now.Add(wait), Reason: err.Error()}, times: f.times + 1}
}

// refusals are the failures that are put off.
func (m *memory) refusals() map[string]Refusal {
	m.mu.Lock()
	defer m.mu.Unlock()
	refusals := make(map[string]Refusal, len(m.failures))
	for name, f := range m.failures {
		refusals[name] = f.Refusal
	}
	return refusals
}

// isNews is true if a problem was not told yet.
func (m *memory) isNews(name, problem string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	news := m.warned[name] != problem
	m.warned[name] = problem
	return news && problem != ""
}
