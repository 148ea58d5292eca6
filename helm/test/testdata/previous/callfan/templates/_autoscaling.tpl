{{- define "callfan.hpa" -}}
{{- $scaling := .c.autoscaling }}
{{- if eq $scaling.type "hpa" }}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  {{- include "callfan.metadata" . | nindent 2 }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {{ .name }}
  minReplicas: {{ int $scaling.minReplicas }}
  maxReplicas: {{ int $scaling.maxReplicas }}
  metrics:
    {{- if gt (int $scaling.hpa.cpuUtilization) 0 }}
    - type: Resource
      resource:
        name: cpu
        target:
          type: Utilization
          averageUtilization: {{ int $scaling.hpa.cpuUtilization }}
    {{- end }}
    {{- with $scaling.hpa.metrics }}
    {{- tpl (toYaml .) $.root | nindent 4 }}
    {{- end }}
  behavior:
    {{- include "callfan.scalingBehavior" . | nindent 4 }}
{{- end }}
{{- end -}}

{{- define "callfan.scalingBehavior" -}}
{{- $default := dict "scaleDown" (dict "stabilizationWindowSeconds" (int .c.autoscaling.scaleDownStabilizationSeconds)) -}}
{{- toYaml (mergeOverwrite $default (deepCopy .c.autoscaling.behavior)) -}}
{{- end -}}

{{/* One trigger: the number of calls of the pool that wait or run. All functions of an executor share the pool's durable. */}}
{{- define "callfan.scaledObject" -}}
{{- $scaling := .c.autoscaling }}
{{- $keda := $scaling.keda }}
{{- if eq $scaling.type "keda" }}
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  {{- include "callfan.metadata" (merge (dict "annotations" $keda.annotations) .) | nindent 2 }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: {{ .name }}
  pollingInterval: {{ int $keda.pollingInterval }}
  cooldownPeriod: {{ int $keda.cooldownPeriod }}
  initialCooldownPeriod: {{ int $keda.initialCooldownPeriod }}
  minReplicaCount: {{ int $scaling.minReplicas }}
  maxReplicaCount: {{ int $scaling.maxReplicas }}
  fallback:
    {{- toYaml $keda.fallback | nindent 4 }}
  advanced:
    horizontalPodAutoscalerConfig:
      behavior:
        {{- include "callfan.scalingBehavior" . | nindent 8 }}
  triggers:
    - type: nats-jetstream
      metricType: AverageValue
      metadata:
        natsServerMonitoringEndpoint: {{ tpl .nats.monitoring.endpoint .root | quote }}
        account: {{ .nats.monitoring.account | quote }}
        useHttps: {{ .nats.monitoring.https | quote }}
        stream: {{ printf "%s_CALLS" (upper .root.Values.installation.prefix) | quote }}
        consumer: {{ printf "pool_%s" .pool | quote }}
        lagThreshold: {{ int64 ($keda.lagThreshold | default .c.concurrency) | quote }}
        activationLagThreshold: {{ int64 $keda.activationLagThreshold | quote }}
    {{- with $keda.extraTriggers }}
    {{- tpl (toYaml .) $.root | nindent 4 }}
    {{- end }}
{{- end }}
{{- end -}}
