package expression_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/cel-go/cel"

	"github.com/spillway-dev/spillway/internal/expression"
)

// document is what the source of a gate has answered: long texts, long lists, and lists within
// lists.
var document = sync.OnceValue(func() map[string]any {
	long, deep := make([]any, 50_000), any(1.0)
	for i := range long {
		long[i] = float64(i)
	}
	for range 9_000 {
		deep = []any{deep}
	}
	return map[string]any{
		"status": 200, "headers": map[string]string{"a": "b"},
		"json": map[string]any{"list": long, "few": long[:1000], "nested": []any{long}, "deep": deep, "text": strings.Repeat("a", 1<<20), "none": nil, "name": "x"},
	}
})

func variables() []cel.EnvOption {
	return []cel.EnvOption{
		cel.Variable("status", cel.IntType), cel.Variable("headers", cel.MapType(cel.StringType, cel.StringType)), cel.Variable("json", cel.DynType),
	}
}

// evaluate says what comes of a condition.
func evaluate(ctx context.Context, text string, document map[string]any) string {
	e, err := expression.Compile(text, cel.BoolType, variables()...)
	if err != nil {
		return err.Error()
	}
	is, err := e.IsTrue(ctx, document)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(is)
}

// nested is a text within many of others.
func nested(times int, before, text, after string) string {
	return strings.Repeat(before, times) + text + strings.Repeat(after, times)
}

// TestConditions checks what comes of them, and what is said of those that have no value.
func TestConditions(t *testing.T) {
	t.Parallel()
	const map_ = "map is not available; use all, exists, exists_one or filter"
	for text, want := range map[string]string{
		`status == 200`: "true",
		`status in [200, 201] && headers['a'] == 'b' && status > 199.5`:           "true",
		`json.few.all(x, x >= 0.0) && json.few.exists_one(x, x == 7.0)`:           "true",
		`json.few.filter(x, x > 990.0).size() == 9 && size(json.name) == 1`:       "true",
		`'v1.2'.matches('^v[0-9]') && matches(json.name, 'x') && -1 in [-1, - 2]`: "true",
		`{'a': [1, 2], 'b': []} == {'b': [], 'a': [1, 2]}`:                        "true",
		`json.deep == json.deep`:                 "true",
		`has(json.missing) && json.missing > 1`:  "false",
		`json.none == null`:                      "true",
		`json.missing > 1`:                       "condition: no such key: missing",
		`json.none > 1`:                          "condition: no such overload",
		`json.few[1000] > 1.0`:                   "condition: index out of bounds: 1000",
		`status / 0 == 1`:                        "condition: division by zero",
		`9223372036854775807 + status > 0`:       "condition: integer overflow",
		`json.name.matches('(')`:                 "condition: error parsing regexp: missing closing ): `(`",
		`json.none.matches('x')`:                 "condition: no such overload",
		`json`:                                   "condition: it is a map, and must be true or false",
		``:                                       `"": Syntax error: mismatched input '<EOF>' expecting`,
		`status ==`:                              `"status ==": Syntax error: mismatched input '<EOF>' expecting`,
		"\x00":                                   `"\x00": Syntax error: token recognition error at`,
		`status`:                                 `"status" has the type int, and must have the type bool`,
		`status == 'a'`:                          `"status == 'a'": found no matching overload for '_==_' applied to '(int, string)'`,
		`state == 1`:                             `"state == 1": undeclared reference to 'state'`,
		`headers.map(x, x) == []`:                `"headers.map(x, x) == []": ` + map_,
		`json.list.map(x, x > 1, x) == []`:       `"json.list.map(x, x > 1, x) == []": ` + map_,
		`[json] == []`:                           `"[json] == []": a list or map may contain only literals`,
		`[[1, [status]]] == []`:                  `"[[1, [status]]] == []": a list or map may contain only literals`,
		`{'a': json} == {}`:                      `"{'a': json} == {}": a list or map may contain only literals`,
		`{json.name: 1} == {}`:                   `"{json.name: 1} == {}": a list or map may contain only literals`,
		`json.few.all(x, [x, x].all(y, y == y))`: `"json.few.all(x, [x, x].all(y, y == y))": a list or map may contain only literals`,
	} {
		if got := evaluate(t.Context(), text, document()); !strings.HasPrefix(got, want) || strings.Contains(got, "container") {
			t.Errorf("%s: %s\nwant %s", text, got, want)
		}
	}
}

// TestWhatCostsTooMuch checks that each evaluation ends for its cost, whatever it reads: none
// ends for the time of the test.
func TestWhatCostsTooMuch(t *testing.T) {
	t.Parallel()
	read := document()
	for _, text := range []string{
		`json.list.all(x, json.list.all(y, x + y >= 0.0))`,
		`json.list.all(x, [1, 2, 3].all(y, y > 0))`,
		`json.list.filter(x, x > 49990.0).size() == 9`,
		`json.list.all(x, x in json.list)`,
		`json.list.all(x, json.list == json.list)`,
		`json.list.all(x, json.list + json.list == json.list + json.list)`,
		`json.few.all(x, json.nested == json.nested)`,
		`json.few.all(x, json.nested in json.nested || true)`,
		`json.few.all(x, json == json)`,
		`json.list.all(x, size(json.text) > 0)`,
		`json.list.all(x, json.text + json.text != '')`,
		`json.list.all(x, json.text.contains('aaaab') || true)`,
		`json.list.all(x, json.text.startsWith(json.text))`,
		`json.list.all(x, string(bytes(json.text)) != '')`,
		`json.list.all(x, json.text < json.text || true)`,
		`json.list.all(x, double(json.text) > 0.0 || true)`,
		`json.text.matches('a*b')`,
		nested(20, "json.list.all(x, ", "true", ")"),
	} {
		if got := evaluate(t.Context(), text, read); got != "condition: it costs too much to evaluate; simplify the expression, or make it read less" {
			t.Errorf("%s: %.200s", text, got)
		}
	}
	e, err := expression.Compile(`json.list.filter(x, true).size()`, nil, variables()...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Text(t.Context(), read); err == nil || !strings.HasPrefix(err.Error(), "value: it costs too much") {
		t.Error(err)
	}
}

// TestMatchesAreBounded checks that a regular expression which takes a long time is not begun: a
// match cannot be interrupted.
func TestMatchesAreBounded(t *testing.T) {
	t.Parallel()
	json := map[string]any{"text": strings.Repeat("a", 100_000)}
	read := map[string]any{"json": json}
	const want = "condition: matches: a text of 100000 bytes is too long for this regular expression"
	for _, pattern := range []string{"(a?){1000}b", "((a?){100}b?){10}z", "(.*){1000}z"} {
		json["pattern"] = pattern
		for _, text := range []string{`json.text.matches(json.pattern)`, `matches(json.text, '` + pattern + `')`} {
			if got := evaluate(t.Context(), text, read); got != want {
				t.Errorf("%s: %s", text, got)
			}
		}
	}
	if got := evaluate(t.Context(), `json.text.matches('^a+$')`, read); got != "true" {
		t.Error(got)
	}
}

// TestLongAndDeepExpressions checks that they are refused, in few words, and how much is not.
func TestLongAndDeepExpressions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		nested(25, "(", "true", ")"):                       "true",
		nested(25, "{'a': ", "1", "}") + " != {}":          "true",
		nested(25, "[", "1", "]") + " != []":               "true",
		nested(100, "true && ", "true", ""):                "true",
		nested(500, "!", "true", ""):                       "true",
		nested(300, "(", "true", ")"):                      "expression recursion limit exceeded: 32",
		nested(150, "{'a':", "1", "}") + " != {}":          "expression recursion limit exceeded: 32",
		nested(300, "[", "1", "]") + " != []":              "expression recursion limit exceeded: 32",
		nested(50, "json.all(x, ", "true", ")"):            "expression recursion limit exceeded: 32",
		nested(40, "true ? (", "true", ") : false"):        "expression recursion limit exceeded: 32",
		"1" + nested(500, "+1", "", "") + " == 1":          "max recursion depth exceeded",
		"json" + nested(300, "[0]", "", "") + " == 1":      "max recursion depth exceeded",
		"'" + strings.Repeat("é", expression.Length) + "'": "expression code point size exceeds limit: size: 1026, limit 1024",
		strings.Repeat("x", 1<<20):                         "expression code point size exceeds limit: size: 1048576, limit 1024",
		strings.Repeat("\"", 1000):                         "Syntax error",
		strings.Repeat("(", 1000):                          "expression recursion limit exceeded: 32",
		strings.Repeat("]", 1000):                          "error recovery token lookahead limit exceeded: 256",
	} {
		got := evaluate(t.Context(), text, document())
		if !strings.Contains(got, want) || len(got) > 500 {
			t.Errorf("%.40s: %.600s\nwant %s", text, got, want)
		}
	}
}

// TestAnEvaluationEndsWithItsTime checks that one stops when the time of the measurement is over.
func TestAnEvaluationEndsWithItsTime(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := evaluate(ctx, `json.few.all(x, x >= 0.0)`, document()); got != "condition: operation interrupted: context canceled" {
		t.Error(got)
	}
}

// TestTexts checks how values are shown, and which are not.
func TestTexts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`1`: "1", `1u`: "1", `-1.5`: "-1.5", `1.0 / 3.0`: "0.333333", `1e300 * 1e300`: "+Inf", `'a b'`: "a b", `true`: "true",
		`headers['a'] + '!'`: "b!", `json.name`: "x", `json.few[7]`: "7", `size(json.list)`: "50000",
		`json.none`: "value: it is neither a number, a string, nor true or false", `json.few`: "value: it is neither a number, a string, nor true or false",
		`timestamp(0)`: "value: it is neither a number, a string, nor true or false", `b'a'`: "value: it is neither a number, a string, nor true or false",
		`json.missing`: "value: no such key: missing", `int(json.name)`: "value: type conversion error from 'string' to 'int'",
	} {
		e, err := expression.Compile(text, nil, variables()...)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, err := e.Text(t.Context(), document())
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	got := []string{}
	for _, f := range []float64{0, math.Copysign(0, -1), 1e-9, 1234567, math.NaN(), math.Inf(-1)} {
		got = append(got, expression.Number(f))
	}
	if want := []string{"0", "-0", "1e-09", "1.23457e+06", "NaN", "-Inf"}; !slices.Equal(got, want) {
		t.Error(got)
	}
}

// TestExpressionsShareNothing checks that the variables of one expression are not those of the
// next, and that one may be evaluated many times in parallel.
func TestExpressionsShareNothing(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ring", "value"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := expression.Compile(name+` == "x"`, cel.BoolType, cel.Variable(name, cel.StringType))
			if err != nil {
				t.Fatal(err)
			}
			for range 4 {
				t.Run("evaluated", func(t *testing.T) {
					t.Parallel()
					for i := range 100 {
						text := []string{"x", "y"}[i%2]
						if is, err := e.Holds(map[string]any{name: text}); err != nil || is != (text == "x") {
							t.Fatal(text, is, err)
						}
					}
				})
			}
			if _, err := expression.Compile("json == 1", cel.BoolType); err == nil {
				t.Error("a variable of another expression is known")
			}
		})
	}
}
