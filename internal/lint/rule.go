package lint

import (
	"slices"
	"strings"
)

// Rule is something to look for.
type Rule struct {
	// Code is how the rule is called; it never means anything else.
	Code  string
	Level Level
	// Title says in a few words what is found, Why what comes of it, and Fix what
	// to do about it.
	Title, Why, Action string

	check func(*Manifests, *reporter)
}

// rules are all of them, by code. Each group of them stands beside its functions.
func rules() []Rule {
	all := slices.Concat(configRules(), reloaderRules(), zoneRules(), scalingRules(), budgetRules(), planRules(), fleetRules(), manifestRules())
	slices.SortFunc(all, func(a, b Rule) int { return strings.Compare(a.Code, b.Code) })
	return all
}

// Rules are all rules, by code.
func Rules() []Rule { return rules() }

// ruleOf is the rule of a code, nil if there is none.
func ruleOf(code string) *Rule {
	all := rules()
	i := slices.IndexFunc(all, func(r Rule) bool { return r.Code == code })
	if i < 0 {
		return nil
	}
	return &all[i]
}
