package source

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
)

const (
	// maxExpression bounds an expression, in characters.
	maxExpression = 1024
	// maxCost bounds what an expression may cost: about a hundred milliseconds.
	maxCost = 1_000_000
	// interruptEvery is how many steps of a macro there are between two checks of the time.
	interruptEvery = 100
)

// expression is a CEL expression over some variables.
type expression struct{ program cel.Program }

// compile compiles an expression of a type, any if it is nil.
func compile(text string, result *cel.Type, variables ...cel.EnvOption) (*expression, error) {
	options := append([]cel.EnvOption{cel.CrossTypeNumericComparisons(true), cel.ParserExpressionSizeLimit(maxExpression)}, variables...)
	env, err := cel.NewEnv(options...)
	if err != nil {
		return nil, fmt.Errorf("set up expressions: %w", err)
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, fmt.Errorf("%q: %s", text, issues.Errors()[0].Message)
	}
	if result != nil && !ast.OutputType().IsExactType(result) && !ast.OutputType().IsExactType(cel.DynType) {
		return nil, fmt.Errorf("%q is a %s, and must be a %s", text, ast.OutputType(), result)
	}
	program, err := env.Program(ast, cel.CostLimit(maxCost), cel.InterruptCheckFrequency(interruptEvery))
	if err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	return &expression{program}, nil
}

var errNoValue = errors.New("it is neither a number, a string, nor true or false")

// isTrue evaluates a condition.
func (e *expression) isTrue(ctx context.Context, variables map[string]any) (bool, error) {
	value, _, err := e.program.ContextEval(ctx, variables)
	if err != nil {
		return false, fmt.Errorf("condition: %w", err)
	}
	is, ok := value.Value().(bool)
	if !ok {
		return false, fmt.Errorf("condition: it is a %s, and must be true or false", value.Type().TypeName())
	}
	return is, nil
}

// text evaluates an expression whose value is shown.
func (e *expression) text(ctx context.Context, variables map[string]any) (string, error) {
	value, _, err := e.program.ContextEval(ctx, variables)
	if err != nil {
		return "", fmt.Errorf("value: %w", err)
	}
	switch v := value.(type) {
	case types.Double:
		return number(float64(v)), nil
	case types.String, types.Int, types.Uint, types.Bool:
		return fmt.Sprint(v.Value()), nil
	default:
		return "", fmt.Errorf("value: %w", errNoValue)
	}
}

// number is a number as people write it.
func number(f float64) string {
	const digits = 6
	return strconv.FormatFloat(f, 'g', digits, 64)
}
