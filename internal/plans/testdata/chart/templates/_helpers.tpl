{{- define "shop.name" -}}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 }}{{- end }}
