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

// Write implements [io.Writer].
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
