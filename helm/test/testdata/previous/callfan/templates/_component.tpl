{{/*
All objects of a component, for the dispatcher and for every executor alike: no component can lack a setting that
another has.
*/}}

{{- define "callfan.component" -}}
{{- include "callfan.check" . -}}
{{- $objects := list
  (include "callfan.serviceAccount" .)
  (include "callfan.configMap" .)
  (include "callfan.deployment" .)
  (include "callfan.service" .)
  (include "callfan.pdb" .)
  (include "callfan.hpa" .)
  (include "callfan.scaledObject" .)
  (include "callfan.podMonitor" .)
  (include "callfan.serviceMonitor" .)
  (include "callfan.registration" .)
-}}
{{- range $objects }}
{{- if trim . }}
---
{{ trim . }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "callfan.serviceAccount" -}}
{{- if .c.serviceAccount.create }}
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- $own := dict "name" (include "callfan.serviceAccountName" .) "annotations" .c.serviceAccount.annotations }}
  {{- include "callfan.metadata" (merge $own .) | nindent 2 }}
automountServiceAccountToken: {{ .c.serviceAccount.automountToken }}
{{- end }}
{{- end -}}

{{- define "callfan.configMap" -}}
{{- if include "callfan.hasConfig" . }}
apiVersion: v1
kind: ConfigMap
metadata:
  {{- include "callfan.metadata" . | nindent 2 }}
data:
  {{- include "callfan.configData" . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "callfan.configData" -}}
{{- if eq .kind "dispatcher" -}}
dispatcher.yaml: |
  {{- toYaml .c.config | nindent 2 }}
{{- with .c.policies }}
policies.yaml: |
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- else if .c.functionsFile -}}
functions.yaml: |
  {{- .c.functionsFile | nindent 2 }}
{{- else -}}
functions.yaml: |
  pool: {{ .pool | quote }}
  version: {{ .c.functions | toJson | sha256sum | trunc 12 | quote }}
  functions:
    {{- toYaml .c.functions | nindent 4 }}
{{- end -}}
{{- end -}}

{{- define "callfan.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "callfan.metadata" (merge (dict "annotations" .c.annotations) .) | nindent 2 }}
spec:
  {{- if eq .c.autoscaling.type "none" }}
  replicas: {{ int .c.replicas }}
  {{- end }}
  revisionHistoryLimit: {{ int .c.revisionHistoryLimit }}
  progressDeadlineSeconds: {{ int .c.progressDeadlineSeconds }}
  minReadySeconds: {{ int .c.minReadySeconds }}
  strategy:
    {{- toYaml .c.strategy | nindent 4 }}
  selector:
    matchLabels:
      {{- include "callfan.selectorLabels" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "callfan.podLabels" . | nindent 8 }}
      annotations:
        {{- include "callfan.podAnnotations" . | nindent 8 }}
    spec:
      {{- include "callfan.podSpec" . | nindent 6 }}
{{- end -}}

{{/* A hash of the rendered configuration, so that a change restarts the pods. What is in Secrets is not known here. */}}
{{- define "callfan.podAnnotations" -}}
{{- $own := dict "kubectl.kubernetes.io/default-container" .kind -}}
{{- if include "callfan.hasConfig" . }}{{ $_ := set $own "checksum/config" (include "callfan.configData" . | sha256sum) }}{{ end -}}
{{- with .root.Values.secretsRevision }}{{ $_ := set $own "callfan/secrets-revision" . }}{{ end -}}
{{- toYaml (merge (dict) .c.podAnnotations $own) -}}
{{- end -}}

{{/* The dispatcher's service leads to the admin API. Others have one only for a ServiceMonitor. */}}
{{- define "callfan.service" -}}
{{- $own := eq .kind "dispatcher" }}
{{- if and .health (or $own .root.Values.monitoring.serviceMonitor.enabled) }}
apiVersion: v1
kind: Service
metadata:
  {{- include "callfan.metadata" (merge (dict "annotations" (ternary (.c.service).annotations (dict) $own)) .) | nindent 2 }}
spec:
  {{- if $own }}
  type: {{ .c.service.type }}
  {{- else }}
  clusterIP: None
  {{- end }}
  selector:
    {{- include "callfan.selectorLabels" . | nindent 4 }}
  ports:
    - name: http
      port: {{ ternary (int ((.c.service).port)) (int .c.health.port) $own }}
      targetPort: http
      protocol: TCP
{{- end }}
{{- end -}}

{{- define "callfan.pdb" -}}
{{- if .c.pdb.enabled }}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "callfan.metadata" . | nindent 2 }}
spec:
  {{- if ne (toString .c.pdb.minAvailable) "" }}
  minAvailable: {{ include "callfan.intOrString" .c.pdb.minAvailable }}
  {{- else }}
  maxUnavailable: {{ include "callfan.intOrString" .c.pdb.maxUnavailable }}
  {{- end }}
  unhealthyPodEvictionPolicy: {{ .c.pdb.unhealthyPodEvictionPolicy }}
  selector:
    matchLabels:
      {{- include "callfan.selectorLabels" . | nindent 6 }}
{{- end }}
{{- end -}}

{{- define "callfan.intOrString" -}}
{{- if kindIs "string" . }}{{ . | quote }}{{ else }}{{ int . }}{{ end -}}
{{- end -}}
