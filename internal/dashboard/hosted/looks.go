package hosted

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/spillway-dev/spillway/internal/dashboard"
)

// Limits say how much the server does at a time.
type Limits struct {
	// Looks is how many looks are open at a time, OfOne how many of them of one user.
	Looks, OfOne int
	// Following is how many pages of one user are kept up to date at a time, Asking how many
	// other requests of hers are answered, OfAddress how many connections an address may have.
	Following, Asking, OfAddress int
	// Away is how long a look stays open without a viewer, Life how long with one: then it
	// is recreated, with the permissions of then.
	Away, Life time.Duration
	// Body is how long a client may take to send a body, Answer how long to read an answer.
	Body, Answer time.Duration
}

// DefaultLimits are those that hold unless others are given.
func DefaultLimits() Limits {
	return Limits{
		Looks: 50, OfOne: 3, Following: 20, Asking: 20, OfAddress: 100,
		Away: time.Minute, Life: 10 * time.Minute, Body: 10 * time.Second, Answer: 30 * time.Second,
	}
}

// Open makes what a person sees of a namespace, of all if it is empty, until the context ends.
type Open func(ctx context.Context, who Person, namespace string) (*dashboard.Source, error)

// errBusy is that there are too many looks.
var errBusy = errors.New("too many people look at the cluster at the moment; try again in a minute")

// looks are those that are open, by person and namespace.
type looks struct {
	Limits

	ctx    context.Context
	clock  clock.WithTickerAndDelayedExecution
	open   Open
	shared *dashboard.Shared

	mu  sync.Mutex
	all map[string]*look
}

// look is what a person sees of the cluster.
type look struct {
	who   Person
	ctx   context.Context
	close context.CancelFunc
	// made is closed once there are pages, or err why there are none.
	made  chan struct{}
	pages *dashboard.Pages
	err   error

	viewers int
	// left is when the last viewer went.
	left time.Time
}

func newLooks(ctx context.Context, limits Limits, of clock.WithTickerAndDelayedExecution, open Open, shared *dashboard.Shared) *looks {
	l := &looks{Limits: limits, ctx: ctx, clock: of, open: open, shared: shared, all: map[string]*look{}}
	go l.sweep()
	return l
}

// enter returns a person's look for a request, open until leave. It waits until the look has shown
// what the answer needs: so it is known whether she may see anything.
func (l *looks) enter(r *http.Request, who Person, namespace string) (found *look, leave func(), err error) {
	key := who.key(namespace)
	l.mu.Lock()
	found = l.all[key]
	if found == nil {
		if found, err = l.add(key, who); err != nil {
			l.mu.Unlock()
			return nil, nil, err
		}
		go l.make(found, key, namespace)
	}
	found.viewers++
	l.mu.Unlock()
	leave = func() {
		now := l.clock.Now()
		l.mu.Lock()
		defer l.mu.Unlock()
		found.viewers--
		found.left = now
	}
	select {
	case <-found.made:
		err = l.ready(found, key, r)
	case <-r.Context().Done():
		err = fmt.Errorf("wait for the pages: %w", r.Context().Err())
	}
	if err != nil {
		leave()
		return nil, nil, err
	}
	return found, leave, nil
}

// ready waits until pages that are made can answer a request. A look that has shown nothing is not
// kept: the next request is of another one, with the permissions of then.
func (l *looks) ready(f *look, key string, r *http.Request) error {
	if f.err != nil {
		return f.err
	}
	err := f.pages.Ready(r)
	if err == nil {
		return nil
	}
	if r.Context().Err() == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.forget(key, f)
	}
	return fmt.Errorf("look at the cluster as %s: %w", f.who.User, err)
}

// add adds a look that is not made yet. If there are too many, one without viewers is closed.
func (l *looks) add(key string, who Person) (*look, error) {
	mine := 0
	for _, other := range l.all {
		if other.who.User == who.User {
			mine++
		}
	}
	if mine >= l.OfOne && !l.closeOldest(who.User) || len(l.all) >= l.Looks && !l.closeOldest("") {
		return nil, errBusy
	}
	f := &look{who: who, made: make(chan struct{})}
	f.ctx, f.close = context.WithCancel(l.ctx)
	l.all[key] = f
	return f, nil
}

// closeOldest closes the look, of a user if one is named, that was left first; it is false if
// all have viewers.
func (l *looks) closeOldest(user string) bool {
	oldest := ""
	for key, f := range l.all {
		if f.viewers == 0 && (user == "" || f.who.User == user) && (oldest == "" || f.left.Before(l.all[oldest].left)) {
			oldest = key
		}
	}
	if oldest == "" {
		return false
	}
	l.forget(oldest, l.all[oldest])
	return true
}

// forget closes a look, if it is still the one of the key.
func (l *looks) forget(key string, f *look) {
	f.close()
	if l.all[key] == f {
		delete(l.all, key)
	}
}

// make makes the pages of a look. One without pages is not kept.
func (l *looks) make(f *look, key, namespace string) {
	f.err = l.fill(f, namespace)
	end := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.forget(key, f)
	}
	if f.err != nil {
		end()
	} else {
		l.clock.AfterFunc(l.Life, end)
	}
	close(f.made)
}

// fill makes the pages.
func (l *looks) fill(f *look, namespace string) error {
	source, err := l.open(f.ctx, f.who, namespace)
	if err != nil {
		return err
	}
	source.First = int(l.clock.Now().UnixMilli()) // a look has fewer versions than milliseconds
	f.pages = dashboard.NewPages(f.ctx, source, l.shared, f.who.User)
	return nil
}

// sweep closes looks without viewers, until the context ends.
func (l *looks) sweep() {
	tick := l.clock.NewTicker(max(l.Away/2, time.Millisecond)) //nolint:mnd // so that none stays open twice as long
	defer tick.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-tick.C():
			now := l.clock.Now() // a clock that calls back must not wait for what waits for it
			l.mu.Lock()
			for key, f := range l.all {
				if f.viewers == 0 && !now.Before(f.left.Add(l.Away)) {
					l.forget(key, f)
				}
			}
			l.mu.Unlock()
		}
	}
}
