package expression

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/spillway-dev/spillway/internal/message"
)

// Expression is a CEL expression over some variables.
type Expression struct{ program cel.Program }

// Compile compiles an expression of a type, any if it is nil.
func Compile(text string, result *cel.Type, variables ...cel.EnvOption) (*Expression, error) {
	base, err := language()
	if err != nil {
		return nil, err
	}
	env, err := base.Extend(variables...)
	if err != nil {
		return nil, fmt.Errorf("set up expressions: %w", err)
	}
	compiled, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, fmt.Errorf("%s: %s", message.Quote(text), problem(issues))
	}
	if is := compiled.OutputType(); result != nil && !is.IsExactType(result) && !is.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("%s has the type %s, and must have the type %s", message.Quote(text), is, result)
	}
	if err := checkLiterals(compiled.NativeRep().Expr()); err != nil {
		return nil, fmt.Errorf("%s: %w", message.Quote(text), err)
	}
	program, err := env.Program(compiled, cel.CostTracking(costs{}), cel.CostLimit(maxCost), cel.InterruptCheckFrequency(interruptEvery))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", message.Quote(text), err)
	}
	return &Expression{program}, nil
}

// problem is the first mistake of an expression, in which there are no containers.
func problem(issues *cel.Issues) string {
	return strings.TrimSuffix(issues.Errors()[0].Message, " (in container '')")
}

var errNoValue = errors.New("it is neither a number, a string, nor true or false")

// IsTrue evaluates a condition.
func (e *Expression) IsTrue(ctx context.Context, variables map[string]any) (bool, error) {
	value, _, err := e.program.ContextEval(ctx, variables)
	return truth(value, err)
}

// Holds is [Expression.IsTrue] for a condition over a few short values, which needs no time.
func (e *Expression) Holds(variables map[string]any) (bool, error) {
	value, _, err := e.program.Eval(variables)
	return truth(value, err)
}

// Budget is what many evaluations may still cost together, so that as many objects as a user
// makes do not hold up the manager.
type Budget struct{ left uint64 }

// NewBudget pays for two evaluations of the most costly kind, or for thousands of the usual ones.
func NewBudget() *Budget { return &Budget{2 * maxCost} } //nolint:mnd // as it says

// HoldsWithin is [Expression.Holds] for a document, whose cost a budget pays.
func (e *Expression) HoldsWithin(b *Budget, variables map[string]any) (bool, error) {
	if b.left == 0 {
		return false, errTooCostly
	}
	value, details, err := e.program.Eval(variables)
	cost := uint64(maxCost)
	if details != nil && details.ActualCost() != nil {
		cost = *details.ActualCost()
	}
	b.left -= min(b.left, max(1, cost))
	return truth(value, err)
}

func truth(value ref.Val, err error) (bool, error) {
	if err != nil {
		return false, fmt.Errorf("condition: %w", cause(err))
	}
	is, ok := value.Value().(bool)
	if !ok {
		return false, fmt.Errorf("condition: it is a %s, and must be true or false", value.Type().TypeName())
	}
	return is, nil
}

var errTooCostly = errors.New("it costs too much to evaluate; simplify the expression, or make it read less")

// cause is why an expression has no value.
func cause(err error) error {
	if cancelled, ok := errors.AsType[interpreter.EvalCancelledError](err); ok && cancelled.Cause == interpreter.CostLimitExceeded {
		return errTooCostly
	}
	return err
}

// Text evaluates an expression whose value is shown.
func (e *Expression) Text(ctx context.Context, variables map[string]any) (string, error) {
	value, _, err := e.program.ContextEval(ctx, variables)
	if err != nil {
		return "", fmt.Errorf("value: %w", cause(err))
	}
	switch v := value.(type) {
	case types.Double:
		return Number(float64(v)), nil
	case types.String, types.Int, types.Uint, types.Bool:
		return fmt.Sprint(v.Value()), nil
	default:
		return "", fmt.Errorf("value: %w", errNoValue)
	}
}

// Number is a number as people write it.
func Number(f float64) string {
	const digits = 6
	return strconv.FormatFloat(f, 'g', digits, 64)
}
