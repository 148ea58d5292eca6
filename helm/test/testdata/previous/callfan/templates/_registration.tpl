{{/*
A pool's durable is made when its functions are registered for the first time. An executor that starts at zero replicas
registers nothing, so a job does it, once for each version of the functions and of the image: jobs cannot be changed,
therefore the name holds a hash.
*/}}
{{- define "callfan.registration" -}}
{{- $c := .c -}}
{{- if eq .kind "executor" -}}
{{- $enabled := toString $c.registration.enabled -}}
{{- if or (eq $enabled "true") (and (eq $enabled "auto") (include "callfan.fromZero" .)) -}}
{{- $args := $c.registration.args -}}
{{- if .generic -}}
{{- $args = concat (list "--register") (include "callfan.args" . | fromJsonArray) $c.args -}}
{{- else if not (or $args $c.registration.command) -}}
{{- fail (printf "executors.%s starts at zero replicas and is a program of its own, so nobody registers its functions before the first call: give registration.command or registration.args of a run that registers them and exits, or set registration.enabled to false and let one replica run at each release" .key) -}}
{{- end -}}
{{- $job := dict "job" true "health" false "command" $c.registration.command "args" $args "component" (printf "%s-register" .component) -}}
{{- include "callfan.derive" (dict "from" . "to" $job) -}}
{{- $what := list (include "callfan.podSpec" $job) (ternary (include "callfan.configData" .) "" .generic) -}}
{{- $_ := set $job "suffix" (printf "-register-%s" ($what | toJson | sha256sum | trunc 8)) -}}
apiVersion: batch/v1
kind: Job
metadata:
  {{- include "callfan.metadata" $job | nindent 2 }}
spec:
  backoffLimit: {{ int $c.registration.backoffLimit }}
  activeDeadlineSeconds: {{ int $c.registration.activeDeadlineSeconds }}
  template:
    metadata:
      labels:
        {{- include "callfan.podLabels" $job | nindent 8 }}
      {{- with $c.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      {{- include "callfan.podSpec" $job | nindent 6 }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "callfan.fromZero" -}}
{{- $scaling := .c.autoscaling -}}
{{- if or (and (eq $scaling.type "keda") (eq (int $scaling.minReplicas) 0)) (and (eq $scaling.type "none") (eq (int .c.replicas) 0)) }}true{{ end -}}
{{- end -}}
