{{- define "callfan.podMonitor" -}}
{{- $monitor := .root.Values.monitoring.podMonitor }}
{{- if and .health $monitor.enabled }}
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata:
  {{- include "callfan.metadata" (merge (dict "extraLabels" $monitor.labels) .) | nindent 2 }}
spec:
  selector:
    matchLabels:
      {{- include "callfan.selectorLabels" . | nindent 6 }}
  podMetricsEndpoints:
    - port: http
      {{- include "callfan.endpoint" $monitor | nindent 6 }}
{{- end }}
{{- end -}}

{{- define "callfan.serviceMonitor" -}}
{{- $monitor := .root.Values.monitoring.serviceMonitor }}
{{- if and .health $monitor.enabled }}
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  {{- include "callfan.metadata" (merge (dict "extraLabels" $monitor.labels) .) | nindent 2 }}
spec:
  selector:
    matchLabels:
      {{- include "callfan.selectorLabels" . | nindent 6 }}
  endpoints:
    - port: http
      {{- include "callfan.endpoint" $monitor | nindent 6 }}
{{- end }}
{{- end -}}

{{- define "callfan.endpoint" -}}
path: /metrics
interval: {{ .interval }}
scrapeTimeout: {{ .scrapeTimeout }}
{{- with .relabelings }}
relabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .metricRelabelings }}
metricRelabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
