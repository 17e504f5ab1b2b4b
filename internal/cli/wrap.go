package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// wrap breaks a sentence between words into lines of at most a width; a word that is
// longer than that has a line to itself. There is always one line.
func wrap(text string, width int) []string {
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

// writeHanging writes a text beside what leads to it, and goes on below the text where
// it is longer than a line.
func writeHanging(w io.Writer, lead, text string) {
	indent := utf8.RuneCountInString(lead)
	for i, line := range wrap(text, lineWidth-indent) {
		if i > 0 {
			lead = strings.Repeat(" ", indent)
		}
		_, _ = fmt.Fprintln(w, lead+line)
	}
}
