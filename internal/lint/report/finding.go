// Package report has findings and rules as they are shown: as text, as JSON, as SARIF and
// as the page that documents the rules.
package report

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Level is how bad a finding is.
type Level string

// The levels.
const (
	// Error: it will not work, or not do what it says.
	Error Level = "error"
	// Warning: it works, and hardly as it is meant.
	Warning Level = "warning"
	// Note: it may be right; that cannot be seen from here.
	Note Level = "note"
)

// AtLeast is true if a level is as bad as another, or worse.
func (l Level) AtLeast(other Level) bool {
	return slices.Index(Levels(), l) <= slices.Index(Levels(), other)
}

// Finding is something to fix, and where it stands.
type Finding struct {
	File string `json:"file"`
	// Line is 0 if it is about a file as a whole.
	Line int `json:"line,omitempty"`
	// Object is what it is about, "StatefulSet ingester-zone-a in namespace shop";
	// empty if the file could not be read.
	Object string `json:"object,omitempty"`
	Code   string `json:"code"`
	Level  Level  `json:"level"`
	// Message says what is wrong, Fix what to do about it.
	Message string `json:"message"`
	Action  string `json:"action"`
	// Page is the address of what is written of the rule.
	Page string `json:"page"`
}

// Place is where the finding stands, "shop/web.yaml:12".
func (f *Finding) Place() string {
	if f.Line == 0 {
		return f.File
	}
	return fmt.Sprintf("%s:%d", f.File, f.Line)
}

// CompareFindings orders findings by place, and in one place by code and message.
func CompareFindings(a, b Finding) int {
	return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), strings.Compare(a.Code, b.Code), strings.Compare(a.Message, b.Message))
}

// Summary is the count as a clause: "2 errors, 1 note"; empty if there is none.
func Summary(findings []Finding) string {
	var parts []string
	count := Count(findings)
	for _, level := range Levels() {
		switch n := count[level]; n {
		case 0:
		case 1:
			parts = append(parts, fmt.Sprintf("1 %s", level))
		default:
			parts = append(parts, fmt.Sprintf("%d %ss", n, level))
		}
	}
	return strings.Join(parts, ", ")
}

// Count is how many findings of each level there are.
func Count(findings []Finding) map[Level]int {
	count := map[Level]int{}
	for i := range findings {
		count[findings[i].Level]++
	}
	return count
}

// ParseLevel reads a level.
func ParseLevel(text string) (Level, error) {
	if i := slices.Index(Levels(), Level(text)); i >= 0 {
		return Levels()[i], nil
	}
	return "", errors.New("must be error, warning or note")
}

// Levels are all of them, the worst first.
func Levels() []Level { return []Level{Error, Warning, Note} }

// Rule is something to look for.
type Rule struct {
	// Code is how the rule is called; it never means anything else.
	Code  string
	Level Level
	// Title says in a few words what is found, Why what comes of it, and Fix what
	// to do about it.
	Title, Why, Action string
	// Guide is the address of what is written of it; the page of all rules of lint if it is empty.
	Guide string
}

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
