package task

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/expression"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/plans/object"
)

// Rules are those of a package for the health of custom resources, for one pass: what they cost
// together has a limit.
type Rules struct {
	all      []v1beta1.HealthRule
	compiled map[string]compiled
	budget   *expression.Budget
}

// compiled is a condition, or what is wrong with it.
type compiled struct {
	condition *expression.Expression
	wrong     error
}

// NewRules returns the rules of a package.
func NewRules(all []v1beta1.HealthRule) *Rules {
	return &Rules{all: all, compiled: map[string]compiled{}, budget: expression.NewBudget()}
}

// RuleProblem is what is wrong with a condition of a rule, nil if nothing is.
func RuleProblem(condition string) error {
	_, err := compile(condition)
	return err
}

func compile(condition string) (*expression.Expression, error) {
	return expression.Compile(condition, cel.BoolType, cel.Variable("object", cel.DynType))
}

// of is the rule for a kind, nil if there is none.
func (r *Rules) of(kind schema.GroupKind) *v1beta1.HealthRule {
	if r == nil {
		return nil
	}
	for i := range r.all {
		if r.all[i].Group == kind.Group && r.all[i].Kind == kind.Kind {
			return &r.all[i]
		}
	}
	return nil
}

// holds reports whether a condition is true of an object. One that cannot be evaluated, as where
// the object has no status yet, is not.
func (r *Rules) holds(condition string, live *unstructured.Unstructured) (is bool, why string, invalid error) {
	c, ok := r.compiled[condition]
	if !ok {
		c.condition, c.wrong = compile(condition)
		r.compiled[condition] = c
	}
	if c.wrong != nil {
		return false, "", c.wrong
	}
	is, err := c.condition.HoldsWithin(r.budget, map[string]any{"object": live.Object})
	if err != nil {
		return false, err.Error(), nil //nolint:nilerr // it may hold later
	}
	return is, "it is false", nil
}

// judgeRule says what a rule says of an object that its controller has observed.
func (s *Snapshot) judgeRule(ref object.Ref, live *unstructured.Unstructured, rule *v1beta1.HealthRule) verdict {
	observed, has, _ := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
	if has && observed < live.GetGeneration() {
		return verdict{lacks: fmt.Sprintf("waiting for %s to be observed", ref)}
	}
	if rule.Failed != "" {
		failed, _, invalid := s.Rules.holds(rule.Failed, live)
		switch {
		case invalid != nil:
			return verdict{fatal: fmt.Sprintf("the failed rule of kind %s: %s", ref.Kind, invalid)}
		case failed:
			return verdict{fatal: fmt.Sprintf("%s failed: %s is true", ref, message.Quote(rule.Failed))}
		}
	}
	ready, why, invalid := s.Rules.holds(rule.Ready, live)
	switch {
	case invalid != nil:
		return verdict{fatal: fmt.Sprintf("the ready rule of kind %s: %s", ref.Kind, invalid)}
	case !ready:
		return verdict{lacks: fmt.Sprintf("waiting for %s: %s: %s", ref, message.Quote(rule.Ready), message.Cut(why, message.ValueLength))}
	default:
		return verdict{}
	}
}
