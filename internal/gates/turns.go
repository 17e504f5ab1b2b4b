package gates

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// parallel is how many requests are under way at a time.
	parallel = 32
	// perNamespace is how many of these may be for one namespace.
	perNamespace = 2
)

// turns lets each namespace have only so many requests under way. What has to wait is woken
// when another one of its namespace is done.
type turns struct {
	mu      sync.Mutex
	busy    map[string]int
	waiting map[string][]types.NamespacedName
	wake    func(types.NamespacedName)
}

func newTurns() *turns {
	return &turns{busy: map[string]int{}, waiting: map[string][]types.NamespacedName{}, wake: func(types.NamespacedName) {}}
}

// take is false if it is not the turn of a gate; it is woken when it is.
func (t *turns) take(key types.NamespacedName) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy[key.Namespace] < perNamespace {
		t.busy[key.Namespace]++
		return true
	}
	t.waiting[key.Namespace] = append(t.waiting[key.Namespace], key)
	return false
}

// done ends a turn.
func (t *turns) done(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy[key.Namespace]--; t.busy[key.Namespace] <= 0 {
		delete(t.busy, key.Namespace)
	}
}

// next wakes as many as may have their turn. It is called at the end of every pass, so that
// one that was woken and needs no turn any more leaves it to the next.
func (t *turns) next(namespace string) {
	t.mu.Lock()
	waiting := t.waiting[namespace]
	n := min(len(waiting), max(0, perNamespace-t.busy[namespace]))
	woken := waiting[:n]
	if t.waiting[namespace] = waiting[n:]; n == len(waiting) {
		delete(t.waiting, namespace)
	}
	t.mu.Unlock()
	for _, key := range woken {
		t.wake(key)
	}
}
