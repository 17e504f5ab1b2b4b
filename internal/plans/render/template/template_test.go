package template

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	golang "text/template"

	"github.com/Masterminds/semver/v3"
)

// A template may call each method of a version, as with Go's own package.
func TestMethodsAreThoseOfVersions(t *testing.T) {
	var want []string
	for m := range reflect.TypeFor[*semver.Version]().Methods() {
		want = append(want, m.Name)
	}
	if got := slices.Sorted(maps.Keys(methods)); !slices.Equal(got, want) {
		t.Errorf("methods of versions: %v; want %v", got, want)
	}
	version := semver.MustParse("v1.2.3-rc.1+build")
	for name, method := range methods {
		got, want := reflect.TypeOf(method(version)), reflect.ValueOf(version).MethodByName(name).Type()
		if got != want {
			t.Errorf("%s is %s; want %s", name, got, want)
		}
	}
}

// A template gives the same as with Go's own package, or fails with the same words.
func TestSameAsGo(t *testing.T) {
	functions := map[string]any{
		"semver": semver.NewVersion, "upper": strings.ToUpper,
		"fail": func() (string, error) { return "", semver.ErrInvalidSemVer },
	}
	data := func() map[string]any {
		return map[string]any{
			"Name": "web", "None": nil, "List": []any{"b", int64(2), 1.5, true, nil},
			"Map":    map[string]any{"z": 1, "a": map[string]any{"b": "<2>"}},
			"Mixed":  map[any]any{2: "two", "x": "y", 1.5: "float", true: "yes"},
			"Nested": map[string]map[int]string{"q": {3: "c", 1: "a"}},
		}
	}
	for _, text := range []string{
		"{{ .Name }} {{ .Map.a.b }} {{ .Missing }}", "{{ .Missing.x }}", "{{ .None }}", "{{ .None.x }}", "{{ .Name.x }}", "{{ .Name 1 }}",
		"{{ range $i, $v := .List }}{{ if eq $i 1 }}{{ continue }}{{ end }}{{ if not $v }}{{ break }}{{ end }}{{ $i }}={{ $v }} {{ else }}-{{ end }}",
		"{{ range $k, $v := .Map }}{{ $k }} {{ $v }};{{ end }}", "{{ range $k, $v := .Mixed }}{{ $k }}={{ $v }};{{ end }}",
		"{{ range .Nested.q }}{{ . }}{{ end }}", "{{ range 3 }}{{ . }}{{ end }}", "{{ range .Name }}{{ . }}{{ end }}", "{{ range .None }}{{ else }}none{{ end }}",
		"{{ with $x := .Map.a }}{{ $x.b | html }}{{ else with .Name }}{{ . }}{{ end }}", `{{ define "x" }}<{{ . }}>{{ end }}{{ template "x" .Name }}{{ template "y" }}`,
		`{{ block "b" .List }}{{ index . 0 }}{{ end }}`, "{{ index .Map `a` `b` }} {{ index .List 9 }}", "{{ slice .Name 1 2 }} {{ len .List }}",
		`{{ printf "%05d %q %v" 7 .Name .Map }} {{ print 1 2 "x" }} {{ println .Name }}`, "{{ and .Name 0 .List }} {{ or 0 .Name }} {{ not 0 }}",
		"{{ lt 1 2 }} {{ ge 2.5 1.5 }} {{ eq .Name `web` `x` }} {{ ne 1 2 }} {{ eq 1 `a` }}", "{{ js .Map.a.b }} {{ urlquery .Map.a.b }}", "{{ call .Name }}",
		"{{ upper .Name | printf `%s!` }} {{ upper 1 }} ", "{{ upper }}", "{{ fail }}", "{{ . | undefined }}", "{{ if }}", "{{- /* nothing */ -}} x {{- 1 -}} y",
		"{{ $v := semver `v1.2.3-rc.1` }}{{ $v }} {{ $v.Major }}.{{ $v.Minor }} {{ $v.Prerelease | upper }} {{ $v.Original }} {{ ($v.IncMajor).String }}",
		"{{ (semver `1.2.3`).LessThan (semver `1.2.4`) }} {{ (semver `1.2.3`).Compare (semver `1.0`) }}", "{{ (semver `1`).Nothing }}", "{{ (semver `x`).Major }}",
		"{{ ((semver `1`).SetPrerelease `b`).Prerelease }} {{ (semver `1`).SetPrerelease `?` }}", "{{ (semver `1`).Major 2 }}",
	} {
		for _, option := range []string{"missingkey=error", "missingkey=default", "missingkey=zero"} {
			var got, want strings.Builder
			ours, err := New("x").Option(option).Funcs(functions).Parse(text)
			theirs, wantErr := golang.New("x").Option(option).Funcs(functions).Parse(text)
			if err == nil && wantErr == nil {
				err, wantErr = ours.Execute(&got, data()), theirs.Execute(&want, data())
			}
			if got.String() != want.String() || said(err) != said(wantErr) {
				t.Errorf("%s with %s gives %q, %v; want %q, %v", text, option, got.String(), err, want.String(), wantErr)
			}
		}
	}
}

func said(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
