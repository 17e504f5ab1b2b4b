package cli

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// style is how text looks where it is written to: in colour and folded on a terminal,
// plain and in whole lines elsewhere, for whatever reads them.
type style struct {
	colour bool
	// width is how much fits in a line, 0 for no limit.
	width int
}

// styleOf is the style for a writer. NO_COLOR switches colours off, whatever its value
// (https://no-color.org), and so does a terminal that has none.
func styleOf(w io.Writer, lookup func(string) (string, bool)) style {
	width, _ := terminalSize(w)
	return styleFor(width, lookup)
}

// styleFor is the style for a terminal so wide, or for none if that is 0.
func styleFor(width int, lookup func(string) (string, bool)) style {
	terminal, _ := lookup("TERM")
	off, _ := lookup("NO_COLOR")
	return style{colour: width > 0 && off == "" && terminal != "dumb", width: width}
}

// The colours, by the numbers that every terminal knows.
const (
	bold   = "1"
	faint  = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// paint gives text a colour.
func (s style) paint(colour, text string) string {
	if !s.colour || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// word gives a phase, an outcome or a state the colour of what it means.
func (s style) word(word string) string { return s.paint(colourOf(word), word) }

// colourOf is green for what is done, cyan for what moves, yellow for what waits, and
// red for what somebody has to fix.
func colourOf(word string) string {
	switch strings.ToLower(word) {
	case "complete", "succeeded", "approved":
		return green
	case "running", "progressing", "moving", "in_progress", "updating":
		return cyan
	case "failed", "stalled", "fatal_error", "error", "refused", "rolledback", "rollingback", "unreachable", "abandoned":
		return red
	case "", "superseded", "pending", "never_run", "unseen":
		return faint
	default:
		return yellow
	}
}

// fold breaks text between words where it would not fit, and begins what follows with
// so many blanks; the first line has as much before it already.
func (s style) fold(text string, indent int) string {
	room := s.width - indent
	if s.width == 0 || room < minimalRoom || utf8.RuneCountInString(text) <= room {
		return text
	}
	return strings.Join(wrap(text, room), "\n"+strings.Repeat(" ", indent))
}

// minimalRoom is how narrow a column may be before folding makes it worse.
const minimalRoom = 20

// plain makes one line of text that others have written, without what a terminal would
// take for commands.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r):
			return -1
		default:
			return r
		}
	}, text)
}
