package demo

import (
	"fmt"
	"io"
	"strings"

	"github.com/spillway-dev/spillway/internal/config"
)

// view writes for people: a table that is written over on a terminal, and a
// line for each change elsewhere.
type view struct {
	out  io.Writer
	live bool
	// drawn is how many lines of the table stand on the terminal.
	drawn int
	last  map[string]string
}

func newView(out io.Writer, live bool) *view {
	return &view{out: out, live: live, last: map[string]string{}}
}

func (v *view) line(text string) { _, _ = fmt.Fprintln(v.out, text) }

func (v *view) heading(text string) {
	v.drawn = 0
	v.line("\n── " + text)
}

// marks are what a person sees first.
var marks = map[config.State]string{
	config.StateUpToDate: "✓", config.StateRolling: "↻", config.StateNext: "→", config.StateWaiting: "…", config.StateNotTracked: " ",
}

func (v *view) show(explanations []config.Explanation) {
	if v.live {
		v.redraw(explanations)
		return
	}
	for _, e := range explanations {
		if key := e.Kind + "/" + e.Name; v.last[key] != e.Sentence {
			v.last[key] = e.Sentence
			v.line(row(e))
		}
	}
}

// redraw moves up over the table that stands there, and writes it anew.
func (v *view) redraw(explanations []config.Explanation) {
	var b strings.Builder
	if v.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", v.drawn)
	}
	for _, e := range explanations {
		b.WriteString("\x1b[2K" + row(e) + "\n")
	}
	v.drawn = len(explanations)
	_, _ = io.WriteString(v.out, b.String())
}

const widest = 110

// row is one workload in one line, so that the table keeps its height.
func row(e config.Explanation) string {
	text := marks[e.State] + " " + e.Sentence
	if e.Progress != "" {
		text += " (" + e.Progress + ")"
	}
	if r := []rune(text); len(r) > widest {
		text = string(r[:widest-1]) + "…"
	}
	return text
}
