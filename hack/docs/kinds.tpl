{{- define "gvList" -}}
# Kinds

<!-- Generated from the types in api by make generate; edit their comments. -->

Print the definitions that an installation has:

```sh
spillway install --export --rings=config,zones,plans,fleet,assemblage | grep -c '^kind: CustomResourceDefinition'
```

A field marked with * is required.
`[]` stands for an entry of a list, and `{}` for a value of a map.
{{ range . }}
- `{{ .GroupVersionString }}`: {{ range $i, $kind := .SortedKinds }}{{ if $i }}, {{ end }}[{{ $kind }}](#{{ lower $kind }}){{ end }}
{{- end }}
{{ range $gv := . }}{{ range .SortedKinds }}{{ $type := $gv.TypeForKind . }}{{ $resource := index $type.Markers "kubebuilder:resource" | first }}
## {{ . }}

`{{ $gv.GroupVersionString }}`, {{ default "Namespaced" $resource.Scope | lower }}
{{- with $resource.ShortName }}; short: `{{ join "`, `" . }}`{{ end }}

{{ range splitList "\n\n" $type.Doc }}{{ template "text" . }}

{{ end }}| Field | Type | Meaning |
|---|---|---|
{{ template "fields" dict "path" "" "type" $type -}}
{{- end }}{{ end }}
{{- end }}

{{- define "text" }}{{ regexReplaceAll "\\s+" (trim .) " " | replace "|" "\\|" | replace "<" "&lt;" | replace ">" "&gt;" }}{{ end }}

{{- /* The fields of what Kubernetes defines are the same everywhere, and left out. */ -}}
{{- define "fields" }}{{ $path := .path }}{{ range .type.Members }}{{ if ne .Name "metadata" -}}
| `{{ $path }}{{ .Name }}`{{ if not (has "Optional: {}" .Validation) }} *{{ end }} | {{ template "type" .Type }} | {{ template "text" .Doc }}
{{- if .Default }} Default: `{{ .Default }}`.{{ end }}
{{- range index .Markers "kubebuilder:validation:Enum" }} Values: {{ range $i, $v := . }}{{ if $i }}, {{ end }}`{{ toString $v | default "\"\"" }}`{{ end }}.{{ end }}
{{- range index .Markers "kubebuilder:validation:Minimum" }} Minimum: {{ printf "%.0f" . }}.{{ end }}
{{- range index .Markers "kubebuilder:validation:Maximum" }} Maximum: {{ printf "%.0f" . }}.{{ end }}
{{- template "rules" .Markers }} |
{{ template "below" dict "path" (print $path .Name) "type" .Type }}
{{- end }}{{ end }}{{ end }}

{{- define "rules" }}{{ range index . "kubebuilder:validation:XValidation" }}{{ if .Message }} The API server requires: {{ template "text" .Message }}.{{ end }}{{ end }}{{ end }}

{{- define "below" }}
{{- $kind := toJson .type.Kind | trimAll "\"" }}
{{- if eq $kind "SLICE" }}{{ template "below" dict "path" (print .path "[]") "type" .type.UnderlyingType }}
{{- else if eq $kind "MAP" }}{{ template "below" dict "path" (print .path "{}") "type" .type.ValueType }}
{{- else if eq $kind "POINTER" }}{{ template "below" dict "path" .path "type" .type.UnderlyingType }}
{{- else if hasPrefix "github.com/spillway-dev/" .type.Package }}{{ template "fields" dict "path" (print .path ".") "type" .type }}
{{- end }}{{ end }}

{{- define "type" }}
{{- $kind := toJson .Kind | trimAll "\"" }}
{{- if eq .Name "LabelSelector" }}label selector
{{- else if eq .Name "IntOrString" }}integer or string
{{- else if eq .Name "Time" "MicroTime" }}time
{{- else if eq .Name "Duration" }}string
{{- else if eq $kind "SLICE" }}list of {{ template "type" .UnderlyingType }}
{{- else if eq $kind "MAP" }}map of {{ template "type" .ValueType }}
{{- else if has $kind (list "POINTER" "ALIAS") }}{{ template "type" .UnderlyingType }}
{{- else if eq $kind "STRUCT" }}object
{{- else if regexMatch "^u?int" .Name }}integer
{{- else if eq .Name "bool" }}boolean
{{- else }}{{ .Name }}
{{- end }}{{ end }}
