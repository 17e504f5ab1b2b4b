package barrier

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// soon is how far ahead a request still belongs to what is being done.
const soon = time.Second

// queue is the queue of a controller. What is to wait in it waits for the stepped clock.
type queue struct {
	workqueue.TypedInterface[reconcile.Request]

	name    string
	limiter workqueue.TypedRateLimiter[reconcile.Request]
	clock   *Clock

	mu    sync.Mutex
	ready []reconcile.Request
	// running are the requests with a pass, and by how much the clock was stepped when it began.
	running map[reconcile.Request]time.Duration
	// held are those that wait, and until when.
	held map[reconcile.Request]time.Time
	// started is true once a worker has asked for a request, which it does when all watches
	// have delivered what there was.
	started bool
	// passes is how many have begun, releases how many are no longer held and not ready yet.
	passes, releases int
}

func makeQueue(name string, limiter workqueue.TypedRateLimiter[reconcile.Request], clock *Clock) *queue {
	q := &queue{name: name, limiter: limiter, clock: clock, running: map[reconcile.Request]time.Duration{}, held: map[reconcile.Request]time.Time{}}
	q.TypedInterface = workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{Queue: order{q}})
	clock.subscribe(q.release)
	return q
}

// order is the order of what is ready. The queue calls it with its own lock held, so a
// request is always either ready, running or held.
type order struct{ *queue }

// Touch implements [workqueue.Queue].
func (order) Touch(reconcile.Request) {}

// Push implements [workqueue.Queue].
func (o order) Push(r reconcile.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ready = append(o.ready, r)
}

// Len implements [workqueue.Queue].
func (o order) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.ready)
}

// Pop implements [workqueue.Queue].
func (o order) Pop() reconcile.Request {
	ahead := o.clock.stepped()
	o.mu.Lock()
	defer o.mu.Unlock()
	r := o.ready[0]
	o.ready, o.running[r] = o.ready[1:], ahead
	o.passes++
	return r
}

// Get implements [workqueue.TypedInterface].
func (q *queue) Get() (r reconcile.Request, shutdown bool) {
	q.mu.Lock()
	q.started = true
	q.mu.Unlock()
	return q.TypedInterface.Get()
}

// Done implements [workqueue.TypedInterface].
func (q *queue) Done(r reconcile.Request) {
	q.TypedInterface.Done(r) // it is ready again before it stops running
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.running, r)
}

// AddAfter implements [workqueue.TypedDelayingInterface]. A step during the pass that asks for
// it counts: what the pass saw was the time before.
func (q *queue) AddAfter(r reconcile.Request, wait time.Duration) {
	ahead := q.clock.stepped()
	until := q.clock.Now().Add(wait)
	q.mu.Lock()
	if began, ok := q.running[r]; ok {
		until = until.Add(began - ahead)
	}
	if before, ok := q.held[r]; !ok || until.Before(before) {
		q.held[r] = until
	}
	q.mu.Unlock()
	q.release()
	time.AfterFunc(until.Sub(q.clock.Now()), q.release)
}

// release makes ready what is due.
func (q *queue) release() {
	q.mu.Lock()
	var due []reconcile.Request
	maps.DeleteFunc(q.held, func(r reconcile.Request, until time.Time) bool {
		if until.After(q.clock.Now()) {
			return false
		}
		due = append(due, r)
		return true
	})
	q.releases += len(due)
	q.mu.Unlock()
	for _, r := range due {
		q.Add(r)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.releases -= len(due)
}

// AddRateLimited implements [workqueue.TypedRateLimitingInterface].
func (q *queue) AddRateLimited(r reconcile.Request) { q.AddAfter(r, q.limiter.When(r)) }

// Forget implements [workqueue.TypedRateLimitingInterface].
func (q *queue) Forget(r reconcile.Request) { q.limiter.Forget(r) }

// NumRequeues implements [workqueue.TypedRateLimitingInterface].
func (q *queue) NumRequeues(r reconcile.Request) int { return q.limiter.NumRequeues(r) }

// begun is how many passes have begun.
func (q *queue) begun() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.passes
}

// idle is nil if nothing is to be done.
func (q *queue) idle() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.started || len(q.ready)+len(q.running)+q.releases > 0 {
		return fmt.Errorf("controller %s: started %t, ready %v, running %v", q.name, q.started, q.ready, q.running)
	}
	for r, until := range q.held {
		if wait := until.Sub(q.clock.Now()); wait < soon {
			return fmt.Errorf("controller %s: %s is due in %s", q.name, r, wait)
		}
	}
	return nil
}
