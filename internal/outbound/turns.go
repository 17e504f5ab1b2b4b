package outbound

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const (
	// Parallel is how many requests are under way at a time.
	Parallel = 32
	// perNamespace is how many of these may be for one namespace.
	perNamespace = 2
)

// Turns lets each namespace have only so many requests under way. What has to wait is woken
// when another one of its namespace is done.
type Turns struct {
	mu      sync.Mutex
	busy    map[string]int
	waiting map[string][]types.NamespacedName
	wake    func(types.NamespacedName)
}

// NewTurns returns turns of which none is taken.
func NewTurns() *Turns {
	return &Turns{busy: map[string]int{}, waiting: map[string][]types.NamespacedName{}, wake: func(types.NamespacedName) {}}
}

// Source wakes objects through the queue of a controller.
func (t *Turns) Source() source.Source {
	return source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		t.wake = func(key types.NamespacedName) { q.Add(reconcile.Request{NamespacedName: key}) }
		return nil
	})
}

// Take is false if it is not the turn of an object; it is woken when it is.
func (t *Turns) Take(key types.NamespacedName) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy[key.Namespace] < perNamespace {
		t.busy[key.Namespace]++
		return true
	}
	t.waiting[key.Namespace] = append(t.waiting[key.Namespace], key)
	return false
}

// Done ends a turn.
func (t *Turns) Done(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy[key.Namespace]--; t.busy[key.Namespace] <= 0 {
		delete(t.busy, key.Namespace)
	}
}

// Next wakes as many as may have their turn. It is called at the end of every pass, so that
// one that was woken and needs no turn any more leaves it to the next.
func (t *Turns) Next(namespace string) {
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
