package display

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
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

// TerminalWidth is the width of a terminal, zero if it is none.
func TerminalWidth(w io.Writer) int {
	width, _ := TerminalSize(w)
	return width
}

// Redraws is true of a terminal on which what was drawn can be drawn over: of none that has no
// more than ASCII.
func Redraws(w io.Writer) bool {
	for r, ok := w.(replacingWriter); ok; r, ok = r.Writer.(replacingWriter) {
		if r.isASCII {
			return false
		}
	}
	return TerminalWidth(w) > 0
}

// TerminalSize is the size of a terminal, zero if it is none.
func TerminalSize(w io.Writer) (width, height int) {
	f, ok := Raw(w).(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, 0
	}
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0, 0
	}
	return width, height
}

// IsASCII is true where the terminal or the locale has no other characters: of TERM=dumb,
// and of the locales C and POSIX.
func IsASCII(lookup func(string) (string, bool)) bool {
	terminal, _ := lookup("TERM")
	all, _ := lookup("LC_ALL")
	characters, _ := lookup("LC_CTYPE")
	language, _ := lookup("LANG")
	locale := cmp.Or(all, characters, language)
	return terminal == "dumb" || locale == "C" || locale == "POSIX"
}

// drawn are the characters that commands draw with, each with one that every terminal has.
var drawn = strings.NewReplacer("…", ".", "→", ">", "✓", "+", "✗", "x", "↻", "*", "├", "|", "└", "`", "─", "-", "│", "|", "█", "#", "░", ".")

// replacingWriter writes text with some of it replaced, write by write.
type replacingWriter struct {
	io.Writer

	replace func(string) string
	isASCII bool
}

// Replacing writes what people read with some of it replaced.
func Replacing(w io.Writer, replace func(string) string) io.Writer {
	return replacingWriter{Writer: w, replace: replace}
}

// ASCII writes what commands draw with characters that every terminal has. The names and
// texts of others stay as they are.
func ASCII(w io.Writer) io.Writer {
	return replacingWriter{Writer: w, replace: drawn.Replace, isASCII: true}
}

func (r replacingWriter) Write(p []byte) (int, error) {
	if _, err := io.WriteString(r.Writer, r.replace(string(p))); err != nil {
		return 0, fmt.Errorf("write: %w", err)
	}
	return len(p), nil
}

// Raw is the writer to which machines' output goes, in which nothing is replaced.
func Raw(w io.Writer) io.Writer {
	for {
		r, ok := w.(replacingWriter)
		if !ok {
			return w
		}
		w = r.Writer
	}
}

// WriteHanging writes a text beside what leads to it, and goes on below the text where
// it is longer than a line.
func WriteHanging(w io.Writer, lead, text string) {
	indent := utf8.RuneCountInString(lead)
	for i, line := range Wrap(text, lineWidth-indent) {
		if i > 0 {
			lead = strings.Repeat(" ", indent)
		}
		_, _ = fmt.Fprintln(w, lead+line)
	}
}

// Wrap breaks a sentence between words into lines of at most a width; a word that is
// longer than that has a line to itself. There is always one line.
func Wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	return append(lines, line)
}

// Cut shortens a line that would wrap.
func Cut(line string, width int) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	return string([]rune(line)[:max(width-1, 0)]) + "…"
}

// TrimLines removes the blanks at the ends of lines.
func TrimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n")
}

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
