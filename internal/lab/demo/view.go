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

func (v *view) heading(text string) {
	v.drawn = 0
	v.line("\n── " + text)
}

// marks are what a person sees first.
var marks = map[config.State]string{
	config.StateUpToDate: "✓", config.StateRolling: "↻", config.StateNext: "→", config.StateWaiting: "…", config.StateNotTracked: " ", config.StateNotWatched: " ",
	config.StateFailed: "✗", config.StateLate: "↻",
}

// row is one thing in one line.
type row struct{ name, text string }

// show writes a table, or of it the rows that have changed.
func (v *view) show(rows []row) {
	if v.width > 0 {
		v.redraw(rows)
		return
	}
	for _, r := range rows {
		if v.last[r.name] != r.text {
			v.last[r.name] = r.text
			v.line(v.fit(r.text))
		}
	}
}

func (v *view) line(text string) { _, _ = fmt.Fprintln(v.out, text) }

// redraw moves up over the table that stands there, and writes it again.
func (v *view) redraw(rows []row) {
	var b strings.Builder
	if v.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", v.drawn)
	}
	for _, r := range rows {
		b.WriteString("\x1b[2K" + v.fit(r.text) + "\n")
	}
	v.drawn = len(rows)
	_, _ = io.WriteString(v.out, b.String())
}

// widest is how much of a line is written where there is no terminal.
const widest = 240

// workloads are rows for workloads.
func workloads(explanations []config.Explanation) []row {
	rows := make([]row, 0, len(explanations))
	for _, e := range explanations {
		text := marks[e.State] + " " + e.Sentence
		if e.Progress != "" {
			text += " (" + e.Progress + ")"
		}
		rows = append(rows, row{e.Kind + "/" + e.Name, text})
	}
	return rows
}

// fit makes a text one line, so that the table keeps its height.
func (v *view) fit(text string) string {
	width := v.width
	if width == 0 {
		width = widest
	}
	if r := []rune(text); len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return text
}
