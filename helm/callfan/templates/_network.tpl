{{/*
Executors reach NATS and are reached by nobody but who collects metrics; the dispatcher reaches NATS, Redis and the API,
and is reached at its one port. The policy holds for the jobs of a component too.
*/}}
{{- define "callfan.networkPolicy" -}}
{{- $policy := .c.networkPolicy }}
{{- if $policy.enabled }}
{{- $dispatcher := eq .kind "dispatcher" }}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "callfan.metadata" . | nindent 2 }}
spec:
  podSelector:
    matchLabels:
      app.kubernetes.io/name: {{ include "callfan.name" .root }}
      app.kubernetes.io/instance: {{ .root.Release.Name }}
    matchExpressions:
      - key: app.kubernetes.io/component
        operator: In
        values: [{{ .component }}, {{ ternary "check" (printf "%s-register" .component) $dispatcher }}]
  policyTypes: [Ingress, Egress]
  {{- with include "callfan.ingress" . }}
  ingress:
    {{- . | nindent 4 }}
  {{- else }}
  ingress: []
  {{- end }}
  egress:
    {{- include "callfan.egress" (dict "to" $policy.dns.to "ports" $policy.dns.ports "protocols" (list "UDP" "TCP")) | nindent 4 }}
    {{- include "callfan.egress" (dict "to" $policy.nats.to "ports" $policy.nats.ports) | nindent 4 }}
    {{- if $dispatcher }}
    {{- if .root.Values.redis.enabled }}
    {{- include "callfan.egress" (dict "to" $policy.redis.to "ports" $policy.redis.ports) | nindent 4 }}
    {{- end }}
    {{- include "callfan.egress" (dict "to" $policy.openai.to "ports" $policy.openai.ports) | nindent 4 }}
    {{- /* The test asks the dispatcher. */}}
    - to:
        - podSelector:
            matchLabels:
              {{- include "callfan.selectorLabels" . | nindent 14 }}
      ports:
        - {port: http, protocol: TCP}
    {{- end }}
    {{- with $policy.extraEgress }}
    {{- tpl (toYaml .) $.root | nindent 4 }}
    {{- end }}
{{- end }}
{{- end -}}

{{- define "callfan.ingress" -}}
{{- $policy := .c.networkPolicy -}}
{{- $rules := list -}}
{{- $ports := list (dict "port" "http" "protocol" "TCP") -}}
{{- if eq .kind "dispatcher" -}}
{{- $rules = append $rules (dict "from" ($policy.adminFrom | default (list (dict "podSelector" dict))) "ports" $ports) -}}
{{- end -}}
{{- if (.c.webhook).enabled -}}
{{- $webhook := dict "ports" (list (dict "port" "webhook" "protocol" "TCP")) -}}
{{- with $policy.webhookFrom }}{{ $_ := set $webhook "from" . }}{{ end -}}
{{- $rules = append $rules $webhook -}}
{{- end -}}
{{- if and .health (or $policy.metricsFrom .root.Values.monitoring.podMonitor.enabled .root.Values.monitoring.serviceMonitor.enabled) -}}
{{- $rules = append $rules (dict "from" ($policy.metricsFrom | default (list (dict "namespaceSelector" dict))) "ports" $ports) -}}
{{- end -}}
{{- with concat $rules $policy.extraIngress }}{{ tpl (toYaml .) $.root }}{{ end -}}
{{- end -}}

{{/* Without peers, any address. */}}
{{- define "callfan.egress" -}}
- ports:
    {{- $protocols := .protocols | default (list "TCP") }}
    {{- range $port := .ports }}
    {{- range $protocols }}
    - {port: {{ int $port }}, protocol: {{ . }}}
    {{- end }}
    {{- end }}
  {{- with .to }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
