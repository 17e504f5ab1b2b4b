package dashboard

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/spillway-dev/spillway/internal/describe"
)

const (
	// restLeast and restMost bound how much time is between one look and the next. It is twice as
	// long as the look took, so that looks take at most a third of the time however much changes.
	restLeast, restMost = 100 * time.Millisecond, 10 * time.Second
	// restAsked is how much it is at least after one that has asked the API server.
	restAsked = time.Second
	// lookTimeout is how long one may take.
	lookTimeout = 30 * time.Second
)

// live is the view of the cluster that all viewers share.
type live struct {
	source *Source

	// looking is held during a look.
	looking sync.Mutex

	mu sync.Mutex
	// isDirty is true if something may have changed since the last look.
	isDirty bool
	// next is when the next look may be taken.
	next     time.Time
	seen     seen
	onlooker map[chan struct{}]bool
	arrived  chan struct{}
}

// seen is what was seen, and whether that is old.
type seen struct {
	// Version counts the changes.
	Version     int
	Description describe.Description
	// Err is why it cannot be read at present, Since since when.
	Err   error
	Since time.Time
	// At is when it was read.
	At time.Time
}

func newLive(s *Source) *live {
	return &live{source: s, isDirty: true, onlooker: map[chan struct{}]bool{}, arrived: make(chan struct{}, 1)}
}

// run looks again when something has changed and a page is open, until the context ends. What
// changes after a rest is seen immediately.
func (l *live) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.source.Changed:
			l.mu.Lock()
			l.isDirty = true
			l.mu.Unlock()
		case <-l.arrived:
		case <-clock.RealClock{}.After(l.wakesIn()):
		}
		for l.isWanted() && ctx.Err() == nil {
			l.current(ctx)
			select {
			case <-ctx.Done():
			case <-clock.RealClock{}.After(l.rest()):
			}
		}
	}
}

// isWanted is true if a page is open, and something may have changed.
func (l *live) isWanted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isOld() && len(l.onlooker) > 0
}

// isOld is true if an object may have changed, or if time alone has changed something.
func (l *live) isOld() bool {
	wake := l.seen.Description.Wake
	return l.isDirty || !wake.IsZero() && !l.source.Now().Before(wake)
}

// wakesIn is how long it is until time alone changes something.
func (l *live) wakesIn() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	wake := l.seen.Description.Wake
	if wake.IsZero() || len(l.onlooker) == 0 {
		return time.Hour
	}
	return max(restLeast, wake.Sub(l.source.Now()))
}

// rest is how long it is until the next look may be taken.
func (l *live) rest() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return min(l.next.Sub(l.source.Now()), restMost)
}

// restAfter is how long no other look is taken after one.
func restAfter(took time.Duration, asked bool) time.Duration {
	rest := max(2*took, restLeast) //nolint:mnd // a third of the time
	if asked {
		rest = max(rest, restAsked)
	}
	return min(rest, restMost)
}

// current is how things stand. It looks unless that was done a moment ago.
func (l *live) current(ctx context.Context) seen {
	l.looking.Lock()
	defer l.looking.Unlock()
	l.mu.Lock()
	began := l.source.Now()
	isFresh := l.seen.Version > 0 && (!l.isOld() || began.Before(l.next))
	if isFresh {
		defer l.mu.Unlock()
		return l.seen
	}
	l.isDirty = false
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout) // it is everybody's, not that of who asked first
	defer cancel()
	description, err := l.source.Look(ctx)
	return l.learn(began, description, err)
}

// learn notes what a look has shown, and tells the onlookers if it is something else.
func (l *live) learn(began time.Time, d describe.Description, err error) seen {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.source.Now()
	before := l.seen
	took := now.Sub(began)
	if before.Version == 0 {
		took = 0 // it has waited for what is read once
	}
	l.next = now.Add(restAfter(took, d.Asked && before.Version > 0 || err != nil))
	switch {
	case err != nil && before.Err == nil:
		l.seen.Err, l.seen.Since = err, now
	case err != nil:
		l.seen.Err = err
	default:
		l.seen.Description, l.seen.Err, l.seen.Since, l.seen.At = d, nil, time.Time{}, now
	}
	l.isDirty = l.isDirty || err != nil
	if before.Version == 0 {
		l.seen.Version = l.source.First
	}
	if (err == nil) != (before.Err == nil) || before.Version == 0 || !before.Description.Says(&l.seen.Description) {
		l.seen.Version++
		for on := range l.onlooker {
			select {
			case on <- struct{}{}:
			default: // it reads what is newest anyway
			}
		}
	}
	return l.seen
}

// follow returns what says that something has changed, until leave.
func (l *live) follow() (changed <-chan struct{}, leave func()) {
	on := make(chan struct{}, 1)
	l.mu.Lock()
	l.onlooker[on] = true
	l.mu.Unlock()
	select {
	case l.arrived <- struct{}{}:
	default: // another one has just come
	}
	return on, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.onlooker, on)
	}
}

// version is that of what was seen last.
func (l *live) version() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen.Version
}
