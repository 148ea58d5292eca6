{{/*
The pod of a component, or of one of its jobs. Every pod of the chart comes from here, those of tests included, so that
none can lack a security setting.

The context of all templates whose names do not begin with a capital is a component:
root       the chart's own context
kind       dispatcher or executor
key        the name in executors, or dispatcher
component  the label: dispatcher, executor-NAME
name       the name of its objects
c          its values, defaults included
nats       how it reaches NATS: nats and its own overrides
generic    an executor whose functions the chart gives to callfan's own program
health     it serves /healthz, /readyz and /metrics
job        true in jobs, which have no probes and end by themselves
*/}}

{{- define "callfan.podSpec" -}}
{{- $spec := include "callfan.podSpecText" . | fromYaml -}}
{{- toYaml (mergeOverwrite $spec (deepCopy .c.extraPodSpec)) -}}
{{- end -}}

{{- define "callfan.podSpecText" -}}
{{- $root := .root -}}
{{- $c := .c -}}
serviceAccountName: {{ include "callfan.serviceAccountName" . }}
automountServiceAccountToken: {{ $c.serviceAccount.automountToken }}
enableServiceLinks: false
{{- $pull := concat (((($root.Values.global).imagePullSecrets)) | default list) $root.Values.imagePullSecrets }}
{{- with $pull }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml $c.podSecurityContext | nindent 2 }}
{{- if .job }}
restartPolicy: {{ .restartPolicy | default "OnFailure" }}
{{- else }}
terminationGracePeriodSeconds: {{ int $c.terminationGracePeriodSeconds }}
{{- end }}
{{- with $c.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $c.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- with $c.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $c.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if not .job }}
{{- with $c.affinity }}
affinity:
  {{- tpl (toYaml .) $root | nindent 2 }}
{{- end }}
{{- with include "callfan.topologySpread" . }}
topologySpreadConstraints:
  {{- . | nindent 2 }}
{{- end }}
{{- with $c.initContainers }}
initContainers:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
containers:
  - name: {{ .kind }}
    image: {{ include "callfan.image" . | quote }}
    imagePullPolicy: {{ $c.image.pullPolicy }}
    securityContext:
      {{- toYaml $c.securityContext | nindent 6 }}
    {{- with .command | default $c.command }}
    command:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with .args | default (concat (include "callfan.args" . | fromJsonArray) $c.args) }}
    args:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    env:
      {{- include "callfan.env" . | fromJsonArray | toYaml | nindent 6 }}
    {{- with $c.envFrom }}
    envFrom:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with $c.resources }}
    resources:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- if not .job }}
    {{- if .health }}
    ports:
      - name: http
        containerPort: {{ int $c.health.port }}
        protocol: TCP
    {{- include "callfan.probes" . | nindent 4 }}
    {{- end }}
    {{- if gt (int $c.preStopSleepSeconds) 0 }}
    lifecycle:
      preStop:
        sleep:
          seconds: {{ int $c.preStopSleepSeconds }}
    {{- end }}
    {{- end }}
    volumeMounts:
      {{- include "callfan.volumeMounts" . | nindent 6 }}
  {{- if not .job }}
  {{- with $c.extraContainers }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- end }}
volumes:
  {{- include "callfan.volumes" . | nindent 2 }}
{{- end -}}

{{- define "callfan.args" -}}
{{- if .generic -}}
["/etc/callfan/config/functions.yaml"]
{{- else -}}
[]
{{- end -}}
{{- end -}}

{{/*
Startup and liveness ask whether the process answers at all, and nothing that a restart would not mend: a lost NATS or
Redis is waited for. Readiness asks whether it can serve: NATS and the results store answer, the functions are registered.
*/}}
{{- define "callfan.probes" -}}
{{- $c := .c -}}
startupProbe:
  httpGet: {path: {{ $c.health.livePath }}, port: http}
  {{- toYaml $c.probes.startup | nindent 2 }}
livenessProbe:
  httpGet: {path: {{ $c.health.livePath }}, port: http}
  {{- toYaml $c.probes.liveness | nindent 2 }}
readinessProbe:
  httpGet: {path: {{ $c.health.readyPath }}, port: http}
  {{- toYaml $c.probes.readiness | nindent 2 }}
{{- end -}}

{{- define "callfan.hasConfig" -}}
{{- if and (or (eq .kind "dispatcher") .generic) (not .check) }}true{{ end -}}
{{- end -}}

{{- define "callfan.volumeMounts" -}}
{{- if include "callfan.hasConfig" . }}
- {name: config, mountPath: /etc/callfan/config, readOnly: true}
{{- end }}
{{- if include "callfan.secretFiles" . | fromJsonArray }}
- {name: secrets, mountPath: /etc/callfan/secrets, readOnly: true}
{{- end }}
- {name: tmp, mountPath: /tmp}
{{- with .c.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "callfan.volumes" -}}
{{- if include "callfan.hasConfig" . }}
- name: config
  configMap:
    name: {{ .name }}
{{- end }}
{{- with include "callfan.secretsVolume" . }}
{{ . }}
{{- end }}
- name: tmp
  emptyDir:
    sizeLimit: {{ .c.tmpSizeLimit }}
{{- with .c.extraVolumes }}
{{ tpl (toYaml .) $.root }}
{{- end }}
{{- end -}}

{{/* Constraints without a selector get the component's own. Without any, pods are spread over zones and nodes as far as possible. */}}
{{- define "callfan.topologySpread" -}}
{{- $selector := dict "matchLabels" (include "callfan.selectorLabels" . | fromYaml) -}}
{{- $all := list -}}
{{- range .c.topologySpreadConstraints -}}
{{- $all = append $all (merge (dict) . (dict "labelSelector" $selector)) -}}
{{- end -}}
{{- if and (not $all) .c.defaultTopologySpread -}}
{{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" -}}
{{- $all = append $all (dict "maxSkew" 1 "topologyKey" . "whenUnsatisfiable" "ScheduleAnyway" "labelSelector" $selector "matchLabelKeys" (list "pod-template-hash")) -}}
{{- end -}}
{{- end -}}
{{- with $all }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{- define "callfan.serviceAccountName" -}}
{{- if .c.serviceAccount.create -}}
{{- .c.serviceAccount.name | default .name -}}
{{- else -}}
{{- .c.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}
