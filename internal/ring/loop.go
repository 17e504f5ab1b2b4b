package ring

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Loop is the passes of a reconcile: observe, plan, act, report, learn. S is the ring's
// snapshot, P its plan, R its results.
type Loop[S, P, R any] struct {
	// Most bounds how many passes follow one another before the queue is asked again.
	Most int
	// Pause is when to go on after these. Zero if a watch shows what was written.
	Pause time.Duration
	// Now is the clock.
	Now func() time.Time
	// Observe makes all the reads; live if those of the cache do not suffice. Its error is
	// [ErrGone] if the ring's object does not exist, and there is nothing to do.
	Observe func(ctx context.Context, live bool) (S, error)
	// Forget drops what is remembered of an object that is gone. Nil if nothing is.
	Forget func()
	// Plan is pure.
	Plan func(*S) P
	// Read makes the reads that a plan turned out to need, and is true if there were any:
	// then it is planned again. Nil if Observe reads all.
	Read func(ctx context.Context, s *S, p *P) (more bool, err error)
	// NeedsLive is true if a plan must not be carried out from a cache. Nil if no plan
	// ever needs more.
	NeedsLive func(*P) bool
	// Act makes all the writes: the one that permits, or the others.
	Act func(ctx context.Context, s *S, p *P) R
	// Report emits Events, metrics and log lines, after the writes.
	Report func(ctx context.Context, s *S, p *P, r *R)
	// Learn records the results, and says how to go on.
	Learn func(ctx context.Context, s *S, p *P, r *R) (Next, error)
}

// maxReads bounds how often a plan may need to read more.
const maxReads = 100

var (
	// ErrGone is the error of a snapshot of an object that does not exist.
	ErrGone = errors.New("the object does not exist")

	errEndless = errors.New("the plan keeps asking for more reads")
)

// Next is how a reconcile goes on.
type Next struct {
	// Again is true if what was written is to be acted upon immediately, rather than
	// when a watch shows it.
	Again bool
	// Wake is when time alone changes something, zero for never.
	Wake time.Time
}

// Run makes passes until one leaves nothing to go on with.
func (l *Loop[S, P, R]) Run(ctx context.Context) (reconcile.Result, error) {
	defer UnderWay.Begin(fmt.Sprintf("%T", *new(S)))()
	var next Next
	live := false
	for range l.Most {
		// 1. Observe: all the reads.
		s, err := l.Observe(ctx, live)
		if err != nil {
			return reconcile.Result{}, l.forgetGone(err)
		}
		// 2. Plan: pure, but it may turn out to need more.
		p, err := l.plan(ctx, &s)
		if err != nil {
			return reconcile.Result{}, err
		}
		if l.NeedsLive != nil && l.NeedsLive(&p) {
			live = true
			continue
		}
		// 3. Act: permit, or all the other writes.
		r := l.Act(ctx, &s, &p)
		// 4. Report: Events, metrics, log.
		l.Report(ctx, &s, &p, &r)
		// 5. Learn: what became of it.
		if next, err = l.Learn(ctx, &s, &p, &r); err != nil {
			return reconcile.Result{}, err
		}
		if !next.Again {
			return l.result(ctx, next.Wake), nil
		}
	}
	if l.Pause > 0 {
		return reconcile.Result{RequeueAfter: l.Pause}, nil
	}
	return l.result(ctx, next.Wake), nil
}

// forgetGone is nil for the error of an object that is gone.
func (l *Loop[S, P, R]) forgetGone(err error) error {
	if !errors.Is(err, ErrGone) {
		return err
	}
	if l.Forget != nil {
		l.Forget()
	}
	return nil
}

func (l *Loop[S, P, R]) plan(ctx context.Context, s *S) (P, error) {
	for range maxReads {
		p := l.Plan(s)
		if l.Read == nil {
			return p, nil
		}
		if more, err := l.Read(ctx, s, &p); err != nil || !more {
			return p, err
		}
	}
	var none P
	return none, errEndless
}

func (l *Loop[S, P, R]) result(ctx context.Context, wake time.Time) reconcile.Result {
	if wake.IsZero() {
		return reconcile.Result{}
	}
	log.FromContext(ctx).V(2).Info("observes again", "at", wake)
	return reconcile.Result{RequeueAfter: max(wake.Sub(l.Now()), 1)}
}
