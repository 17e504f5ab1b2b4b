package report

import (
	"fmt"
	"strings"
)

// GuidePage is docs/lint.md: every rule, what comes of it and how to fix it.
func GuidePage(rules []Rule) string {
	var b strings.Builder
	b.WriteString(guideHead)
	for _, chapter := range chapters() {
		fmt.Fprintf(&b, "\n## %s\n\n| | | |\n|---|---|---|\n", chapter.title)
		for _, rule := range rules {
			if strings.HasPrefix(rule.Code, chapter.prefix) {
				fmt.Fprintf(&b, "| [%s](#%s) | %s | %s |\n", rule.Code, anchor(rule.Code), rule.Level, rule.Title)
			}
		}
		for _, rule := range rules {
			if strings.HasPrefix(rule.Code, chapter.prefix) {
				fmt.Fprintf(&b, "\n### %s\n\n**%s** (%s). %s\n\n%s\n", rule.Code, rule.Title, rule.Level, rule.Why, rule.Action)
			}
		}
	}
	return b.String()
}

type chapter struct{ prefix, title string }

func chapters() []chapter {
	return []chapter{
		{"SPW1", "Config"}, {"SPW2", "Zones"}, {"SPW3", "Scaling and budgets"}, {"SPW4", "Plans"}, {"SPW5", "Fleet"}, {"SPW9", "Manifests"},
	}
}

// anchor is how the page of rules refers to a rule.
func anchor(code string) string { return strings.ToLower(code) }

const guideHead = `# Lint

<!-- Generated from internal/lint by make generate. -->

` + "`spillway lint -f DIR`" + ` reads manifests, and needs no cluster. What an annotation or a spec means is decided by the code that will read it in the
cluster: where a ring would stall, or ignore something, there is a finding, with file, line and fix.

` + "```console" + `
$ spillway lint -f deploy/
deploy/store.yaml:17: error: StatefulSet store-zone-b: spec.updateStrategy.type:
  "OnDelete" differs from "RollingUpdate" of StatefulSet store-zone-a; use the
  same for all of a group [SPW202]
    Give all StatefulSets of the group the same spec.updateStrategy.type:
    RollingUpdate, which also keeps evicted Pods at their revision, or OnDelete.
1 error in 14 objects
$ kubectl kustomize overlays/prod | spillway lint -f - -n shop   # overlays and charts are rendered first
$ spillway lint -f deploy/ -o sarif > lint.sarif                  # for code scanning; -o json for everything else
` + "```" + `

The exit code is 1 if there is an error; ` + "`--fail-on=warning`, `note` or `never`" + ` moves the bar. A finding that is meant as it is can be
ignored for an object, by its code:

` + "```yaml" + `
metadata:
  annotations:
    spillway.dev/lint-ignore: SPW203, SPW105
` + "```" + `

For code scanning, run it at the root of the repository: places in SARIF are relative to the working directory.

What is not among the manifests may well be in the cluster; that alone is never an error. A note is what may be right and cannot be seen from
here. The more of what runs together is looked at together, the fewer there are. The schemas of Spillway's kinds are checked, the rules in CEL
that some of them have besides are left to the API server, and so is everything about other kinds that concerns nobody here.
`
