{{/* What the schema cannot see. Each message names the value and what to do. */}}

{{- define "callfan.check" -}}
{{- $values := .root.Values -}}
{{- $where := ternary "dispatcher" (printf "executors.%s" .key) (eq .kind "dispatcher") -}}
{{- if not (or .nats.url .nats.urlSecret.existingSecret) -}}
{{- fail "nats.url is empty: give the address of NATS, such as nats://nats.nats.svc:4222, or nats.urlSecret; the chart installs no NATS, see helm/examples" -}}
{{- end -}}
{{- if contains "@" .nats.url -}}
{{- fail "nats.url holds a user or a password: put the address into a Secret and name it in nats.urlSecret.existingSecret" -}}
{{- end -}}
{{- $identities := list -}}
{{- if .nats.creds.existingSecret }}{{ $identities = append $identities "creds" }}{{ end -}}
{{- if .nats.nkey.existingSecret }}{{ $identities = append $identities "nkey" }}{{ end -}}
{{- if .nats.token.existingSecret }}{{ $identities = append $identities "token" }}{{ end -}}
{{- if or .nats.user .nats.password.existingSecret }}{{ $identities = append $identities "user and password" }}{{ end -}}
{{- if gt (len $identities) 1 -}}
{{- fail (printf "%s has more than one identity at NATS (%s): keep one, and empty the others' existingSecret" $where (join ", " $identities)) -}}
{{- end -}}
{{- if and .nats.password.existingSecret (not .nats.user) -}}
{{- fail "nats.password needs nats.user" -}}
{{- end -}}
{{- $scaling := .c.autoscaling -}}
{{- if and (ne $scaling.type "none") (gt (int $scaling.minReplicas) (int $scaling.maxReplicas)) -}}
{{- fail (printf "%s.autoscaling.minReplicas is %d and maxReplicas %d: raise maxReplicas" $where (int $scaling.minReplicas) (int $scaling.maxReplicas)) -}}
{{- end -}}
{{- if and (eq $scaling.type "hpa") (eq (int $scaling.hpa.cpuUtilization) 0) (not $scaling.hpa.metrics) -}}
{{- fail (printf "%s.autoscaling.hpa has neither cpuUtilization nor metrics: set one" $where) -}}
{{- end -}}
{{- if and (eq $scaling.type "hpa") (eq (int $scaling.minReplicas) 0) -}}
{{- fail (printf "%s.autoscaling.minReplicas is 0: an HPA on CPU cannot scale from zero; use autoscaling.type keda, or 1" $where) -}}
{{- end -}}
{{- if eq .kind "dispatcher" }}{{ include "callfan.checkDispatcher" . }}{{ else }}{{ include "callfan.checkExecutor" . }}{{ end -}}
{{- end -}}

{{- define "callfan.checkDispatcher" -}}
{{- $values := .root.Values -}}
{{- if not $values.openai.apiKey.existingSecret -}}
{{- fail "openai.apiKey.existingSecret is empty: make a Secret with the key of the API and name it here: kubectl create secret generic callfan-openai --from-literal=api-key=…" -}}
{{- end -}}
{{- if not .c.adminToken.existingSecret -}}
{{- fail "dispatcher.adminToken.existingSecret is empty: the admin API needs a token: kubectl create secret generic callfan-admin --from-literal=token=$(openssl rand -hex 32)" -}}
{{- end -}}
{{- if $values.redis.enabled -}}
{{- if not (or $values.redis.url $values.redis.urlSecret.existingSecret) -}}
{{- fail "redis.url is empty: give the address of Redis, such as redis://redis.redis.svc:6379/0, or redis.urlSecret, or set redis.enabled to false to keep results in JetStream; the chart installs no Redis, see helm/examples" -}}
{{- end -}}
{{- if contains "@" $values.redis.url -}}
{{- fail "redis.url holds a user or a password: use redis.user and redis.password, or put the address into a Secret and name it in redis.urlSecret.existingSecret" -}}
{{- end -}}
{{- end -}}
{{- if eq .c.autoscaling.type "keda" -}}
{{- fail "dispatcher.autoscaling.type is keda: a dispatcher has no queue to be scaled by, and must not go to zero; use none or hpa" -}}
{{- end -}}
{{- if and (eq .c.autoscaling.type "none") (lt (int .c.replicas) 1) -}}
{{- fail "dispatcher.replicas is 0: nobody else watches the sessions; use 1 or more, or dispatcher.enabled false" -}}
{{- end -}}
{{- range $key, $instead := dict
  "nats" "nats.url" "nats-creds" "nats.creds" "nats-nkey" "nats.nkey" "nats-user" "nats.user" "nats-ca" "nats.tls" "nats-cert" "nats.tls" "nats-key" "nats.tls"
  "nats-password-file" "nats.password" "nats-token-file" "nats.token" "nats-inbox-prefix" "nats.inboxPrefix" "nats-api-prefix" "nats.apiPrefix"
  "prefix" "installation.prefix" "partitions" "installation.partitions" "replicas" "installation.streamReplicas" "max-ack-pending" "installation.maxAckPending"
  "redis" "redis.url" "redis-mode" "redis.mode" "redis-user" "redis.user" "redis-password-file" "redis.password" "redis-ca" "redis.tls" "redis-cert" "redis.tls" "redis-key" "redis.tls" "redis-prefix" "redis.prefix"
  "openai-api-key-file" "openai.apiKey" "openai-base-url" "openai.baseURL" "openai-organization" "openai.organization" "openai-project" "openai.project"
  "listen" "dispatcher.health.port" "admin-token-file" "dispatcher.adminToken" "stop-timeout" "dispatcher.terminationGracePeriodSeconds" "policies" "dispatcher.policies"
  "log-format" "dispatcher.logFormat" "log-level" "dispatcher.logLevel" "name" "nothing, every pod has its own name"
-}}
{{- if hasKey $.c.config $key -}}
{{- fail (printf "dispatcher.config.%s is set by the chart: use %s" $key $instead) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "callfan.checkExecutor" -}}
{{- $c := .c -}}
{{- $max := int64 .root.Values.installation.maxAckPending -}}
{{- if and $c.functions $c.functionsFile -}}
{{- fail (printf "executors.%s has functions and functionsFile: keep one" .key) -}}
{{- end -}}
{{- if and $c.functionsFile (not .filePool) -}}
{{- fail (printf "executors.%s.functionsFile has no pool, or is no YAML: add `pool: %s`" .key .key) -}}
{{- end -}}
{{- if and .filePool $c.pool (ne .filePool $c.pool) -}}
{{- fail (printf "executors.%s.pool is %s, and its functionsFile says pool: %s: make them the same" .key $c.pool .filePool) -}}
{{- end -}}
{{- if not (regexMatch "^[A-Za-z0-9_-]{1,64}$" .pool) -}}
{{- fail (printf "executors.%s.pool is %q: use 1 to 64 letters, digits, underscores and dashes" .key .pool) -}}
{{- end -}}
{{- if not .generic -}}
{{- if and (eq $c.image.repository .root.Values.executorDefaults.image.repository) (not $c.image.digest) -}}
{{- fail (printf "executors.%s has no functions: give functions or functionsFile for callfan's own program, or image.repository for yours" .key) -}}
{{- end -}}
{{- end -}}
{{- if not (or $c.image.tag $c.image.digest (eq $c.image.repository .root.Values.executorDefaults.image.repository)) -}}
{{- fail (printf "executors.%s.image has neither tag nor digest: the chart's version is not that of %s" .key $c.image.repository) -}}
{{- end -}}
{{- if .generic -}}
{{- $budget := include "callfan.stopTimeout" . | trimSuffix "s" | int -}}
{{- range $name, $function := ternary (($c.functionsFile | default "{}" | fromYaml).functions) $c.functions (empty $c.functions) -}}
{{- $timeout := include "callfan.seconds" ($function.timeout | default "30s") | int -}}
{{- if gt $timeout $budget -}}
{{- fail (printf "executors.%s: the function %s may take %ds, and a pod that stops has %ds for it: set terminationGracePeriodSeconds to %d or more" $.key $name $timeout $budget (add $timeout 10 (int $c.preStopSleepSeconds))) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if eq $c.autoscaling.type "keda" -}}
{{- if not .nats.monitoring.endpoint -}}
{{- fail (printf "executors.%s.autoscaling.type is keda and nats.monitoring.endpoint is empty: give host:port of the monitoring port of NATS, with a cluster that of its headless service, such as nats-headless.nats.svc.cluster.local:8222" .key) -}}
{{- end -}}
{{- if gt (mul (sub (int64 $c.autoscaling.maxReplicas) 1) (int64 $c.concurrency)) (sub $max 1) -}}
{{- fail (printf "executors.%s.autoscaling.maxReplicas is %d, but a pool has at most %d calls with executors (installation.maxAckPending) and each replica runs %d (concurrency): more than %d replicas would idle" .key (int $c.autoscaling.maxReplicas) $max (int64 $c.concurrency) (div (add $max (sub (int64 $c.concurrency) 1)) (int64 $c.concurrency))) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The whole seconds of a duration such as 1m30s. */}}
{{- define "callfan.seconds" -}}
{{- $sum := 0 -}}
{{- range regexFindAll "[0-9]+(ms|h|m|s)" (toString .) -1 -}}
{{- $number := regexFind "^[0-9]+" . | int -}}
{{- if hasSuffix "ms" . }}{{ else if hasSuffix "h" . }}{{ $sum = add $sum (mul $number 3600) -}}
{{- else if hasSuffix "m" . }}{{ $sum = add $sum (mul $number 60) }}{{ else }}{{ $sum = add $sum $number }}{{ end -}}
{{- end -}}
{{- $sum -}}
{{- end -}}

{{/* Two executors of a release with one pool would have to be the same program. */}}
{{- define "callfan.checkPools" -}}
{{- if hasKey .pools .pool -}}
{{- fail (printf "executors.%s and executors.%s have the pool %s: all processes of a pool serve the same functions; give one of them another pool, or more replicas to the other" (index .pools .pool) .key .pool) -}}
{{- end -}}
{{- $_ := set .pools .pool .key -}}
{{- end -}}
