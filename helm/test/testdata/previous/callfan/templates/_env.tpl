{{/* The variables of a component. All of them are those of docs/configuration.md, which the SDKs read too. */}}

{{- define "callfan.plainEnv" -}}
{{- if ne (toString .value) "" -}}
{{- dict "name" .name "value" (toString .value) | toJson }},
{{- end -}}
{{- end -}}

{{/* As a JSON list. */}}
{{- define "callfan.env" -}}
{{- $root := .root -}}
{{- $installation := $root.Values.installation -}}
{{- $all := "" -}}
{{- $all = print $all (dict "name" "CALLFAN_NAME" "valueFrom" (dict "fieldRef" (dict "fieldPath" "metadata.name")) | toJson) "," -}}
{{- $all = print $all (include "callfan.addressEnv" (dict "root" $root "env" "NATS_URL" "secret" .nats.urlSecret "value" .nats.url)) -}}
{{- $plain := list
  (list "NATS_USER" .nats.user)
  (list "CALLFAN_NATS_INBOX_PREFIX" .nats.inboxPrefix)
  (list "CALLFAN_NATS_API_PREFIX" .nats.apiPrefix)
  (list "CALLFAN_PREFIX" $installation.prefix)
  (list "CALLFAN_LOG_FORMAT" .c.logFormat)
  (list "CALLFAN_LOG_LEVEL" .c.logLevel)
-}}
{{- if not .job -}}
{{- $plain = append $plain (list "CALLFAN_STOP_TIMEOUT" (include "callfan.stopTimeout" .)) -}}
{{- end -}}
{{- range $plain -}}
{{- $all = print $all (include "callfan.plainEnv" (dict "name" (first .) "value" (last .))) -}}
{{- end -}}
{{- range include "callfan.secretFiles" . | fromJsonArray -}}
{{- $all = print $all (dict "name" .env "value" (printf "/etc/callfan/secrets/%s" .path) | toJson) "," -}}
{{- end -}}
{{- $all = print $all (include (printf "callfan.%s.env" .kind) .) -}}
{{- $given := dict -}}
{{- range .c.env }}{{ $_ := set $given .name true }}{{ end -}}
{{- $kept := list -}}
{{- range printf "[%s]" (trimSuffix "," $all) | fromJsonArray -}}
{{- if not (hasKey $given .name) }}{{ $kept = append $kept . }}{{ end -}}
{{- end -}}
{{- concat $kept .c.env | toJson -}}
{{- end -}}

{{/*
How long the process may go on after SIGTERM: what the pod is given, less the preStop sleep, less what the process needs
after that time to report, to close and to exit. A dispatcher spends its stop timeout up to three times.
*/}}
{{- define "callfan.stopTimeout" -}}
{{- $budget := sub (int .c.terminationGracePeriodSeconds) (int .c.preStopSleepSeconds) -}}
{{- if eq .kind "dispatcher" -}}
{{- $seconds := div (sub $budget 12) 3 -}}
{{- if lt (int $seconds) 1 -}}
{{- fail (printf "dispatcher.terminationGracePeriodSeconds is %d: set at least 15 plus preStopSleepSeconds, so that it can stop in order" (int .c.terminationGracePeriodSeconds)) -}}
{{- end -}}
{{- printf "%ds" (int $seconds) -}}
{{- else -}}
{{- $seconds := sub $budget 10 -}}
{{- if lt (int $seconds) 1 -}}
{{- fail (printf "executors.%s.terminationGracePeriodSeconds is %d: set more than the longest handler takes, and at least 11 plus preStopSleepSeconds" .key (int .c.terminationGracePeriodSeconds)) -}}
{{- end -}}
{{- printf "%ds" (int $seconds) -}}
{{- end -}}
{{- end -}}

{{- define "callfan.dispatcher.env" -}}
{{- $values := .root.Values -}}
{{- $plain := list
  (list "OPENAI_BASE_URL" (tpl $values.openai.baseURL .root))
  (list "OPENAI_ORG_ID" $values.openai.organization)
  (list "OPENAI_PROJECT_ID" $values.openai.project)
-}}
{{- if not .check -}}
{{- $plain = concat $plain (list
  (list "CALLFAN_CONFIG" "/etc/callfan/config/dispatcher.yaml")
  (list "CALLFAN_POLICIES" (ternary "/etc/callfan/config/policies.yaml" "" (not (empty .c.policies))))
  (list "CALLFAN_LISTEN" (printf ":%d" (int .c.health.port)))
  (list "CALLFAN_PARTITIONS" (int64 $values.installation.partitions))
  (list "CALLFAN_REPLICAS" (int64 $values.installation.streamReplicas))
  (list "CALLFAN_MAX_ACK_PENDING" (int64 $values.installation.maxAckPending))
) -}}
{{- if $values.redis.enabled -}}
{{- include "callfan.addressEnv" (dict "root" .root "env" "REDIS_URL" "secret" $values.redis.urlSecret "value" $values.redis.url) -}}
{{- $plain = concat $plain (list
  (list "CALLFAN_REDIS_MODE" $values.redis.mode)
  (list "CALLFAN_REDIS_PREFIX" $values.redis.prefix)
  (list "REDIS_USERNAME" $values.redis.user)
) -}}
{{- end -}}
{{- end -}}
{{- range $plain -}}
{{- include "callfan.plainEnv" (dict "name" (first .) "value" (last .)) -}}
{{- end -}}
{{- end -}}

{{- define "callfan.executor.env" -}}
{{- if not .job -}}
{{- include "callfan.plainEnv" (dict "name" "CALLFAN_CONCURRENCY" "value" (int64 .c.concurrency)) -}}
{{- if .health -}}
{{- include "callfan.plainEnv" (dict "name" "CALLFAN_METRICS_LISTEN" "value" (printf ":%d" (int .c.health.port))) -}}
{{- end -}}
{{- end -}}
{{- end -}}
