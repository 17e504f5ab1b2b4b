package display

import (
	"io"
	"os"

	"golang.org/x/term"
)

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
