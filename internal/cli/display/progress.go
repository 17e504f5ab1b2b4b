package display

import (
	"context"
	"fmt"
	"io"
	"time"
)

const (
	// progressAfter is how long a command may take before it says how far it is, and
	// progressEvery how often it says so.
	progressAfter, progressEvery = time.Second, 100 * time.Millisecond
)

// Progress is a line on a terminal that says how far a command is, for as long as it
// takes. Elsewhere it writes nothing.
type Progress struct {
	w     io.Writer
	now   func() time.Time
	width int
	next  time.Time
	shown bool
}

// NewProgress returns one for w, by a clock.
func NewProgress(w io.Writer, now func() time.Time) *Progress {
	p := &Progress{w: w, now: now, next: now().Add(progressAfter)}
	if Redraws(w) {
		p.width = TerminalWidth(w)
	}
	return p
}

// Show says how far it is, unless that was said a moment ago.
func (p *Progress) Show(text string) {
	if now := p.now(); p.width > 0 && !now.Before(p.next) {
		p.shown, p.next = true, now.Add(progressEvery)
		_, _ = fmt.Fprintf(p.w, "\r\x1b[K%s", Cut(text, p.width-1))
	}
}

// Clear takes the line away.
func (p *Progress) Clear() {
	if p.shown {
		p.shown = false
		_, _ = fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// Working does work while it says how far that is, as long as its context lasts. It does not
// wait for work that goes on nevertheless: the command ends.
func Working[T any](ctx context.Context, p *Progress, far func() string, work func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		value, err := work()
		done <- answer{value, err}
	}()
	tick := time.NewTicker(progressEvery) //nolint:forbidigo // a view for people, refreshed as they read
	defer tick.Stop()
	defer p.Clear()
	for {
		select {
		case a := <-done:
			return a.value, a.err
		case <-ctx.Done():
			return *new(T), ctx.Err() //nolint:wrapcheck // the caller's own
		case <-tick.C:
			p.Show(far())
		}
	}
}
