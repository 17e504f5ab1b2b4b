// Package rules has the rules of spillway lint, in one table a ring. Each is one small
// function over all manifests.
//
// What a setting means is asked of the rings: a rule that would parse a setting again
// could disagree with the code that reads it in the cluster.
package rules

import (
	"slices"
	"strings"

	"github.com/spillway-dev/spillway/internal/lint/manifest"
	"github.com/spillway-dev/spillway/internal/lint/report"
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
