package decision

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/expression"
)

// filterVariables are the names of the variables of a filter. All are strings. CEL reserves the
// word namespace, but not behind a dot.
var filterVariables = []string{"ring", "phase", "reason", "severity", "object.kind", "object.name", "object.namespace"}

// Filter says which messages are sent. Nil lets all through.
type Filter struct{ expression *expression.Expression }

// CompileFilter compiles a filter.
func CompileFilter(text string) (*Filter, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	variables := make([]cel.EnvOption, len(filterVariables))
	for i, name := range filterVariables {
		variables[i] = cel.Variable(name, cel.StringType)
	}
	compiled, err := expression.Compile(text, cel.BoolType, variables...)
	if err != nil {
		return nil, fmt.Errorf("spec.filter: %w; its variables are the strings %s", err, strings.Join(filterVariables, ", "))
	}
	return &Filter{compiled}, nil
}

// Lets is true of a message to send. One that the filter cannot judge is sent: it is better to
// say too much than to keep quiet about what went wrong.
func (f *Filter) Lets(namespace string, m *v1alpha1.NotifierMessage) bool {
	if f == nil {
		return true
	}
	is, err := f.expression.Holds(map[string]any{
		"ring": m.Ring, "phase": string(m.Phase), "reason": m.Reason, "severity": m.Severity,
		"object.kind": m.Kind, "object.name": m.Name, "object.namespace": namespace,
	})
	return is || err != nil
}
