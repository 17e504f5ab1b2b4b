package expression

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

const (
	// Length bounds an expression, in characters.
	Length = 1024
	// maxCost bounds what an expression may cost: about a hundred milliseconds.
	maxCost = 1_000_000
	// interruptEvery is how many steps of a macro there are between two checks of the time.
	interruptEvery = 100
)

// Expression is a CEL expression over some variables.
type Expression struct{ program cel.Program }

// Compile compiles an expression of a type, any if it is nil.
func Compile(text string, result *cel.Type, variables ...cel.EnvOption) (*Expression, error) {
	options := append([]cel.EnvOption{cel.CrossTypeNumericComparisons(true), cel.ParserExpressionSizeLimit(Length)}, variables...)
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
	return &Expression{program}, nil
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

func truth(value ref.Val, err error) (bool, error) {
	if err != nil {
		return false, fmt.Errorf("condition: %w", err)
	}
	is, ok := value.Value().(bool)
	if !ok {
		return false, fmt.Errorf("condition: it is a %s, and must be true or false", value.Type().TypeName())
	}
	return is, nil
}

// Text evaluates an expression whose value is shown.
func (e *Expression) Text(ctx context.Context, variables map[string]any) (string, error) {
	value, _, err := e.program.ContextEval(ctx, variables)
	if err != nil {
		return "", fmt.Errorf("value: %w", err)
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
