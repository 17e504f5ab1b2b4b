package barrier

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spillway-dev/spillway/internal/ring"
)

var one = reconcile.Request{NamespacedName: types.NamespacedName{Name: "one"}}

func aQueue() (*queue, *Clock) {
	clock := &Clock{}
	return makeQueue("test", ring.Passes().RateLimiter(), clock), clock
}

// begins gets the next request, which there is.
func (q *queue) begins(t *testing.T) {
	t.Helper()
	if q.Len() != 1 {
		t.Fatalf("%d requests are ready", q.Len())
	}
	q.Get()
}

// is checks what the queue waits for, empty for nothing.
func (q *queue) is(t *testing.T, want string) {
	t.Helper()
	if err := q.idle(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("the queue says %v, want %q", err, want)
	}
}

func TestARequestIsReadyRunningOrHeld(t *testing.T) {
	q, clock := aQueue()
	q.is(t, "started false")
	q.Add(one)
	q.begins(t)
	q.is(t, "running map[")
	q.Add(one) // once more after this pass
	q.Done(one)
	q.is(t, "ready [/one]")
	q.begins(t)
	q.AddAfter(one, soon/2)
	q.Done(one)
	q.is(t, "is due in")
	clock.Step(soon)
	q.begins(t)
	q.AddAfter(one, time.Hour)
	q.Done(one)
	q.is(t, "")
	if q.begun() != 3 {
		t.Errorf("%d passes", q.begun())
	}
}

// The earliest of several times counts.
func TestHeldUntilTheEarliest(t *testing.T) {
	q, clock := aQueue()
	q.AddAfter(one, time.Hour)
	q.AddAfter(one, time.Minute)
	q.AddAfter(one, 2*time.Hour)
	clock.Step(time.Minute)
	q.begins(t)
	q.Done(one)
	clock.Step(3 * time.Hour)
	q.is(t, "")
}

// A pass that asks to be woken in an hour has seen the time before a step, whenever it asks.
func TestAStepDuringAPass(t *testing.T) {
	q, clock := aQueue()
	q.Add(one)
	q.begins(t)
	clock.Step(time.Hour)
	q.AddAfter(one, time.Hour)
	q.Done(one)
	q.begins(t)
}

func TestFailuresBackOffByTheClock(t *testing.T) {
	q, clock := aQueue()
	for i := range 6 {
		q.AddRateLimited(one)
		if q.Len() != 0 || q.NumRequeues(one) != i+1 {
			t.Errorf("%d ready after %d failures", q.Len(), q.NumRequeues(one))
		}
		clock.Step(ring.Passes().Most)
		q.begins(t)
		q.Done(one)
	}
	if q.Forget(one); q.NumRequeues(one) != 0 {
		t.Error("failures are not forgotten")
	}
}
