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
		fmt.Fprintf(&b, "\n## %s\n\n| Code | Level | Mistake |\n|---|---|---|\n", chapter.title)
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

// Page is the address of what is written of the rule.
func (r *Rule) Page() string { return Guide + "#" + anchor(r.Code) }

const guideHead = `# Lint

<!-- Generated from internal/lint by make generate. -->

` + "`spillway lint DIR`" + ` checks manifests, and needs no cluster.
In a directory it skips what is not a manifest: files without ` + "`apiVersion`" + ` and ` + "`kind`" + `, Helm charts and Kustomize overlays, which must be rendered first, and what ` + "`.gitignore`" + `, a ` + "`.spillwayignore`" + ` of the same form, or ` + "`--exclude`" + ` names.
It says how much that was.
A file that is named is read in any case.

Settings are parsed by the code that reads them in the cluster.
Where a ring would stall, or ignore a setting, there is a finding, with file, line and action.

<!-- exits 1: spillway lint deploy/ -->
` + "```console" + `
$ spillway lint deploy/
deploy/store.yaml:17: error: StatefulSet store-zone-b: spec.updateStrategy.type:
  "OnDelete" differs from "RollingUpdate" of StatefulSet store-zone-a; use the
  same for all of a group [SPW202]
    Give all StatefulSets of the group the same spec.updateStrategy.type:
    RollingUpdate, which also keeps evicted Pods at their revision, or OnDelete.
14 objects checked, 1 error
$ kubectl kustomize overlays/prod | spillway lint - -n shop   # overlays and charts are rendered first
$ spillway lint deploy/ -o sarif > lint.sarif                  # for code scanning; -o json for everything else
` + "```" + `

The exit code is 1 if there is an error; ` + "`--fail-on=warning`, `note` or `never`" + ` sets another level.
A finding that is intended can be ignored for an object, by its code:

<!-- part of deployment/checkout -->
` + "```yaml" + `
metadata:
  annotations:
    spillway.dev/lint-ignore: SPW203, SPW105
` + "```" + `

For code scanning, run it at the root of the repository: paths in SARIF are relative to the working directory.

An object that is not among the manifests may exist in the cluster; that alone is never an error.
A note is about what may be right, and cannot be decided from the manifests.
Check together what runs together: then there are fewer notes.
The schemas of Spillway's kinds are checked.
CEL rules are left to the API server, and so are other kinds, as far as they do not concern Spillway.
`
