package dashboard

import (
	"context"
	"slices"
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
	// lookTimeout is how long one may take, firstTimeout the first one, which waits for lists.
	lookTimeout, firstTimeout = 30 * time.Second, time.Minute
	// patience is how long a page waits for the first look, before it shows what is known so far.
	patience = 300 * time.Millisecond
)

// live is the view of the cluster that all viewers share.
type live struct {
	source *Source
	// ctx ends what is under way.
	ctx context.Context

	mu sync.Mutex
	// underway is the look that has not ended, nil if there is none.
	underway *underway
	// isDirty is true if something may have changed since the last look.
	isDirty bool
	// next is when the next look may be taken.
	next     time.Time
	seen     seen
	onlooker map[chan struct{}]bool
	// arrived is sent to when a page was opened, or must be kept up to date again.
	arrived chan struct{}
}

// underway is a look that has not ended.
type underway struct {
	// ended is closed once it has, soon once a page does not wait for it any longer: of all but
	// the first look that is the same.
	ended, soon chan struct{}
}

// seen is what was seen, and whether that is old.
type seen struct {
	// Version counts the changes.
	Version int
	// Reading are the rings that are not read yet: until the first look has ended, Description
	// is only what is known so far.
	Reading     []string
	Description describe.Description
	// Err is why it cannot be read at present, Since since when.
	Err   error
	Since time.Time
	// At is when all of it was read, zero if it never was.
	At time.Time
}

// newLive has seen nothing. It looks until the context ends.
func newLive(ctx context.Context, s *Source) *live {
	return &live{
		source: s, ctx: ctx, isDirty: true, seen: seen{Reading: describe.Rings()},
		onlooker: map[chan struct{}]bool{}, arrived: make(chan struct{}, 1),
	}
}

// run looks again when something has changed and a page is open. What changes after a rest is
// seen immediately.
func (l *live) run() {
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-l.source.Changed:
			l.mu.Lock()
			l.isDirty = true
			l.mu.Unlock()
		case <-l.arrived:
		case <-clock.RealClock{}.After(l.wakesIn()):
		}
		for l.isWanted() && l.ctx.Err() == nil {
			l.current()
			select {
			case <-l.ctx.Done():
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
func (l *live) current() seen {
	if of := l.begin(); of != nil {
		<-of.ended
	}
	return l.last()
}

// soon is the same, but for the first look, which lists all there is: of that it is what is known
// after a moment.
func (l *live) soon() seen {
	if of := l.begin(); of != nil {
		<-of.soon
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen.Version == 0 { // from here on viewers receive what is new
		l.seen.Version = l.source.First + 1
	}
	return l.seen
}

// last is what was seen last.
func (l *live) last() seen {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen
}

// begin begins a look, unless one is under way, which it returns then, or was taken a moment ago:
// then there is none to wait for.
func (l *live) begin() *underway {
	l.mu.Lock()
	defer l.mu.Unlock()
	began := l.source.Now()
	if l.underway != nil || !l.isOld() || began.Before(l.next) {
		return l.underway
	}
	of := &underway{ended: make(chan struct{})}
	of.soon = of.ended
	l.isDirty, l.underway = false, of
	if isFirst := len(l.seen.Reading) > 0; isFirst {
		of.soon = make(chan struct{})
		go l.lookFirst(of, began)
	} else {
		go l.look(of, began, lookTimeout, nil)
	}
	return of
}

// lookFirst takes the first look.
func (l *live) lookFirst(of *underway, began time.Time) {
	soon := sync.OnceFunc(func() { close(of.soon) })
	defer soon()
	defer clock.RealClock{}.AfterFunc(patience, soon).Stop()
	l.look(of, began, firstTimeout, l.learnPart)
}

// look takes a look, which is everybody's, not that of who asked first.
func (l *live) look(of *underway, began time.Time, timeout time.Duration, part func(describe.Partial)) {
	defer close(of.ended)
	ctx, cancel := context.WithTimeout(l.ctx, timeout)
	defer cancel()
	description, err := l.source.Look(ctx, part)
	l.learn(began, description, err)
}

// learnPart notes what the first look has shown so far.
func (l *live) learnPart(part describe.Partial) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.seen
	l.seen.Reading, l.seen.Description = part.Reading, describe.Description{Units: part.Units}
	isShown := before.Version > 0
	if isShown && (!slices.Equal(before.Reading, part.Reading) || !before.Description.Says(&l.seen.Description)) {
		l.change()
	}
}

// learn notes what a look has shown, and tells the onlookers if it is something else.
func (l *live) learn(began time.Time, d describe.Description, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.source.Now()
	before := l.seen
	took := now.Sub(began)
	isKnown := !before.At.IsZero()
	if !isKnown {
		took = 0 // it has waited for what is read once
	}
	l.underway, l.next = nil, now.Add(restAfter(took, d.Asked && isKnown || err != nil))
	if err == nil {
		l.seen.Description, l.seen.Err, l.seen.Since, l.seen.At = d, nil, time.Time{}, now
	} else {
		l.fail(err, now)
	}
	l.seen.Reading = nil
	if before.Version == 0 {
		l.seen.Version = l.source.First
	}
	if wasPart := len(before.Reading) > 0; wasPart || (err == nil) != (before.Err == nil) || !before.Description.Says(&l.seen.Description) {
		l.change()
	}
}

// fail notes why a look has failed, and has pages that are open look again.
func (l *live) fail(err error, now time.Time) {
	if l.seen.Err == nil {
		l.seen.Since = now
	}
	l.seen.Err, l.isDirty = err, true
	if l.seen.At.IsZero() {
		l.seen.Description = describe.Description{} // a part of it would be taken for all
	}
	l.wake()
}

// change counts a change, and tells the onlookers.
func (l *live) change() {
	l.seen.Version++
	for on := range l.onlooker {
		select {
		case on <- struct{}{}:
		default: // it reads what is newest anyway
		}
	}
}

// wake has [live.run] find out whether another look is wanted.
func (l *live) wake() {
	select {
	case l.arrived <- struct{}{}:
	default: // it is about to
	}
}

// follow returns what says that something has changed, until leave.
func (l *live) follow() (changed <-chan struct{}, leave func()) {
	on := make(chan struct{}, 1)
	l.mu.Lock()
	l.onlooker[on] = true
	l.mu.Unlock()
	l.wake()
	return on, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.onlooker, on)
	}
}

// IsPart reports whether the first look has not ended yet.
func (s *seen) IsPart() bool { return len(s.Reading) > 0 }
