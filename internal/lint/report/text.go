package report

import (
	"fmt"
	"io"
)

// WriteText writes findings for people, and for editors that know how compilers
// write theirs: "file:line: level: message [CODE]", then what to do about it. fold
// breaks a text that does not fit beside so many columns before it.
func WriteText(w io.Writer, findings []Finding, objects int, fold func(text string, indent int) string) {
	for i := range findings {
		f := &findings[i]
		message := fmt.Sprintf("%s: %s: %s [%s]", f.Place(), f.Level, f.Message, f.Code)
		if f.Object != "" {
			message = fmt.Sprintf("%s: %s: %s: %s [%s]", f.Place(), f.Level, f.Object, f.Message, f.Code)
		}
		_, _ = fmt.Fprintf(w, "%s\n    %s\n", fold(message, len("  ")), fold(f.Action, len("    ")))
	}
	summary := Summary(findings)
	if summary == "" {
		summary = "no problems found"
	}
	_, _ = fmt.Fprintf(w, "%s checked, %s\n", Plural(objects, "object"), summary)
}

// Plural is a number of things: "1 stage", "2 stages".
func Plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
