package display

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

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
