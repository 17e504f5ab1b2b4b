package prove

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/cel-go/cel"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/expression"
)

// UserRule is a rule that a user has written.
type UserRule struct {
	// Name identifies it.
	Name string `json:"name"`
	// Holds is an expression that is true in every state. It has the list units, the number at of
	// seconds since the change, and the number failures of what has gone wrong until then.
	Holds string `json:"holds"`
	// Message says what it means that the expression is false.
	Message string `json:"message,omitempty"`

	compiled *expression.Expression
}

// ParseRules reads rules from YAML: a list under the key rules.
func ParseRules(text []byte) ([]*UserRule, error) {
	var file struct {
		Rules []*UserRule `json:"rules"`
	}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return nil, fmt.Errorf("read the rules: %w", err)
	}
	if len(file.Rules) == 0 {
		return nil, errors.New(`rules: none found; write a list such as rules: [{name: ready, holds: "units.exists(u, u.ready)"}]`)
	}
	known := map[string]bool{}
	for i, r := range file.Rules {
		field := fmt.Sprintf("rules[%d]", i)
		switch _, builtIn := Rules()[r.Name]; {
		case r.Name == "":
			return nil, fmt.Errorf("%s.name: required", field)
		case known[r.Name] || builtIn:
			return nil, fmt.Errorf("%s.name: %q is the name of another rule", field, r.Name)
		}
		known[r.Name] = true
		var err error
		r.compiled, err = expression.Compile(r.Holds, cel.BoolType,
			cel.Variable("units", cel.ListType(cel.DynType)), cel.Variable("at", cel.IntType), cel.Variable("failures", cel.IntType))
		if err != nil {
			return nil, fmt.Errorf("%s.holds: %w", field, err)
		}
		r.Message = cmp.Or(r.Message, "it is false that "+r.Holds)
	}
	return file.Rules, nil
}

// holds evaluates the rule in a state.
func (r *UserRule) holds(ctx context.Context, e *explorer, b *branch) (bool, error) {
	units := e.units(b.Play)
	all := make([]any, 0, len(units))
	for i := range units {
		u := &units[i]
		all = append(all, map[string]any{
			"kind": u.Kind, "namespace": u.Namespace, "name": u.Name, "rollout": e.rollouts[u.id()].Name, "zone": u.Part, "ready": u.Ready,
			"updated": e.goals.has(u), "changes": e.goals.moves(u), "failed": b.struck == u.struck(), "labels": u.Labels,
		})
	}
	holds, err := r.compiled.IsTrue(ctx, map[string]any{
		"units": all, "at": int64(time.Duration(b.At()) / time.Second), "failures": int64(len(b.events)),
	})
	if err != nil {
		return false, fmt.Errorf("rule %s: %w", r.Name, err)
	}
	return holds, nil
}
