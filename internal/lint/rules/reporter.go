package rules

import (
	"fmt"
	"strings"

	"github.com/spillway-dev/spillway/internal/lint/manifest"
	"github.com/spillway-dev/spillway/internal/lint/report"
	"github.com/spillway-dev/spillway/internal/source"
)

// reporter takes what the functions of rules find.
type reporter struct {
	rule     *report.Rule
	findings []report.Finding
}

// findf reports something about a field of an object, unless that is meant as it is.
func (r *reporter) findf(o *manifest.Object, path []string, format string, args ...any) {
	if o.Ignores(r.rule.Code) {
		return
	}
	file, line := o.Where(path...)
	r.findings = append(r.findings, report.Finding{
		File: file, Line: line, Object: o.String(), Code: r.rule.Code, Level: r.rule.Level,
		Message: fmt.Sprintf(format, args...), Action: r.rule.Action, Page: r.rule.Page(),
	})
}

// actionf replaces what the rule says in general about fixing the last finding.
func (r *reporter) actionf(format string, args ...any) {
	if n := len(r.findings); n > 0 && r.findings[n-1].Code == r.rule.Code {
		r.findings[n-1].Action = fmt.Sprintf(format, args...)
	}
}

// mistake reports what could not be read.
func (r *reporter) mistake(e *source.Error, object string) {
	r.findings = append(r.findings, report.Finding{
		File: e.File, Line: e.Line, Object: object, Code: r.rule.Code, Level: r.rule.Level, Message: e.Problem, Action: sentence(e.Action), Page: r.rule.Page(),
	})
}

// sentence is a clause as a sentence.
func sentence(clause string) string {
	if clause == "" {
		return ""
	}
	return strings.ToUpper(clause[:1]) + clause[1:] + "."
}
