package display

import (
	"cmp"
	"fmt"
	"io"
	"strings"
)

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

// asciiWriter writes what is drawn in ASCII, and the rest as it is.
type asciiWriter struct{ io.Writer }

// ASCII writes what commands draw with characters that every terminal has. The names and
// texts of others stay as they are.
func ASCII(w io.Writer) io.Writer { return asciiWriter{w} }

// Write implements [io.Writer].
func (a asciiWriter) Write(p []byte) (int, error) {
	if _, err := io.WriteString(a.Writer, drawn.Replace(string(p))); err != nil {
		return 0, fmt.Errorf("write: %w", err)
	}
	return len(p), nil
}

// Raw is the writer to which machines' output goes, without what [ASCII] does.
func Raw(w io.Writer) io.Writer {
	if a, ok := w.(asciiWriter); ok {
		return a.Writer
	}
	return w
}
