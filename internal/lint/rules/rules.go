// Package rules has the rules of spillway lint, in one table a ring. Each is one small
// function over all manifests.
//
// What a setting means is asked of the rings: a rule that would parse a setting again
// could disagree with the code that reads it in the cluster.
package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spillway-dev/spillway/internal/lint/manifest"
	"github.com/spillway-dev/spillway/internal/lint/report"
	"github.com/spillway-dev/spillway/internal/source"
)

// rule is a rule with its function.
type rule struct {
	report.Rule

	check func(*manifest.Manifests, *reporter)
}

// All returns all rules, sorted by code.
func All() []report.Rule {
	var all []report.Rule
	for _, r := range table() {
		all = append(all, r.Rule)
	}
	return all
}

// isRule is true of the code of a rule.
func isRule(code string) bool {
	return slices.ContainsFunc(table(), func(r rule) bool { return r.Code == code })
}

// Check runs all rules.
func Check(m *manifest.Manifests) []report.Finding {
	r := &reporter{}
	for _, rule := range table() {
		r.rule = &rule.Rule
		rule.check(m, r)
	}
	return r.findings
}

// table has the rules, sorted by code. Each group of them is declared beside its functions.
func table() []rule {
	all := slices.Concat(configRules(), reloaderRules(), policyRules(), gateRules(), zoneRules(), groupRules(), scalingRules(), budgetRules(), planRules(), healthRules(), templateRules(), fleetRules(), limitRules(), manifestRules())
	slices.SortFunc(all, func(a, b rule) int { return strings.Compare(a.Code, b.Code) })
	return all
}

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
