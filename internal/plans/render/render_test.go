package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	"github.com/Masterminds/sprig/v3"
	"pgregory.net/rapid"
)

func context() Context {
	return Context{
		Name: "web", Namespace: "shop", OperatorName: "app", OperatorVersion: "1.0", AppVersion: "2.0",
		PlanName: "deploy", PhaseName: "main", StepName: "nodes",
		Params: map[string]any{"NODES": "3", "LIST": []any{"b", "a"}, "MAP": map[string]any{"z": "1", "a": map[string]any{"b": "2"}}},
		Pipes:  map[string]string{"cert": "web.cert"},
	}
}

func TestRender(t *testing.T) {
	for template, want := range map[string]string{
		"{{ .Name }} {{ .Namespace }} {{ .OperatorName }} {{ .OperatorVersion }} {{ .AppVersion }}": "web shop app 1.0 2.0",
		"{{ .PlanName }}/{{ .PhaseName }}/{{ .StepName }}":                                          "deploy/main/nodes",
		"{{ .Params.NODES }} {{ .Pipes.cert }}":                                                     "3 web.cert",
		"{{ toYaml .Params.MAP }}":                                                                  "a:\n  b: \"2\"\nz: \"1\"",
		"{{ .Params.MAP | toYaml | nindent 2 }}":                                                    "\n  a:\n    b: \"2\"\n  z: \"1\"",
		"{{ keys .Params.MAP }} {{ values .Params.MAP }}":                                           "[a z] [map[b:2] 1]",
		"{{ range $k, $v := .Params.MAP }}{{ $k }}{{ end }}":                                        "az",
		"{{ until 3 }} {{ untilStep 4 0 -2 }} {{ seq 3 }} {{ seq 2 -1 0 }} {{ seq 3 1 }}":           "[0 1 2] [4 2] 1 2 3 2 1 0 3 2 1",
		`{{ "ab" | repeat 2 | upper | replace "A" "x" }} {{ .Params.NODES | int | add 2 }}`:         "xBxB 5",
		`{{ if eq .Params.NODES "3" }}three{{ else }}other{{ end }}`:                                "three",
		`{{ define "x" }}<{{ . }}>{{ end }}{{ template "x" "y" }}`:                                  "<y>",
		`{{ "QUJD" | b64dec }} {{ "x" | sha256sum | trunc 4 }}`:                                     "ABC 2d71",
	} {
		got, err := Render("x.yaml", template, context())
		if err != nil || got != want {
			t.Errorf("%s = %q, %v; want %q", template, got, err, want)
		}
	}
}

func TestRenderChangesNothing(t *testing.T) {
	c := context()
	if _, err := Render("x.yaml", `{{ $_ := set .Params "NODES" "9" }}{{ $_ := set .Params.MAP.a "b" "9" }}`, c); err != nil {
		t.Fatal(err)
	}
	if got, _ := Render("x.yaml", "{{ .Params.NODES }} {{ .Params.MAP.a.b }}", c); got != "3 2" {
		t.Error(got)
	}
}

// TestEveryFunctionIsEither allowed or refused with a reason, and none is both.
func TestEveryFunctionIsEither(t *testing.T) {
	may := strings.Fields(allowed)
	own := []string{"keys", "values", "repeat", "indent", "nindent", "replace", "until", "untilStep", "seq"}
	for name := range sprig.TxtFuncMap() {
		_, isRefused := refusals()[name]
		isAllowed := slices.Contains(may, name) || slices.Contains(own, name)
		if isAllowed == isRefused {
			t.Errorf("%s: allowed %v, refused %v", name, isAllowed, isRefused)
		}
	}
	for _, name := range may {
		if functions()[name] == nil {
			t.Errorf("sprig has no %s", name)
		}
	}
}

// TestAPackageCallsEveryFunction, so that a package which does so is installed by the tests
// of the ring.
func TestAPackageCallsEveryFunction(t *testing.T) {
	raw, err := os.ReadFile("../testdata/packages/column/templates/functions.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name := range functions() {
		if !regexp.MustCompile(`(\(|\{\{-? |:= )` + name + `\b`).Match(raw) {
			t.Errorf("%s is not called", name)
		}
	}
}

// TestRefusedWhereverItStands also where it is never executed.
func TestRefusedWhereverItStands(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(refusals())) {
		for _, template := range []string{
			"{{ FUNC }}", "{{ if false }}{{ FUNC }}{{ end }}", "{{ range .Params.NONE }}{{ else }}{{ FUNC }}{{ end }}",
			"{{ with FUNC }}{{ end }}", `{{ define "never" }}{{ "x" | FUNC }}{{ end }}`, `{{ printf "%s" (FUNC 1) }}`, "{{ $x := FUNC }}",
			`{{ template "x" FUNC }}{{ define "x" }}{{ end }}`, "{{ if FUNC }}{{ end }}", "{{ (FUNC).Year }}",
		} {
			err := Verify("x.yaml", strings.Replace(template, "FUNC", name, 1))
			if err == nil || !strings.HasPrefix(err.Error(), `template x.yaml: function "`+name+`" is refused: its `) &&
				!strings.HasPrefix(err.Error(), `template x.yaml: function "`+name+`" is refused: it `) {
				t.Errorf("%s of %s: %v", template, name, err)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	for template, want := range map[string]string{
		"{{ .Params.NONE }}":                                            `template x.yaml cannot be rendered: template: x.yaml:1:10: executing "x.yaml" at <.Params.NONE>: map has no entry for key "NONE"`,
		"{{ .Nothing }}":                                                `no entry for key "Nothing"`,
		"{{ if }}":                                                      "template x.yaml cannot be parsed: template: x.yaml:1: missing value for if",
		"{{ include \"x\" }}":                                           `template x.yaml cannot be parsed: template: x.yaml:1: function "include" not defined`,
		`{{ repeat 100000000 "xxxx" }}`:                                 "repeat: the result of 100000000 times is too long",
		`{{ repeat -1 "x" }}`:                                           "is too long",
		"{{ until 1000000000 }}":                                        "a range from 0 to 1000000000 is longer than 100000",
		"{{ untilStep 0 9223372036854775807 1}}":                        "is longer than",
		"{{ seq 1 1 1000000000 }}":                                      "is longer than",
		`{{ indent 100000 "x" }}`:                                       "indent: 100000 spaces are not between 0 and 1000",
		`{{ indent 1000 (repeat 10000 "\n") }}`:                         "indent: the result is too long",
		`{{ replace "" (repeat 10000 "x") (repeat 10000 "x") }}`:        "replace: the result is too long",
		"{{ range until 100000 }}{{ repeat 100 \"x\" }}{{ end }}":       "the result is longer than 3145728 bytes",
		`{{ define "x" }}{{ template "x" }}{{ end }}{{ template "x" }}`: "template x.yaml cannot be rendered: it is nested too deeply, or contains itself",
		`{{ substr 5 1 "abc" }}`:                                        "cannot be rendered",
		`{{ fail "no" }}`:                                               "no",
		`{{ index .Params.LIST 9 }}`:                                    "cannot be rendered",
		`{{ div 1 0 }}`:                                                 "cannot be rendered",
		`{{ call .Name }}`:                                              "cannot be rendered",
	} {
		if _, err := Render("x.yaml", template, context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", template, err, want)
		}
	}
}

// TestHostileTemplates never panic, and give the same each time.
func TestHostileTemplates(t *testing.T) {
	words := append(strings.Fields(allowed), "keys", "values", "repeat", "indent", "replace", "until", "untilStep", "seq", "now", "env",
		".", ".Params", ".Params.MAP", ".Params.LIST", ".Name", "nil", "0", "-1", "9999999999", "1.5", `"x"`, `""`, `"("`, "true", "|", "(", ")", "$x", ":=",
		"range", "if", "end", "else", "with", "define", "template", "block", "}}", "{{", "\n", "{{-", "-}}", "/*", "*/", "break")
	rapid.Check(t, func(t *rapid.T) {
		template := "{{ " + strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 1, 8).Draw(t, "words"), " ") + " }}"
		one, first := Render("x", template, context())
		other, second := Render("x", template, context())
		if one != other || (first == nil) != (second == nil) {
			t.Fatalf("%s: %q %v, %q %v", template, one, first, other, second)
		}
	})
}

// What a template sees has no methods that it could call, but for versions: neither its data, nor
// what functions and the methods of versions return.
func TestNothingElseHasMethods(t *testing.T) {
	c := context()
	c.Params["NUMBERS"] = []any{1.5, int64(2), true, nil}
	raw, err := json.Marshal(c)
	if err == nil {
		err = json.Unmarshal(raw, &c) // as the process that renders has it
	}
	if err != nil {
		t.Fatal(err)
	}
	hasNoMethods(t, "data", reflect.ValueOf(c.data()))
	version := reflect.TypeFor[*semver.Version]()
	returned := map[string]reflect.Type{}
	for name, function := range functions() {
		returned[name] = reflect.TypeOf(function)
	}
	for m := range version.Methods() {
		returned["versions' "+m.Name] = m.Type
	}
	for name, function := range returned {
		for out := range function.Outs() {
			for out.Kind() == reflect.Slice || out.Kind() == reflect.Map {
				out = out.Elem()
			}
			switch {
			case out == version, out == version.Elem(), out == reflect.TypeFor[error](), out.NumMethod() == 0 && reflect.PointerTo(out).NumMethod() == 0:
			default:
				t.Errorf("%s returns a %s, which has methods", name, out)
			}
		}
	}
	for _, template := range []string{"{{ .String }}", "{{ .Params.MarshalJSON }}", "{{ (index .Params `MAP`).String }}", "{{ .Pipes.String }}", "{{ (dict).String }}"} {
		if _, err := Render("x.yaml", template, c); err == nil || !strings.Contains(err.Error(), "map has no entry for key") {
			t.Errorf("%s: %v", template, err)
		}
	}
}

// hasNoMethods checks a value, and all that is in it.
func hasNoMethods(t *testing.T, path string, v reflect.Value) {
	t.Helper()
	for v.IsValid() && v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if !v.IsValid() {
		return
	}
	if v.Type().NumMethod()+reflect.PointerTo(v.Type()).NumMethod() > 0 {
		t.Errorf("%s is a %s, which has methods", path, v.Type())
	}
	switch v.Kind() {
	case reflect.Map:
		for key, value := range v.Seq2() {
			hasNoMethods(t, path+"."+key.String(), value)
		}
	case reflect.Slice:
		for i, value := range v.Seq2() {
			hasNoMethods(t, fmt.Sprint(path, ".", i), value)
		}
	case reflect.Bool, reflect.String, reflect.Int64, reflect.Float64:
	default:
		t.Errorf("%s is a %s", path, v.Type())
	}
}
