{{/* The image of the manager: by its digest, or by its tag, which is that of this version; without a tag if that is null. */}}
{{- define "spillway.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else if hasKey . "tag" -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- else -}}
{{ .repository }}
{{- end -}}
{{- end -}}
{{- end }}

{{/*
The name of all that is installed but what others find by its name: the Leases, by which managers of one namespace elect one leader,
and the Secrets, which other programs and people fill. What has no namespace begins with its name, or with the namespace.
*/}}
{{- define "spillway.name" -}}
{{ .Values.fullnameOverride | default .Values.nameOverride | default "spillway" }}
{{- end }}

{{/* Who the manager is to the API server. */}}
{{- define "spillway.identity" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "spillway.name" . }}
{{- end }}

{{/* The name by which API servers call the webhooks. */}}
{{- define "spillway.webhooks-host" -}}
{{ include "spillway.name" . }}-webhooks.{{ .Release.Namespace }}.svc
{{- end }}

{{/* The labels of an object of a component: (list $ "manager"). */}}
{{- define "spillway.labels" -}}
{{- $root := index . 0 -}}
{{ include "spillway.selector" (index . 1) }}
app.kubernetes.io/instance: {{ $root.Release.Namespace | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service | quote }}
{{- end }}

{{/* The labels that find the Pods of a component: "manager". */}}
{{- define "spillway.selector" -}}
app.kubernetes.io/component: {{ . }}
app.kubernetes.io/name: spillway
{{- end }}

{{/*
The metadata of what a ring declares: (list $ "config" "config.spillway.dev"). The name begins with the namespace, so that two
installations in one cluster do not share it; by the labels it is found, and removed once the ring does not run.
*/}}
{{- define "spillway.declared" -}}
{{- $root := index . 0 -}}
name: {{ $root.Release.Namespace }}.{{ index . 2 }}
labels:
  {{- include "spillway.labels" (list $root "manager") | nindent 2 }}
  {{- with $root.Chart.AppVersion }}
  app.kubernetes.io/version: {{ . | replace "+" "_" | quote }}
  {{- end }}
  spillway.dev/ring: {{ index . 1 }}
{{- end }}

{{/* A selector of namespaces as JSON, narrowed to those that are watched: (list $ SELECTOR). */}}
{{- define "spillway.within" -}}
{{- $selector := default dict (index . 1) -}}
{{- with (index . 0).Values.watchNamespaces -}}
{{- $watched := dict "key" "kubernetes.io/metadata.name" "operator" "In" "values" . -}}
{{- $_ := set $selector "matchExpressions" (append (default list $selector.matchExpressions) $watched) -}}
{{- end -}}
{{ toJson $selector }}
{{- end }}

{{/* True if pins are on in some namespaces. */}}
{{- define "spillway.pins" -}}
{{- if or .Values.pinNamespaces (include "spillway.pins.selector" .) }}true{{ end -}}
{{- end }}

{{/* The names of the namespaces with pins, in JSON. None: those of the whole cluster, or those that a selector selects. */}}
{{- define "spillway.pins.namespaces" -}}
{{ ternary .Values.watchNamespaces .Values.pinNamespaces (has "*" .Values.pinNamespaces) | default list | toJson }}
{{- end }}

{{/* The namespaces with pins, as a selector in JSON. */}}
{{- define "spillway.pins.selected" -}}
{{- $names := include "spillway.pins.namespaces" . | fromJsonArray -}}
{{- if $names -}}
{{ dict "matchExpressions" (list (dict "key" "kubernetes.io/metadata.name" "operator" "In" "values" $names)) | toJson }}
{{- else -}}
{{ .Values.pinNamespaceSelector | default dict | toJson }}
{{- end -}}
{{- end }}

{{/* The selector of namespaces with pins as a flag has it. */}}
{{- define "spillway.pins.selector" -}}
{{- $terms := list -}}
{{- with .Values.pinNamespaceSelector -}}
{{- range $key, $value := .matchLabels }}{{ $terms = append $terms (printf "%s=%s" $key $value) }}{{ end -}}
{{- range .matchExpressions -}}
{{- if eq .operator "Exists" }}{{ $terms = append $terms .key -}}
{{- else if eq .operator "DoesNotExist" }}{{ $terms = append $terms (printf "!%s" .key) -}}
{{- else }}{{ $terms = append $terms (printf "%s %s (%s)" .key (lower .operator) (join "," .values)) }}{{ end -}}
{{- end -}}
{{- end -}}
{{ join "," $terms }}
{{- end }}

{{/*
The rings, and the parts of rings with kinds or permissions of their own, as JSON: the assemblages of a hub, and the gates and
Notifiers of all rings that have rollouts.
*/}}
{{- define "spillway.parts" -}}
{{- $parts := list -}}
{{- range .Values.rings -}}
{{- $parts = append $parts . -}}
{{- if eq . "fleet" }}{{ $parts = append $parts "hub" }}{{ end -}}
{{- if ne . "assemblage" }}{{ $parts = concat $parts (list "gates" "notify") }}{{ end -}}
{{- end -}}
{{ uniq $parts | toJson }}
{{- end }}

{{/* The rings whose webhooks are served, as JSON. */}}
{{- define "spillway.served" -}}
{{- $served := list -}}
{{- range ternary .Values.rings list .Values.webhooks.enabled -}}
{{- if ($.Files.Get (printf "generated/%s/admission.yaml" .) | fromYaml).configurations }}{{ $served = append $served . }}{{ end -}}
{{- end -}}
{{ toJson $served }}
{{- end }}

{{/* The webhook configurations that the manager may change, as JSON: its own, and those that are named; none is all. */}}
{{- define "spillway.configurations" -}}
{{- $names := default list .Values.webhooks.configurations -}}
{{- range include "spillway.served" . | fromJsonArray -}}
{{- $names = append $names (printf "%s.%s.spillway.dev" $.Release.Namespace .) -}}
{{- end -}}
{{ ternary list ($names | uniq | sortAlpha) (has "*" $names) | toJson }}
{{- end }}

{{/* The ServiceAccounts as which plans may act, as JSON. */}}
{{- define "spillway.plan-accounts" -}}
{{- $names := default list .Values.planAccounts -}}
{{- with .Values.defaultServiceAccount }}{{ $names = append $names . }}{{ end -}}
{{ $names | uniq | sortAlpha | toJson }}
{{- end }}

{{/* True if the certificate of the webhooks is a Secret that another program fills. */}}
{{- define "spillway.mounts-certificate" -}}
{{- if has .Values.webhooks.certificateSource (list "cert-manager" "files") }}true{{ end -}}
{{- end }}

{{/* Where the dashboard is: in a namespace of its own, unless another is named, or it is from before and beside the manager. */}}
{{- define "spillway.dashboard.namespace" -}}
{{- if .Values.dashboard.namespace -}}
{{ .Values.dashboard.namespace }}
{{- else if lookup "apps/v1" "Deployment" .Release.Namespace (printf "%s-dashboard" (include "spillway.name" .)) -}}
{{ .Release.Namespace }}
{{- else -}}
{{ .Release.Namespace }}-dashboard
{{- end -}}
{{- end }}

{{/* True if metrics are served by HTTPS. With watchNamespaces the manager may not ask who a client is. */}}
{{- define "spillway.secure-metrics" -}}
{{- if and .Values.metrics.secure (not .Values.watchNamespaces) }}true{{ end -}}
{{- end }}

{{/*
A role of the manager and its binding: (list $ NAMESPACE NAME RULES). It is a ClusterRole if the namespace is empty.
*/}}
{{- define "spillway.role" -}}
{{- $root := index . 0 }}
{{- $namespace := index . 1 }}
{{- $name := index . 2 }}
{{- $kind := ternary "Role" "ClusterRole" (ne $namespace "") }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: {{ $name }}
  {{- with $namespace }}
  namespace: {{ . | quote }}
  {{- end }}
  labels:
    {{- include "spillway.labels" (list $root "manager") | nindent 4 }}
rules:
  {{- index . 3 | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: {{ $name }}
  {{- with $namespace }}
  namespace: {{ . | quote }}
  {{- end }}
  labels:
    {{- include "spillway.labels" (list $root "manager") | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ $name }}
subjects:
- kind: ServiceAccount
  name: {{ include "spillway.name" $root }}
  namespace: {{ $root.Release.Namespace | quote }}
{{- end }}

{{/* The labels that a user adds to Pods; those by which they are found stay. */}}
{{- define "spillway.pod-labels" -}}
{{- with omit (default dict .Values.podLabels) "app.kubernetes.io/component" "app.kubernetes.io/name" -}}
{{ toYaml . }}
{{- end -}}
{{- end }}

{{/* What the Pods of the manager and of the dashboard have in common. */}}
{{- define "spillway.pod" -}}
terminationGracePeriodSeconds: 30
securityContext:
  runAsNonRoot: true
  seccompProfile:
    type: RuntimeDefault
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What their containers have in common. */}}
{{- define "spillway.container" -}}
image: {{ include "spillway.image" . | quote }}
{{- with .Values.image.pullPolicy }}
imagePullPolicy: {{ . | quote }}
{{- end }}
livenessProbe:
  httpGet:
    path: /healthz
    port: probes
readinessProbe:
  httpGet:
    path: /readyz
    port: probes
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  runAsNonRoot: true
  capabilities:
    drop:
    - ALL
{{- end }}

{{- /* A policy or binding of a ring, for this installation: (list $ RING OBJECT). */}}
{{- define "spillway.policy" }}
{{- $root := index . 0 }}
{{- $object := index . 2 }}
{{- $spec := $object.spec }}
{{- with $spec.policyName }}
{{- $_ := set $spec "policyName" (printf "%s.%s" $root.Release.Namespace .) }}
{{- $match := default dict $spec.matchResources }}
{{- with include "spillway.within" (list $root $match.namespaceSelector) | fromJson }}{{ $_ := set $match "namespaceSelector" . }}{{ end }}
{{- with $match }}{{ $_ := set $spec "matchResources" . }}{{ end }}
{{- end }}
---
apiVersion: {{ $object.apiVersion }}
kind: {{ $object.kind }}
metadata:
  {{- include "spillway.declared" (list $root (index . 1) $object.metadata.name) | nindent 2 }}
spec:
  {{- toYaml $spec | nindent 2 }}
{{- end }}

{{- /* Not empty if annotations of Reloader are read. */}}
{{- define "spillway.reloader" -}}
{{- with .Values.reloader }}{{ if or .annotations .cronJobs .metrics }}true{{ end }}{{ end -}}
{{- end }}
