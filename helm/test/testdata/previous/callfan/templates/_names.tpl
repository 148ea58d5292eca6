{{/* Names and labels. They are made here only, and never change: selectors are immutable. */}}

{{- define "callfan.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "callfan.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "callfan.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "callfan.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The name of a component's objects: at most 45 characters, so that every suffix fits into the 63 of a label. */}}
{{- define "callfan.componentName" -}}
{{- $name := printf "%s-%s" (include "callfan.fullname" .root) .component -}}
{{- if gt (len $name) 45 -}}
{{- $name = printf "%s-%s" ($name | trunc 36 | trimSuffix "-") ($name | sha256sum | trunc 8) -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{/* What selects the pods of a component. Golden in the tests. */}}
{{- define "callfan.selectorLabels" -}}
app.kubernetes.io/name: {{ include "callfan.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* The labels of an object; nobody's extra labels can change what selects. */}}
{{- define "callfan.labels" -}}
{{- $labels := include "callfan.selectorLabels" . | fromYaml -}}
{{- $_ := set $labels "app.kubernetes.io/part-of" "callfan" -}}
{{- $_ := set $labels "app.kubernetes.io/managed-by" .root.Release.Service -}}
{{- $_ := set $labels "app.kubernetes.io/version" .root.Chart.AppVersion -}}
{{- $_ := set $labels "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-") -}}
{{- toYaml (merge $labels (.extraLabels | default dict) .root.Values.commonLabels) -}}
{{- end -}}

{{/* Labels of a pod: no version of the chart, so that an upgrade restarts only what changed. */}}
{{- define "callfan.podLabels" -}}
{{- $labels := include "callfan.selectorLabels" . | fromYaml -}}
{{- $_ := set $labels "app.kubernetes.io/part-of" "callfan" -}}
{{- toYaml (merge $labels .c.podLabels .root.Values.commonLabels) -}}
{{- end -}}

{{/* The metadata of an object; annotations and extraLabels may be given. */}}
{{- define "callfan.metadata" -}}
name: {{ .name }}{{ .suffix }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "callfan.labels" . | nindent 2 }}
{{- $annotations := merge (dict) (.annotations | default dict) .root.Values.commonAnnotations }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Registry, repository, and digest or tag. */}}
{{- define "callfan.image" -}}
{{- $image := .c.image -}}
{{- $registry := ((.root.Values.global).imageRegistry) | default $image.registry -}}
{{- $repository := $image.repository -}}
{{- if $registry }}{{ $repository = printf "%s/%s" $registry $repository }}{{ end -}}
{{- if and $image.tag $image.digest -}}
{{- printf "%s:%s@%s" $repository $image.tag $image.digest -}}
{{- else if $image.digest -}}
{{- printf "%s@%s" $repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository ($image.tag | default .root.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}
