package binding

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func value(name, text string) Binding { return Binding{Name: name, Value: text} }

func field(name, object, path string) Binding {
	return Binding{Name: name, Field: &Field{configMap(object), path}}
}

func configMap(name string) Object { return Object{"v1", "ConfigMap", name} }

// region is an object with a field of every type.
func region() map[string]any {
	return map[string]any{
		"data":  map[string]any{"name": "eu", "a/b~c": "odd", "dollar": "$(A) $$", "": "unnamed"},
		"count": int64(3), "big": int64(12345678901), "share": 0.25, "on": true, "none": nil,
		"list": []any{"first", map[string]any{"x": "y"}},
	}
}

func TestEvaluate(t *testing.T) {
	known := Known{
		configMap("region"): {Content: region()}, configMap("gone"): {}, configMap("closed"): {Refused: "may not be read"},
	}
	for name, test := range map[string]struct {
		bindings []Binding
		want     Values
		err      string
		needs    []Object
	}{
		"nothing":                      {nil, Values{ClusterName: "c1"}, "", nil},
		"a value":                      {[]Binding{value("A", "x")}, Values{ClusterName: "c1", "A": "x"}, "", nil},
		"one that uses another":        {[]Binding{value("A", "<$(B)>"), value("B", "b")}, Values{ClusterName: "c1", "A": "<b>", "B": "b"}, "", nil},
		"the cluster":                  {[]Binding{value("A", "in-$(CLUSTER_NAME)")}, Values{ClusterName: "c1", "A": "in-c1"}, "", nil},
		"one in place of a predefined": {[]Binding{value(ClusterName, "mine")}, Values{ClusterName: "mine"}, "", nil},
		"an unknown name":              {[]Binding{value("A", "<$(UNBOUND)>")}, Values{ClusterName: "c1", "A": "<>"}, "", nil},
		"a field":                      {[]Binding{field("A", "region", "/data/name")}, Values{ClusterName: "c1", "A": "eu"}, "", nil},
		"a number":                     {[]Binding{field("A", "region", "/count")}, Values{ClusterName: "c1", "A": "3"}, "", nil},
		"a big number":                 {[]Binding{field("A", "region", "/big")}, Values{ClusterName: "c1", "A": "12345678901"}, "", nil},
		"a fraction":                   {[]Binding{field("A", "region", "/share")}, Values{ClusterName: "c1", "A": "0.25"}, "", nil},
		"a truth":                      {[]Binding{field("A", "region", "/on")}, Values{ClusterName: "c1", "A": "true"}, "", nil},
		"a list":                       {[]Binding{field("A", "region", "/list")}, Values{ClusterName: "c1", "A": `["first",{"x":"y"}]`}, "", nil},
		"in a list":                    {[]Binding{field("A", "region", "/list/1/x")}, Values{ClusterName: "c1", "A": "y"}, "", nil},
		"escaped":                      {[]Binding{field("A", "region", "/data/a~1b~0c")}, Values{ClusterName: "c1", "A": "odd"}, "", nil},
		"an empty key":                 {[]Binding{field("A", "region", "/data/")}, Values{ClusterName: "c1", "A": "unnamed"}, "", nil},
		"a field is not expanded":      {[]Binding{field("A", "region", "/data/dollar")}, Values{ClusterName: "c1", "A": "$(A) $$"}, "", nil},
		"expandable all over": {
			[]Binding{
				{Name: "A", Field: &Field{Object{"v$(V)", "Config$(K)", "re$(N)"}, "/data/$(F)"}},
				value("V", "1"), value("K", "Map"), value("N", "gion"), value("F", "name"),
			}, Values{ClusterName: "c1", "A": "eu", "V": "1", "K": "Map", "N": "gion", "F": "name"}, "", nil,
		},
		"not looked at yet": {
			[]Binding{field("A", "z", "/x"), field("B", "y", "/x"), value("C", "$(A)")},
			Values{ClusterName: "c1"}, "", []Object{configMap("y"), configMap("z")},
		},
		"an object by the field of another": {
			[]Binding{field("A", "$(B)", "/x"), field("B", "region", "/data/name")},
			Values{ClusterName: "c1", "B": "eu"}, "", []Object{configMap("eu")},
		},
		"nothing there":   {[]Binding{field("A", "gone", "/x"), value("B", "b")}, Values{ClusterName: "c1", "B": "b"}, `binding "A": ConfigMap gone does not exist`, nil},
		"may not be read": {[]Binding{field("A", "closed", "/x")}, Values{ClusterName: "c1"}, `binding "A": ConfigMap closed may not be read`, nil},
		"no such field": {
			[]Binding{field("A", "region", "/data/zone/x")}, Values{ClusterName: "c1"},
			`binding "A": ConfigMap region: fieldPath "/data/zone/x": there is no /data/zone: the field is not set`, nil,
		},
		"below a plain value": {
			[]Binding{field("A", "region", "/data/name/x")}, Values{ClusterName: "c1"},
			`binding "A": ConfigMap region: fieldPath "/data/name/x": there is no /data/name/x: the value has no fields`, nil,
		},
		"null":            {[]Binding{field("A", "region", "/none")}, Values{ClusterName: "c1"}, `binding "A": ConfigMap region: fieldPath "/none": /none is null`, nil},
		"no index":        {[]Binding{field("A", "region", "/list/01")}, Values{ClusterName: "c1"}, `binding "A": ConfigMap region: fieldPath "/list/01": there is no /list/01: "01" is not an index of a list`, nil},
		"index too large": {[]Binding{field("A", "region", "/list/2")}, Values{ClusterName: "c1"}, `binding "A": ConfigMap region: fieldPath "/list/2": there is no /list/2: the list has 2 elements`, nil},
		"no path":         {[]Binding{field("A", "region", "")}, Values{ClusterName: "c1"}, `binding "A": ConfigMap region: fieldPath "": must not be empty; name a field, such as /data/region`, nil},
		"no pointer":      {[]Binding{field("A", "region", "data.x")}, Values{ClusterName: "c1"}, `binding "A": ConfigMap region: fieldPath "data.x": a JSON pointer begins with /, as in /data/region`, nil},
		"no object":       {[]Binding{field("A", "$(UNBOUND)", "/x")}, Values{ClusterName: "c1"}, `binding "A": objectFieldRef needs an apiVersion, a kind and a name; it has "v1", "ConfigMap" and ""`, nil},
		"itself":          {[]Binding{value("A", "$(A)")}, Values{ClusterName: "c1"}, `binding "A": refers to itself: A -> A`, nil},
		"a cycle": {
			[]Binding{value("A", "$(B)"), value("B", "$(C)"), value("C", "$(B)"), value("D", "d")},
			Values{ClusterName: "c1", "D": "d"}, `binding "B": refers to itself: B -> C -> B`, nil,
		},
		"twice":         {[]Binding{value("A", "1"), value("A", "2")}, Values{ClusterName: "c1"}, `binding "A": duplicate name; remove one`, nil},
		"no name":       {[]Binding{value("", "1")}, Values{ClusterName: "c1"}, `binding "": a name is missing`, nil},
		"no such name":  {[]Binding{value("A)", "1")}, Values{ClusterName: "c1"}, `binding "A)": nothing could refer to a name with a parenthesis`, nil},
		"several wrong": {[]Binding{field("B", "gone", "/x"), field("A", "gone", "/x"), value("C", "$(A)$(B)")}, Values{ClusterName: "c1"}, "binding \"A\": ConfigMap gone does not exist\nbinding \"B\": ConfigMap gone does not exist", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := Evaluate(test.bindings, Values{ClusterName: "c1"}, known)
			message := ""
			if got.Err != nil {
				message = got.Err.Error()
			}
			if diff := cmp.Diff(test.want, got.Values); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.err, message); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.needs, got.Needs); diff != "" {
				t.Errorf("needs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExpand(t *testing.T) {
	values := Values{"A": "1", "B_2": "$(A)"}
	for text, want := range map[string]string{
		"": "", "plain": "plain", "$(A)": "1", "-$(A)$(A)-": "-11-", "$(B_2)": "$(A)", "$(X)": "",
		"$$(A)": "$(A)", "$$$(A)": "$1", "$$$$": "$$", "$": "$", "a$": "a$", "$A": "$A", "$(A": "$(A", "$()": "", "$((A))": ")", "100$ $(A)": "100$ 1",
	} {
		if got, err := values.Expand(text); err != nil || got != want {
			t.Errorf("%q expands to %q (%v), want %q", text, got, err, want)
		}
	}
}

// Each binding is twice the one before it; the last would be longer than any memory.
func TestValuesDoNotGrowWithoutBounds(t *testing.T) {
	bindings := []Binding{value("A", "xx")}
	for last := "A"; len(bindings) < 60; last += "A" {
		bindings = append(bindings, value(last+"A", "$("+last+")$("+last+")"))
	}
	got := Evaluate(bindings, nil, nil)
	var e *Error
	if !errors.As(got.Err, &e) || e.Binding != strings.Repeat("A", 17) || e.Reason != "longer than 65536 bytes" {
		t.Errorf("%v", got.Err)
	}
	if _, err := got.Values.Expand(strings.Repeat("$(A)", MaxLength/2)); err != nil {
		t.Error(err)
	}
	if _, err := got.Values.Expand(strings.Repeat("$(A)", MaxLength)); err == nil {
		t.Error("text grows without bounds")
	}
}

// generated are bindings that refer to each other at will, over objects of which
// some do not exist.
func generated(t *rapid.T) ([]Binding, Known) {
	names := rapid.SampledFrom([]string{"A", "B", "C", "D", ClusterName})
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.OneOf(
			rapid.Custom(func(t *rapid.T) string { return "$(" + names.Draw(t, "name") + ")" }),
			rapid.SampledFrom([]string{"x", "$", "$$", "(", ")", "/", "~1", "0"}),
		), 0, 3).Draw(t, "parts"), "")
	})
	bindings := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Binding {
		b := Binding{Name: names.Draw(t, "name"), Value: text.Draw(t, "value")}
		if rapid.Bool().Draw(t, "field") {
			b.Field = &Field{configMap(text.Draw(t, "object")), "/" + text.Draw(t, "path")}
		}
		return b
	}), 0, 6).Draw(t, "bindings")
	known := Known{configMap("x"): {Content: map[string]any{"x": "$(A)", "": "e"}}, configMap("0"): {}}
	return bindings, known
}

// Whatever the bindings: it ends, the order of the list does not matter, and all
// that has no value says why, by way of an error or of something to look at.
func TestPropertyEveryBindingHasAValueOrAReason(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bindings, known := generated(t)
		got := settle(bindings, known)
		names := map[string]bool{}
		for _, b := range bindings {
			names[b.Name] = true
		}
		lacking := 0
		for name := range names {
			if _, ok := got.Values[name]; !ok {
				lacking++
			}
		}
		if lacking > 0 && got.Err == nil {
			t.Errorf("%d bindings have no value, and nothing is wrong", lacking)
		}
		if lacking == 0 && got.Err != nil {
			t.Errorf("all have values, and yet: %v", got.Err)
		}
		reversed := slices.Clone(bindings)
		slices.Reverse(reversed)
		if diff := cmp.Diff(got.Values, settle(reversed, known).Values); diff != "" && !hasTwins(bindings) {
			t.Errorf("the order of the list matters:\n%s", diff)
		}
	})
}

// settle evaluates until nothing more must be read; what was not known does not exist.
func settle(bindings []Binding, known Known) Result {
	known = maps.Clone(known)
	for {
		r := Evaluate(bindings, Values{ClusterName: "c1"}, known)
		if len(r.Needs) == 0 {
			return r
		}
		for _, object := range r.Needs {
			known[object] = Look{}
		}
	}
}

func hasTwins(bindings []Binding) bool {
	seen := map[string]bool{}
	for _, b := range bindings {
		if seen[b.Name] {
			return true
		}
		seen[b.Name] = true
	}
	return false
}

// What one phase has evaluated, the next one leaves as it is.
func TestPropertyLiteralsStandForThemselves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := Values(rapid.MapOf(rapid.StringMatching(`[A-Z_]{1,3}`), rapid.StringMatching(`[$()A-Zx]{0,9}`)).Draw(t, "values"))
		got := Evaluate(values.Literal(), nil, nil)
		if got.Err != nil || len(got.Needs) > 0 {
			t.Fatalf("%v, needs %v", got.Err, got.Needs)
		}
		if diff := cmp.Diff(values, got.Values); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestErrorsNameTheBinding(t *testing.T) {
	var e *Error
	if err := Evaluate([]Binding{value("A", "$(A)")}, nil, nil).Err; !errors.As(err, &e) || e.Binding != "A" {
		t.Errorf("%v does not name A", err)
	}
}

// What may still appear is distinguished from what a user must fix.
func TestErrorsSayWhetherSomethingMayStillCome(t *testing.T) {
	known := Known{configMap("region"): {Content: region()}, configMap("gone"): {}, configMap("closed"): {Refused: "may not be read"}}
	for waits, bindings := range map[bool][]Binding{
		true:  {field("A", "gone", "/x"), field("A", "region", "/data/zone")},
		false: {field("A", "closed", "/x"), field("A", "region", "x"), field("A", "region", "/list/9"), value("A", "$(A)")},
	} {
		for _, b := range bindings {
			var e *Error
			if err := Evaluate([]Binding{b}, nil, known).Err; !errors.As(err, &e) || e.Waits != waits {
				t.Errorf("%v: waits is not %v", err, waits)
			}
		}
	}
}

func TestNames(t *testing.T) {
	if diff := cmp.Diff(map[string]bool{"A": true, "B": true}, Names("$(A)$$(C)", "x", "$(B)$(A)$(")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzEvaluate(f *testing.F) {
	f.Add("A", "$(B)$$", "B", "x", "/data/name")
	f.Add("A", "$(A)", "", "region", "~")
	f.Fuzz(func(_ *testing.T, a, text, b, object, path string) {
		settle([]Binding{value(a, text), field(b, object, path), field("C", text, text)}, Known{configMap("region"): {Content: region()}})
	})
}
