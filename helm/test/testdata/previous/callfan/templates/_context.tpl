{{/* A context like another one, with what .to already has in place of it. merge would take false and empty for missing. */}}
{{- define "callfan.derive" -}}
{{- $to := .to -}}
{{- range $key, $value := .from -}}
{{- if not (hasKey $to $key) }}{{ $_ := set $to $key $value }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* These two fill a dict with what the templates of a component need, see _pod.tpl. They print nothing. */}}

{{- define "callfan.setDispatcher" -}}
{{- $root := .root -}}
{{- $c := mergeOverwrite (deepCopy $root.Values.defaults) (deepCopy $root.Values.dispatcher) -}}
{{- $_ := set . "kind" "dispatcher" -}}
{{- $_ := set . "key" "dispatcher" -}}
{{- $_ := set . "generic" false -}}
{{- $_ := set . "health" true -}}
{{- $_ := set . "pool" "" -}}
{{- include "callfan.setCommon" (dict "context" . "c" $c "component" "dispatcher") -}}
{{- end -}}

{{- define "callfan.setExecutor" -}}
{{- $root := .root -}}
{{- $c := mergeOverwrite (deepCopy $root.Values.defaults) (deepCopy $root.Values.executorDefaults) (deepCopy (index $root.Values.executors .key)) -}}
{{- $file := $c.functionsFile | default "{}" | fromYaml -}}
{{- $_ := set . "kind" "executor" -}}
{{- $_ := set . "generic" (or (not (empty $c.functions)) (not (empty $c.functionsFile))) -}}
{{- $_ := set . "health" (ternary .generic (eq (toString $c.health.enabled) "true") (eq (toString $c.health.enabled) "auto")) -}}
{{- $_ := set . "filePool" ($file.pool | default "") -}}
{{- $_ := set . "pool" ($c.pool | default $file.pool | default .key) -}}
{{- include "callfan.setCommon" (dict "context" . "c" $c "component" (printf "executor-%s" .key)) -}}
{{- end -}}

{{- define "callfan.setCommon" -}}
{{- $_ := set .context "c" .c -}}
{{- $_ := set .context "component" .component -}}
{{- $_ := set .context "nats" (mergeOverwrite (deepCopy .context.root.Values.nats) (deepCopy .c.nats)) -}}
{{- $_ := set .context "suffix" "" -}}
{{- $_ := set .context "name" (include "callfan.componentName" .context) -}}
{{- end -}}
