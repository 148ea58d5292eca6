{{/*
Every reference to a Secret is made here. The chart makes no Secret and takes no secret as a value: each one is the name
of a Secret that exists and a key in it. They are mounted as files below /etc/callfan/secrets; only addresses with a
password in them have to be variables.
*/}}

{{/* One secret as JSON: a file and the variable that names it. Nothing without existingSecret. */}}
{{- define "callfan.secretFile" -}}
{{- if .secret.existingSecret -}}
{{- dict "name" .secret.existingSecret "key" (index .secret (.keyField | default "key")) "path" .path "env" .env | toJson }},
{{- end -}}
{{- end -}}

{{/* The secrets of a component as a JSON list. */}}
{{- define "callfan.secretFiles" -}}
{{- $all := "" -}}
{{- $nats := .nats -}}
{{- $all = print $all (include "callfan.secretFile" (dict "secret" $nats.creds "path" "nats.creds" "env" "NATS_CREDS")) -}}
{{- $all = print $all (include "callfan.secretFile" (dict "secret" $nats.nkey "path" "nats.nkey" "env" "NATS_NKEY")) -}}
{{- $all = print $all (include "callfan.secretFile" (dict "secret" $nats.password "path" "nats-password" "env" "NATS_PASSWORD_FILE")) -}}
{{- $all = print $all (include "callfan.secretFile" (dict "secret" $nats.token "path" "nats-token" "env" "NATS_TOKEN_FILE")) -}}
{{- $all = print $all (include "callfan.secretFile" (dict "secret" $nats.tls.ca "path" "nats-ca.crt" "env" "NATS_CA")) -}}
{{- $all = print $all (include "callfan.secretFile" (dict "secret" $nats.tls.client "keyField" "certKey" "path" "nats-tls.crt" "env" "NATS_CERT")) -}}
{{- $all = print $all (include "callfan.secretFile" (dict "secret" $nats.tls.client "keyField" "keyKey" "path" "nats-tls.key" "env" "NATS_KEY")) -}}
{{- if eq .kind "dispatcher" -}}
{{- $values := .root.Values -}}
{{- $all = print $all (include "callfan.secretFile" (dict "secret" $values.openai.apiKey "path" "openai-api-key" "env" "OPENAI_API_KEY_FILE")) -}}
{{- $all = print $all (include "callfan.secretFile" (dict "secret" .c.adminToken "path" "admin-token" "env" "CALLFAN_ADMIN_TOKEN_FILE")) -}}
{{- if and $values.redis.enabled (not .check) -}}
{{- $redis := $values.redis -}}
{{- $all = print $all (include "callfan.secretFile" (dict "secret" $redis.password "path" "redis-password" "env" "REDIS_PASSWORD_FILE")) -}}
{{- $all = print $all (include "callfan.secretFile" (dict "secret" $redis.tls.ca "path" "redis-ca.crt" "env" "CALLFAN_REDIS_CA")) -}}
{{- $all = print $all (include "callfan.secretFile" (dict "secret" $redis.tls.client "keyField" "certKey" "path" "redis-tls.crt" "env" "CALLFAN_REDIS_CERT")) -}}
{{- $all = print $all (include "callfan.secretFile" (dict "secret" $redis.tls.client "keyField" "keyKey" "path" "redis-tls.key" "env" "CALLFAN_REDIS_KEY")) -}}
{{- end -}}
{{- end -}}
[{{ trimSuffix "," $all }}]
{{- end -}}

{{/* A variable from a Secret or, without one, from a value; as JSON with a comma behind it. */}}
{{- define "callfan.addressEnv" -}}
{{- if .secret.existingSecret -}}
{{- dict "name" .env "valueFrom" (dict "secretKeyRef" (dict "name" .secret.existingSecret "key" .secret.key)) | toJson }},
{{- else if .value -}}
{{- dict "name" .env "value" (tpl .value .root) | toJson }},
{{- end -}}
{{- end -}}

{{/* All secrets of a component in one volume. */}}
{{- define "callfan.secretsVolume" -}}
{{- with include "callfan.secretFiles" . | fromJsonArray -}}
- name: secrets
  projected:
    defaultMode: 288 # 0440: readable by the pod's group
    sources:
      {{- range . }}
      - secret:
          name: {{ .name }}
          items:
            - {key: {{ .key | quote }}, path: {{ .path | quote }}}
      {{- end }}
{{- end -}}
{{- end -}}
