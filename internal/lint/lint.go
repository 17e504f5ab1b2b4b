package lint

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/spillway-dev/spillway/internal/source"
)

// Options say how to look.
type Options struct {
	// Scheme has the kinds that are understood.
	Scheme *runtime.Scheme
	// Namespace is that of objects that name none.
	Namespace string
	// Now is from when on maintenance windows are looked for.
	Now time.Time
}

// Lint finds what is to fix in documents. Unread is the error with which they were
// read, nil if there was none; what it says is found as well.
func Lint(documents []source.Document, unread error, o Options) ([]Finding, error) {
	m, err := understand(documents, unread, o)
	if err != nil {
		return nil, err
	}
	r := &reporter{}
	for _, rule := range rules() {
		r.rule = &rule
		rule.check(m, r)
	}
	slices.SortStableFunc(r.findings, compareFindings)
	return slices.CompactFunc(r.findings, func(a, b Finding) bool { return a == b }), nil
}

// reporter takes what the functions of rules find.
type reporter struct {
	rule     *Rule
	findings []Finding
}

// findf reports something about a field of an object, unless that is meant as it is.
func (r *reporter) findf(o *Object, path []string, format string, args ...any) {
	if o.ignores(r.rule.Code) {
		return
	}
	r.findings = append(r.findings, Finding{
		File: o.File, Line: o.LineOf(path...), Object: o.String(), Code: r.rule.Code, Level: r.rule.Level,
		Message: fmt.Sprintf(format, args...), Action: r.rule.Action,
	})
}

// mendf replaces what the rule says in general about fixing the last finding.
func (r *reporter) mendf(format string, args ...any) {
	if n := len(r.findings); n > 0 && r.findings[n-1].Code == r.rule.Code {
		r.findings[n-1].Action = fmt.Sprintf(format, args...)
	}
}

// mistake reports what could not be read.
func (r *reporter) mistake(e *source.Error, object string) {
	r.findings = append(r.findings, Finding{
		File: e.File, Line: e.Line, Object: object, Code: r.rule.Code, Level: r.rule.Level, Message: e.Problem, Action: sentence(e.Action),
	})
}

// sentence is a clause as a sentence.
func sentence(clause string) string {
	if clause == "" {
		return ""
	}
	return strings.ToUpper(clause[:1]) + clause[1:] + "."
}
