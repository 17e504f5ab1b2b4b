package expression

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/env"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/parser"
)

// The cost of an evaluation is compared with its limit after each step, so no single step may
// last: that is what the rest of this file is for.
const (
	// Length bounds an expression, in characters.
	Length = 1024
	// maxDepth bounds how deeply an expression is nested: the time and memory to compile one
	// grow much faster.
	maxDepth = 32
	// maxCost bounds what an evaluation may cost. The time to count the cost grows with its
	// square: this much takes less than a second.
	maxCost = 30_000
	// interruptEvery is how many steps of a macro there are between two checks of the time.
	interruptEvery = 100
	// maxMatch bounds the steps of one match: the instructions of the regular expression times
	// the bytes of the text.
	maxMatch = 10_000_000
	// bytesPerCost is how much of a text one unit of cost pays for.
	bytesPerCost = 10
)

// language is CEL with matches that end, and without the macro map.
var language = sync.OnceValues(func() (*cel.Env, error) {
	standard := env.NewLibrarySubset().AddExcludedFunctions(env.NewFunction(overloads.Matches))
	arguments := []*cel.Type{cel.StringType, cel.StringType}
	environment, err := cel.NewCustomEnv(
		cel.StdLib(cel.StdLibSubset(standard)), cel.CrossTypeNumericComparisons(true), cel.EnableHiddenAccumulatorName(true),
		cel.ParserExpressionSizeLimit(Length), cel.ParserRecursionLimit(maxDepth),
		cel.Function(overloads.Matches,
			cel.Overload(overloads.Matches, arguments, cel.BoolType), cel.MemberOverload(overloads.MatchesString, arguments, cel.BoolType),
			cel.SingletonBinaryBinding(match)),
		cel.Macros(cel.ReceiverMacro(operators.Map, 2, noMap), cel.ReceiverMacro(operators.Map, 3, noMap)), //nolint:mnd // map(x, value) and map(x, condition, value)
	)
	if err != nil {
		return nil, fmt.Errorf("set up expressions: %w", err)
	}
	return environment, nil
})

// match is a match whose time is bounded before it begins.
func match(text, pattern ref.Val) ref.Val {
	t, isText := text.(types.String)
	p, isPattern := pattern.(types.String)
	if !isText || !isPattern {
		return types.MaybeNoSuchOverloadErr(pattern)
	}
	parsed, err := syntax.Parse(string(p), syntax.Perl)
	if err != nil {
		return types.WrapErr(err)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return types.WrapErr(err)
	}
	if len(program.Inst)*len(t) > maxMatch {
		return types.NewErr("matches: a text of %d bytes is too long for this regular expression", len(t))
	}
	compiled, err := regexp.Compile(string(p))
	if err != nil {
		return types.WrapErr(err)
	}
	return types.Bool(compiled.MatchString(string(t)))
}

// noMap refuses a macro that makes new lists: lists that contain one another many times over
// take no room, and comparing two of them never ends.
func noMap(factory cel.MacroExprFactory, target ast.Expr, _ []ast.Expr) (ast.Expr, *cel.Error) {
	return nil, factory.NewError(target.ID(), "map is not available; use all, exists, exists_one or filter")
}

var errNotLiteral = errors.New("a list or map may contain only literals")

// checkLiterals refuses lists and maps of values that are not literals, for the same reason.
func checkLiterals(root ast.Expr) error {
	var err error
	generated := map[int64]bool{} // by the macro filter, of what it has found
	ast.PreOrderVisit(root, ast.NewExprVisitor(func(e ast.Expr) {
		if call := e.AsCall(); call.FunctionName() == operators.Add && isResult(call.Args()[0]) {
			generated[call.Args()[1].ID()] = true
		}
		if !generated[e.ID()] && slices.ContainsFunc(elements(e), func(e ast.Expr) bool { return !isLiteral(e) }) {
			err = errNotLiteral
		}
	}))
	return err
}

// elements are those of a list, or the keys and values of a map.
func elements(e ast.Expr) []ast.Expr {
	if e.Kind() == ast.ListKind {
		return e.AsList().Elements()
	}
	var all []ast.Expr
	for _, entry := range e.AsMap().Entries() {
		m := entry.AsMapEntry()
		all = append(all, m.Key(), m.Value())
	}
	return all
}

func isResult(e ast.Expr) bool {
	return e.Kind() == ast.IdentKind && e.AsIdent() == parser.HiddenAccumulatorName
}

func isLiteral(e ast.Expr) bool {
	switch e.Kind() {
	case ast.LiteralKind, ast.ListKind, ast.MapKind: // those within are visited as well
		return true
	case ast.CallKind: // a number with a sign
		call := e.AsCall()
		return call.FunctionName() == operators.Negate && isLiteral(call.Args()[0])
	default:
		return false
	}
}

// costs are those of calls, by the length of what they read: what a document contains has no
// type by which CEL itself would know its cost.
type costs struct{}

// CallCost implements [interpreter.ActualCostEstimator].
func (costs) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	cost, measure := uint64(1), length
	switch function {
	case operators.Equals, operators.NotEquals, operators.In:
		measure = func(v ref.Val) int { return contents(v, maxCost*bytesPerCost) }
	default:
	}
	for _, arg := range args {
		cost += uint64(measure(arg) / bytesPerCost) //nolint:gosec // no length is negative
	}
	return &cost
}

// length is how long a text is, or how many elements a list or a map has.
func length(value ref.Val) int {
	switch v := value.(type) {
	case types.String:
		return len(v)
	case types.Bytes:
		return len(v)
	case traits.Sizer:
		n, _ := v.Size().(types.Int)
		return int(n)
	default:
		return 1
	}
}

// contents is how much there is in a value. It stops counting at a number.
func contents(value ref.Val, most int) int {
	sum := length(value)
	container, ok := value.(traits.Iterable)
	if !ok {
		return sum
	}
	of, isMap := value.(traits.Mapper)
	for it := container.Iterator(); sum < most && it.HasNext() == types.True; {
		element := it.Next()
		if isMap {
			sum += length(element)
			element = of.Get(element)
		}
		sum += contents(element, most-sum)
	}
	return sum
}
