package render_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spillway-dev/spillway/internal/plans/render"
)

// TestReferencesOf finds each parameter that a template refers to, and doubts in favor of use.
func TestReferencesOf(t *testing.T) {
	all := &render.References{All: true}
	needs := func(names ...string) *render.References { return &render.References{Params: names} }
	looksUp := func(names ...string) *render.References { return &render.References{Lookups: names} }
	for text, want := range map[string]*render.References{
		`Params.A {{/* .Params.A */}} {{ "Params.A" }} {{ .Name }}`:                      {},
		`{{ .Params.A }} {{ if .Params.B }}{{ else }}{{ $.Params.C.D }}{{ end }}`:        needs("A", "B", "C"),
		`{{ range .Params.A }}{{ . }}{{ $.Params.B }}{{ else }}{{ .Params.C }}{{ end }}`: needs("A", "B", "C"),
		`{{ range $i, $v := .Params.A }}{{ $v }}{{ $v.b }}{{ end }}`:                     needs("A"),
		`{{ with .Params }}{{ .A }}{{ if .B }}{{ end }}{{ end }}`:                        needs("A", "B"),
		`{{ with .Params }}{{ . }}{{ end }}`:                                             all,
		`{{ with $p := .Params }}{{ $p.A }}{{ end }}`:                                    all,
		`{{ with $a := .Params.A }}{{ $a }}{{ . }}{{ end }}`:                             needs("A"),
		`{{ with . }}{{ .Params.A }}{{ end }}`:                                           needs("A"),
		`{{ $root := . }}{{ range .Params.A }}{{ $root.Params.B }}{{ end }}`:             needs("A", "B"),
		`{{ $root := . }}{{ toYaml $root }}`:                                             all,
		`{{ $r := "" }}{{ range .Params.A }}{{ toYaml $r }}{{ $r = $ }}{{ end }}`:        {Params: []string{"A"}, All: true},
		`{{ $p := .Params }}{{ $p.A }}`:                                                  all,
		`{{ .Params.A | default "b" | upper }}`:                                          needs("A"),
		`{{ (.Params).A }} {{ ($.Params).B }} {{ (.).Params.C }}`:                        needs("A", "B", "C"),
		`{{ (fromJson .Params.A).b }}`:                                                   needs("A"),
		`{{ index .Params "A" }} {{ hasKey $.Params "B" }} {{ get (.Params) "C" }}`:      looksUp("A", "B", "C"),
		`{{ pick .Params "A" "B" | toYaml }} {{ pluck "C" .Params }}`:                    looksUp("A", "B", "C"),
		`{{ index .Params .Params.A }}`:                                                  {Params: []string{"A"}, All: true},
		`{{ index .Params (printf "%s" "A") }}`:                                          all,
		`{{ index . "Params" "A" }}`:                                                     all,
		`{{ omit .Params "A" | toYaml }}`:                                                all,
		`{{ .Params | toYaml }}`:                                                         all,
		`{{ range .Params }}{{ end }}`:                                                   all,
		`{{ range . }}{{ end }}`:                                                         all,
		`{{ toYaml . }}`:                                                                 all,
		`{{ . }}`:                                                                        all,
		`{{ define "x" }}{{ .Params.A }}{{ end }}{{ template "x" . }}`:                   needs("A"),
		`{{ define "x" }}{{ toYaml . }}{{ end }}{{ template "x" . }}`:                    all,
		`{{ define "x" }}{{ .A }}{{ end }}{{ template "x" .Params }}`:                    all,
		`{{ block "x" . }}{{ .Params.A }}{{ end }}`:                                      needs("A"),
		`{{ template "x" dict "p" .Params.A }}{{ define "x" }}{{ .p }}{{ end }}`:         needs("A"),
		`{{ .Pipes.k }}{{ index .Pipes "l" }}`:                                           {Pipes: []string{"k"}},
	} {
		got, err := render.ReferencesOf("a.yaml", text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", text, diff)
		}
	}
	if _, err := render.ReferencesOf("a.yaml", "{{ if }}"); err == nil {
		t.Error("a template that cannot be parsed has references")
	}
}
