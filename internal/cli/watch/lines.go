package watch

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/history"
)

// lineWriter writes a line for whatever changes, for logs and pipes.
type lineWriter struct {
	out   io.Writer
	style display.Style
	// began is when the watch did: what was recorded before is history.
	began time.Time
	// said is what was last said of each unit.
	said map[string]string
	// isBlind is true while nothing can be seen, which is said once.
	isBlind bool
}

func (l *lineWriter) misses(err error, now time.Time) {
	if !l.isBlind {
		l.write(now, "spillway", "API server not reachable, retrying: "+display.Plain(err.Error()))
	}
	l.isBlind = true
}

func (l *lineWriter) sees(units []describe.Unit, now time.Time) {
	if l.isBlind {
		l.isBlind = false
		l.write(now, "spillway", "API server reachable again")
	}
	first := l.said == nil
	if first {
		l.said = map[string]string{}
	}
	l.changes(units, "", "", first, now)
}

// changes writes of units what has changed. Beneath what is complete, and what waits for
// the same as the unit above it, there is nothing new.
func (l *lineWriter) changes(units []describe.Unit, above, sentence string, first bool, now time.Time) {
	for i := range units {
		u := &units[i]
		key, text := above+"/"+u.String(), l.text(u)
		isNews := l.said[key] != text && (above == "" || !first || !u.IsComplete()) && (u.Sentence != sentence || u.Sentence == "")
		if l.said[key] = text; isNews {
			l.write(now, nameAbove(above, u), display.WithEnd(text, u, now))
		}
		l.changes(u.Units, key, u.Sentence, first, now)
	}
}

// nameAbove is the unit's name with that of the object that it is part of.
func nameAbove(above string, u *describe.Unit) string {
	name := display.Name(u)
	if above == "" || strings.Contains(name, "/") && u.Namespace != "" {
		return name
	}
	parts := strings.SplitN(strings.TrimPrefix(above, "/"), "/", 3)
	return strings.Join(parts[:min(len(parts), 2)], "/") + " " + name
}

func (l *lineWriter) hears(n *history.Event) {
	if n.At.Before(l.began.Add(-time.Second)) {
		return
	}
	reason := n.Reason
	if n.Warning {
		reason = l.style.Paint(display.Red, reason)
	}
	l.write(n.At, n.About.String(), reason+": "+display.EventText(n))
}

func (l *lineWriter) write(at time.Time, about, text string) {
	_, _ = fmt.Fprintf(l.out, "%s %s %s\n", l.style.Paint(display.Faint, at.UTC().Format(time.TimeOnly)), about, text)
}

// text is how a unit stands, without what changes with the time alone.
func (l *lineWriter) text(u *describe.Unit) string {
	text := l.style.Word(string(u.Phase))
	if u.Total > 0 {
		text += fmt.Sprintf(" %d/%d %s", u.Done, u.Total, u.Counted)
	}
	if u.Sentence != "" {
		text += ": " + display.Plain(u.Sentence)
	}
	return text
}

// valueWriter writes each rollout whenever it has changed, for programs. It writes no Events,
// which spillway events writes in the same forms.
type valueWriter struct {
	out    io.Writer
	output string
	// one is true if one object is watched, with all that is beneath it.
	one bool
	// said is what was last written of each rollout.
	said map[describe.Ref]string
}

func (*valueWriter) misses(error, time.Time) {}

func (*valueWriter) hears(*history.Event) {}

func (v *valueWriter) sees(units []describe.Unit, _ time.Time) {
	if !v.one {
		units = describe.Rolled(units)
	}
	for _, u := range units {
		raw, err := json.Marshal(timeless(u))
		if err != nil || v.said[u.Ref] == string(raw) {
			continue
		}
		v.said[u.Ref] = string(raw)
		v.write(&u)
	}
}

// timeless is a unit without when it ends, which moves with the time alone.
func timeless(u describe.Unit) *describe.Unit {
	u.Ends = nil
	return &u
}

func (v *valueWriter) write(u *describe.Unit) {
	if v.output == command.OutputName {
		_, _ = fmt.Fprintln(v.out, u)
		return
	}
	_ = command.ShowNext(v.out, v.output, u, nil) // nothing can be added to a broken pipe
}
