{{/* The webhooks have a service of their own, so that what is reachable from outside is not the admin API. */}}

{{- define "callfan.webhookService" -}}
{{- if (.c.webhook).enabled }}
apiVersion: v1
kind: Service
metadata:
  {{- $own := dict "suffix" "-webhook" "annotations" .c.webhook.service.annotations }}
  {{- include "callfan.derive" (dict "from" . "to" $own) }}
  {{- include "callfan.metadata" $own | nindent 2 }}
spec:
  type: {{ .c.webhook.service.type }}
  selector:
    {{- include "callfan.selectorLabels" . | nindent 4 }}
  ports:
    - name: webhook
      port: {{ int .c.webhook.service.port }}
      targetPort: webhook
      protocol: TCP
{{- end }}
{{- end -}}

{{- define "callfan.webhookIngress" -}}
{{- if and (.c.webhook).enabled .c.webhook.ingress.enabled }}
{{- $ingress := .c.webhook.ingress }}
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  {{- $own := dict "suffix" "-webhook" "annotations" $ingress.annotations }}
  {{- include "callfan.derive" (dict "from" . "to" $own) }}
  {{- include "callfan.metadata" $own | nindent 2 }}
spec:
  {{- with $ingress.className }}
  ingressClassName: {{ . }}
  {{- end }}
  rules:
    - host: {{ $ingress.host | quote }}
      http:
        paths:
          - path: /webhooks/openai
            pathType: Exact
            backend:
              service:
                name: {{ .name }}-webhook
                port: {name: webhook}
  {{- with $ingress.tlsSecret }}
  tls:
    - hosts: [{{ $ingress.host | quote }}]
      secretName: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}
