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
	out   io.Writer
	width int
	// drawn is how many lines of the table stand on the terminal.
	drawn int
	last  map[string]string
}

func newView(out io.Writer, width int) *view {
	return &view{out: out, width: width, last: map[string]string{}}
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
	if v.width > 0 {
		v.redraw(explanations)
		return
	}
	for _, e := range explanations {
		if key := e.Kind + "/" + e.Name; v.last[key] != e.Sentence {
			v.last[key] = e.Sentence
			v.line(v.row(e))
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
		b.WriteString("\x1b[2K" + v.row(e) + "\n")
	}
	v.drawn = len(explanations)
	_, _ = io.WriteString(v.out, b.String())
}

// widest is how much of a line is written where there is no terminal.
const widest = 160

// row is one workload in one line, so that the table keeps its height.
func (v *view) row(e config.Explanation) string {
	text := marks[e.State] + " " + e.Sentence
	if e.Progress != "" {
		text += " (" + e.Progress + ")"
	}
	width := v.width
	if width == 0 {
		width = widest
	}
	if r := []rune(text); len(r) > width {
		text = string(r[:width-1]) + "…"
	}
	return text
}
