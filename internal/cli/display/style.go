package display

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Style is how text looks where it is written to: in color and folded on a terminal,
// plain and in whole lines elsewhere, for whatever reads them.
type Style struct {
	Color bool
	// Width is how much fits in a line, 0 for no limit.
	Width int
}

// StyleOf is the style for a writer. NO_COLOR switches colors off, whatever its value
// (https://no-color.org), and so does a terminal that has no more than ASCII.
func StyleOf(w io.Writer, lookup func(string) (string, bool)) Style {
	width, _ := TerminalSize(w)
	return styleFor(width, lookup)
}

// styleFor is the style for a terminal so wide, or for none if that is 0.
func styleFor(width int, lookup func(string) (string, bool)) Style {
	off, _ := lookup("NO_COLOR")
	return Style{Color: width > 0 && off == "" && !IsASCII(lookup), Width: width}
}

// The colors, by the numbers that every terminal knows.
const (
	Bold   = "1"
	Faint  = "2"
	Red    = "31"
	Green  = "32"
	Yellow = "33"
	cyan   = "36"
)

// Word gives a phase, an outcome or a state the color of what it means.
func (s Style) Word(word string) string { return s.Paint(ColorOf(word), word) }

// Paint gives text a color.
func (s Style) Paint(color, text string) string {
	if !s.Color || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// ColorOf is green for what is done, cyan for what moves, yellow for what waits, and
// red for what a user must fix.
func ColorOf(word string) string {
	switch strings.ToLower(word) {
	case "complete", "succeeded", "approved":
		return Green
	case "running", "progressing", "moving", "in_progress", "updating":
		return cyan
	case "failed", "stalled", "fatal_error", "error", "refused", "rolledback", "rollingback", "unreachable", "abandoned":
		return Red
	case "", "superseded", "pending", "never_run", "unseen", "reading":
		return Faint
	default:
		return Yellow
	}
}

// Fold breaks text between words where it would not fit, and begins what follows with
// so many blanks; the first line has as much before it already.
func (s Style) Fold(text string, indent int) string {
	room := s.Width - indent
	if s.Width == 0 || room < minimalRoom || utf8.RuneCountInString(text) <= room {
		return text
	}
	return strings.Join(Wrap(text, room), "\n"+strings.Repeat(" ", indent))
}

// minimalRoom is how narrow a column may be before folding makes it worse.
const minimalRoom = 20

// Plain makes one line of text that others have written, without what a terminal would
// take for commands.
func Plain(text string) string {
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
