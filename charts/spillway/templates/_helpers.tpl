{{/* The image of the manager: by digest, or by the tag, which is that of this version. */}}
{{- define "spillway.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The version as a label has it. */}}
{{- define "spillway.version" -}}
{{ .Chart.AppVersion | replace "+" "_" }}
{{- end }}
