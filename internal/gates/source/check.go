package source

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
)

// Problem is a mistake in a GateTemplate that every measurement would come upon.
type Problem struct {
	// Field is where it is, beneath spec.
	Field string
	// Text is what is wrong.
	Text string
}

// Check finds what is wrong with a GateTemplate without asking its source: labels that there
// are not, expressions that do not compile, queries that cannot be read. What the schema of the
// kind refuses is not repeated.
func Check(s *v1alpha1.GateTemplateSpec) []Problem {
	var problems []Problem
	note := func(field string, err error) {
		if err != nil {
			problems = append(problems, Problem{field, err.Error()})
		}
	}
	if g := s.HTTP; g != nil {
		note("http.url", checkLabels(g.URL))
		note("http.body", checkLabels(g.Body))
		_, _, err := httpExpressions(g)
		note("http", err)
	}
	if g := s.Prometheus; g != nil {
		note("prometheus.address", checkLabels(g.Address))
		note("prometheus.query", checkQuery(g.Query))
		note("prometheus.baseline", checkQuery(g.Baseline))
		_, err := prometheusCondition(g)
		note("prometheus", err)
	}
	return problems
}

func checkLabels(text string) error {
	if unknown := Unknown(text); len(unknown) > 0 {
		return fmt.Errorf("%s is no label; the labels are %s", unknown[0], strings.Join(LabelNames(), ", "))
	}
	return nil
}

// quoted are the strings of a query, in which brackets mean nothing.
var quoted = regexp.MustCompile("\"(\\\\.|[^\"\\\\])*\"|'(\\\\.|[^'\\\\])*'|`[^`]*`")

// checkQuery finds what no server would take for PromQL: brackets and quotes that do not
// match. The rest only the server knows, by its version. A query with comments, in which quotes
// mean nothing, is left to the server.
func checkQuery(text string) error {
	if err := checkLabels(text); err != nil || strings.Contains(text, "#") {
		return err
	}
	rest := quoted.ReplaceAllString(label.ReplaceAllString(text, "x"), "")
	if i := strings.IndexAny(rest, "\"'`"); i >= 0 {
		return fmt.Errorf("a quote is never closed: %s", rest[i:])
	}
	var open []rune
	closes := map[rune]rune{')': '(', ']': '[', '}': '{'}
	for _, r := range rest {
		switch {
		case strings.ContainsRune("([{", r):
			open = append(open, r)
		case closes[r] != 0:
			if len(open) == 0 || open[len(open)-1] != closes[r] {
				return fmt.Errorf("%q closes nothing", r)
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("%q is never closed", open[len(open)-1])
	}
	return nil
}
