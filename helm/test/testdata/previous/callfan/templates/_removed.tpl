{{/*
Values that are no longer there, or that other charts have. Each is one sentence with what to use instead; UPGRADING.md has
a section for each that was removed. The schema lets them through, so that this message is the one that is seen.
*/}}
{{- define "callfan.removed" -}}
{{- $removed := list
  (dict "path" "replicaCount" "instead" "use dispatcher.replicas and executors.NAME.replicas")
  (dict "path" "image" "instead" "use dispatcher.image and executors.NAME.image")
  (dict "path" "autoscaling" "instead" "use executors.NAME.autoscaling and dispatcher.autoscaling")
  (dict "path" "nats.enabled" "instead" "the chart installs no NATS; install the official chart, see helm/examples, and set nats.url")
  (dict "path" "redis.architecture" "instead" "the chart installs no Redis; install one, see helm/examples, and set redis.url")
-}}
{{- range $removed -}}
{{- $at := $.Values -}}
{{- $found := true -}}
{{- range splitList "." .path -}}
{{- if and $found (kindIs "map" $at) (hasKey $at .) }}{{ $at = index $at . }}{{ else }}{{ $found = false }}{{ end -}}
{{- end -}}
{{- if $found -}}
{{- fail (printf "%s is not a value of this chart: %s (UPGRADING.md)" .path .instead) -}}
{{- end -}}
{{- end -}}
{{- end -}}
