package lint

import (
	"fmt"
	"io"
	"strings"
)

// width is how many columns text takes.
const width = 80

// WriteText writes findings for people, and for editors that know how compilers
// write theirs: "file:line: level: message [CODE]", then what to do about it.
func WriteText(w io.Writer, findings []Finding, objects int) {
	for i := range findings {
		f := &findings[i]
		message := fmt.Sprintf("%s: %s: %s [%s]", f.Place(), f.Level, f.Message, f.Code)
		if f.Object != "" {
			message = fmt.Sprintf("%s: %s: %s: %s [%s]", f.Place(), f.Level, f.Object, f.Message, f.Code)
		}
		_, _ = fmt.Fprintf(w, "%s\n%s\n", wrap(message, "", "  "), wrap(f.Mend, "    ", "    "))
	}
	summary := Summary(findings)
	if summary == "" {
		summary = "nothing to mend"
	}
	_, _ = fmt.Fprintf(w, "%s in %s\n", summary, plural(objects, "object"))
}

// wrap breaks a text into lines, between words.
func wrap(text, first, rest string) string {
	var b strings.Builder
	line := first
	for word := range strings.FieldsSeq(text) {
		switch {
		case strings.TrimSpace(line) == "":
			line += word
		case len(line)+1+len(word) <= width:
			line += " " + word
		default:
			b.WriteString(line + "\n")
			line = rest + word
		}
	}
	return b.String() + line
}
