package source

import (
	"fmt"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"

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

// promQL knows all that servers of its version may be told to allow.
var promQL = parser.NewParser(parser.Options{
	EnableExperimentalFunctions: true, ExperimentalDurationExpr: true, EnableExtendedRangeSelectors: true, EnableBinopFillModifiers: true,
})

// checkQuery finds what is no PromQL, or has no number as its result. A label is read as a name
// of its length, so that the columns in the message are those of the text.
func checkQuery(text string) error {
	if err := checkLabels(text); err != nil || text == "" {
		return err
	}
	expr, err := promQL.ParseExpr(label.ReplaceAllStringFunc(text, func(found string) string { return strings.Repeat("x", len(found)) }))
	if err != nil {
		return err //nolint:wrapcheck // it says where in the query
	}
	if t := expr.Type(); t != parser.ValueTypeVector && t != parser.ValueTypeScalar {
		return fmt.Errorf("the result of the query is a %s, and must be a number", parser.DocumentedType(t))
	}
	return nil
}
