package ring

import (
	"fmt"
	"sync"
	"time"
)

// Running are the passes that are under way in this process. A pass ends within the bound
// that the manager sets, whatever the API server does: it gives up when its context
// ends. One that has not ended long after hangs, and its ring does nothing any more.
type Running struct {
	mu    sync.Mutex
	begun map[*pass]struct{}
	now   func() time.Time
}

type pass struct {
	of    string
	began time.Time
}

// UnderWay are those of all rings. Their clock is that of the machine, as the bound is.
var UnderWay = NewRunning(time.Now) //nolint:forbidigo,gochecknoglobals // it decides nothing but whether the process is to go on

// NewRunning are none, by a clock.
func NewRunning(now func() time.Time) *Running {
	return &Running{begun: map[*pass]struct{}{}, now: now}
}

// Begin notes that a pass of something begins, until what it returns is called.
func (p *Running) Begin(of string) (end func()) { return p.BeginAt(of, p.now()) }

// BeginAt is Begin for a pass that has begun before.
func (p *Running) BeginAt(of string, at time.Time) (end func()) {
	begun := &pass{of: of, began: at}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun[begun] = struct{}{}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.begun, begun)
	}
}

// Hanging is an error if a pass is under way for longer than this. A ring that waits has none.
func (p *Running) Hanging(longest time.Duration) error {
	now := p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	for begun := range p.begun {
		if took := now.Sub(begun.began); took > longest {
			return fmt.Errorf("a pass of %s hangs for %s", begun.of, took.Round(time.Second))
		}
	}
	return nil
}
