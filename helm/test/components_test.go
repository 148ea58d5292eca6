package test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestProbesHaveDistinctMeanings(t *testing.T) {
	t.Parallel()
	for component, pod := range podSpecs(t, render(t, file(t, "executors"), "test: {enabled: false}")) {
		c := pod.Containers[0]
		if component == "executor-mail" { // a program of one's own has no health until it is said to
			require.Nil(t, c.LivenessProbe)
			require.Empty(t, c.Ports)
			continue
		}
		require.Equal(t, "/healthz", c.StartupProbe.HTTPGet.Path)
		require.Equal(t, "/healthz", c.LivenessProbe.HTTPGet.Path, "a lost NATS must not restart %s", component)
		require.Equal(t, "/readyz", c.ReadinessProbe.HTTPGet.Path)
		require.Greater(t, c.StartupProbe.FailureThreshold*c.StartupProbe.PeriodSeconds, int32(60))
		require.Equal(t, int32(8420), c.Ports[0].ContainerPort)
	}
	own := podSpecs(t, render(t, file(t, "full")))["executor-own"].Containers[0]
	require.Equal(t, "/live", own.LivenessProbe.HTTPGet.Path)
	require.Equal(t, "/ready", own.ReadinessProbe.HTTPGet.Path)
}

func TestNoServiceAccountToken(t *testing.T) {
	t.Parallel()
	for _, name := range ciNames(t) {
		for component, pod := range podSpecs(t, render(t, file(t, name))) {
			require.Equal(t, name == "full" && component == "executor-own", *pod.AutomountServiceAccountToken, "%s %s", name, component)
			require.False(t, *pod.EnableServiceLinks)
		}
	}
}

func TestImages(t *testing.T) {
	t.Parallel()
	loaded, err := loadChart()
	require.NoError(t, err)
	image := func(component string, from ...string) string {
		return podSpecs(t, render(t, from...))[component].Containers[0].Image
	}
	base := file(t, "executors")
	require.Equal(t, "ghcr.io/callfan/dispatcher:"+loaded.Metadata.AppVersion, image("dispatcher", base))
	require.Equal(t, "ghcr.io/callfan/executor:"+loaded.Metadata.AppVersion, image("executor-tools", base))
	require.Equal(t, "registry.example.com/mail/executor:1.4.0", image("executor-mail", base))
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	require.Equal(t, "registry.example.com/mail/executor@"+digest, image("executor-mail", file(t, "keda")))
	require.Equal(t, "mirror.example.com/own/executor:1@"+digest, image("executor-own", file(t, "full")))
	require.Contains(t, refusal(t, base, `executors: {mail: {image: {tag: ""}}}`), "executors.mail.image has neither tag nor digest")
	require.Contains(t, refusal(t, base, `executors: {none: {replicas: 1}}`), "executors.none has no functions")
}

// The ScaledObject asks for the durable that the dispatcher makes, with the defaults that KEDA 2.20 needs.
func TestScaledObject(t *testing.T) {
	t.Parallel()
	// pkg/queue derives the names; they are written there once.
	source, err := os.ReadFile("../../pkg/queue/subjects.go")
	require.NoError(t, err)
	require.Contains(t, string(source), `func poolDurable(pool string) string      { return "pool_" + pool }`)
	require.Contains(t, string(source), `func (n names) calls() string    { return n.stream("CALLS") }`)

	type scaledObject struct {
		Spec struct {
			ScaleTargetRef                                                    struct{ Name string }
			PollingInterval, CooldownPeriod, MinReplicaCount, MaxReplicaCount int
			Fallback                                                          struct {
				FailureThreshold, Replicas int
				Behavior                   string
			}
			Advanced struct {
				HorizontalPodAutoscalerConfig struct {
					Behavior autoscalingv2.HorizontalPodAutoscalerBehavior
				}
			}
			Triggers []struct {
				Type, MetricType string
				Metadata         map[string]string
			}
		}
	}
	decode := func(all objects, component string) (so scaledObject) {
		for _, o := range all.of("ScaledObject") {
			if o.Component == component {
				require.NoError(t, decodeInto(o, &so))
			}
		}
		return so
	}
	spec := decode(render(t, file(t, "keda"), "executors: {tools: {pool: Tools_1, concurrency: 4}}"), "executor-tools").Spec
	require.Equal(t, "fan-callfan-executor-tools", spec.ScaleTargetRef.Name)
	require.Equal(t, []int{5, 120, 0, 10, 3, 1}, []int{spec.PollingInterval, spec.CooldownPeriod, spec.MinReplicaCount, spec.MaxReplicaCount, spec.Fallback.FailureThreshold, spec.Fallback.Replicas})
	require.Equal(t, "currentReplicasIfHigher", spec.Fallback.Behavior)
	require.Equal(t, int32(120), *spec.Advanced.HorizontalPodAutoscalerConfig.Behavior.ScaleDown.StabilizationWindowSeconds)
	require.Len(t, spec.Triggers, 1, "one for all functions: KEDA takes the largest of several, not the sum")
	require.Equal(t, "nats-jetstream", spec.Triggers[0].Type)
	require.Equal(t, "AverageValue", spec.Triggers[0].MetricType, "what fallback needs")
	require.Equal(t, map[string]string{
		"natsServerMonitoringEndpoint": "nats-headless.nats.svc.cluster.local:8222", "account": "$G", "useHttps": "false",
		"stream": "FN_CALLS", "consumer": "pool_Tools_1", "lagThreshold": "4", "activationLagThreshold": "0",
	}, spec.Triggers[0].Metadata)
	full := decode(render(t, file(t, "full")), "executor-tools").Spec
	require.Equal(t, "FAN_CALLS", full.Triggers[0].Metadata["stream"])
	require.Len(t, full.Triggers, 2)
}

func TestAutoscalingIsChecked(t *testing.T) {
	t.Parallel()
	keda := file(t, "keda")
	// 20000 calls of a pool at most, 32 a replica: the 625th replica has the last of them.
	render(t, keda, "executors: {tools: {autoscaling: {maxReplicas: 625}}}")
	require.Contains(t, refusal(t, keda, "executors: {tools: {autoscaling: {maxReplicas: 626}}}"), "more than 625 replicas would idle")
	render(t, keda, "installation: {maxAckPending: 33}", "executorDefaults: {autoscaling: {maxReplicas: 2}}", "executors: {always: {enabled: false}}")
	require.Contains(t, refusal(t, keda, "installation: {maxAckPending: 32}", "executorDefaults: {autoscaling: {maxReplicas: 2}}"), "more than 1 replicas would idle")
	require.Contains(t, refusal(t, keda, `nats: {monitoring: {endpoint: ""}}`), "nats.monitoring.endpoint is empty")
	require.Contains(t, refusal(t, keda, `nats: {monitoring: {endpoint: "http://nats:8222"}}`), "monitoring/endpoint")
	require.Contains(t, refusal(t, keda, "executors: {tools: {autoscaling: {minReplicas: 11}}}"), "minReplicas is 11 and maxReplicas 10")
	require.Contains(t, refusal(t, keda, "executors: {tools: {autoscaling: {type: hpa}}}"), "cannot scale from zero")
	require.Contains(t, refusal(t, keda, "dispatcher: {autoscaling: {type: keda}}"), "a dispatcher has no queue to be scaled by")
	require.Contains(t, refusal(t, keda, "dispatcher: {replicas: 0}"), "dispatcher.replicas is 0")
	require.Contains(t, refusal(t, keda, "dispatcher: {autoscaling: {type: hpa, minReplicas: 0}}"), "dispatcher.autoscaling.minReplicas is 0")
	require.Contains(t, refusal(t, file(t, "hpa"), "dispatcher: {autoscaling: {hpa: {cpuUtilization: 0}}}"), "neither cpuUtilization nor metrics")

	all := render(t, file(t, "hpa"))
	require.Equal(t, int32(2), *one[autoscalingv2.HorizontalPodAutoscaler](t, all, "HorizontalPodAutoscaler", "dispatcher").Spec.MinReplicas)
	require.Len(t, one[autoscalingv2.HorizontalPodAutoscaler](t, all, "HorizontalPodAutoscaler", "executor-tools").Spec.Metrics, 2)
}

// Who starts at zero replicas is registered by a job.
func TestRegistration(t *testing.T) {
	t.Parallel()
	keda := file(t, "keda")
	pods := podSpecs(t, render(t, keda))
	tools := pods["executor-tools-register"].Containers[0]
	require.Equal(t, []string{"--register", "/etc/callfan/config/functions.yaml"}, tools.Args)
	require.Equal(t, "/etc/callfan/config", tools.VolumeMounts[0].MountPath)
	require.Nil(t, tools.ReadinessProbe)
	require.Equal(t, []string{"--register"}, pods["executor-mail-register"].Containers[0].Args)
	require.NotContains(t, pods, "executor-always-register")
	require.Contains(t, refusal(t, keda, "executors: {mail: {registration: {args: []}}}"), "executors.mail starts at zero replicas")
	require.Empty(t, render(t, keda, "test: {enabled: false}", "executorDefaults: {registration: {enabled: false}}").of("Job"))
	require.Contains(t, podSpecs(t, render(t, file(t, "executors"), "executors: {tools: {registration: {enabled: true}}}")), "executor-tools-register")
}

func TestFunctions(t *testing.T) {
	t.Parallel()
	base := file(t, "executors")
	all := render(t, base)
	text := one[corev1.ConfigMap](t, all, "ConfigMap", "executor-tools").Data["functions.yaml"]
	require.Regexp(t, `(?m)^pool: "tools"\nversion: "[0-9a-f]{12}"\nfunctions:\n  echo:\n`, text)
	require.Equal(t, []string{"/etc/callfan/config/functions.yaml"}, podSpecs(t, all)["executor-tools"].Containers[0].Args)
	given, _ := parse(t, base)["executors"].(values)["crm"].(values)["functionsFile"].(string)
	require.Equal(t, given, one[corev1.ConfigMap](t, all, "ConfigMap", "executor-crm").Data["functions.yaml"], "to the byte")
	require.Contains(t, refusal(t, base, "executors: {crm: {pool: other}}"), "executors.crm.pool is other, and its functionsFile says pool: customers")
	require.Contains(t, refusal(t, base, "executors: {crm: {functions: {f: {}}}}"), "functions and functionsFile")
	require.Contains(t, refusal(t, base, "executors: {crm: {functionsFile: 'functions: {}'}}"), "has no pool")
	require.Contains(t, refusal(t, base, "executors: {mail: {pool: tools}}"), "executors.mail and executors.tools have the pool tools")
	changed := one[corev1.ConfigMap](t, render(t, base, "executors: {tools: {functions: {echo: {attempts: 2}}}}"), "ConfigMap", "executor-tools").Data["functions.yaml"]
	version := regexp.MustCompile(`version: "(.*)"`)
	require.NotEqual(t, version.FindString(text), version.FindString(changed), "a changed function may take the place of the old one")
}

func TestDispatcherConfig(t *testing.T) {
	t.Parallel()
	base := file(t, "executors")
	all := render(t, base)
	config := one[corev1.ConfigMap](t, all, "ConfigMap", "dispatcher").Data
	require.YAMLEq(t, "{select: [agent=agent_123], batch-bytes: 900KiB}", config["dispatcher.yaml"])
	require.YAMLEq(t, "{send_mail: {on_uncertain: park}}", config["policies.yaml"])
	require.Contains(t, refusal(t, base, "dispatcher: {config: {nats: x}}"), "dispatcher.config.nats is set by the chart: use nats.url")
	require.Contains(t, refusal(t, base, "dispatcher: {config: {stop-timeout: 1s}}"), "use dispatcher.terminationGracePeriodSeconds")
	require.Contains(t, refusal(t, base, `nats: {url: "nats://user:password@nats:4222"}`), "nats.urlSecret.existingSecret")
	require.Contains(t, refusal(t, base, `redis: {url: "redis://user:password@redis:6379"}`), "redis.urlSecret.existingSecret")
	require.Contains(t, refusal(t, base, "executors: {mail: {nats: {nkey: {existingSecret: a}}}}"), "executors.mail has more than one identity at NATS (creds, nkey)")
	require.Contains(t, refusal(t, base, `openai: {apiKey: {existingSecret: ""}}`), "openai.apiKey.existingSecret is empty")
	require.Contains(t, refusal(t, base, `dispatcher: {adminToken: {existingSecret: ""}}`), "dispatcher.adminToken.existingSecret is empty")
	// What the user sets in env takes the place of what the chart sets, and does not stand beside it.
	d := one[appsv1.Deployment](t, render(t, base, "dispatcher: {env: [{name: CALLFAN_LISTEN, value: ':9'}]}"), "Deployment", "dispatcher")
	require.Equal(t, ":9", variable(d.Spec.Template.Spec, "CALLFAN_LISTEN"))
}

// Executors reach NATS and DNS only and are reached by nobody; the dispatcher is reached at its one port.
func TestNetworkPolicies(t *testing.T) {
	t.Parallel()
	all := render(t, file(t, "executors"))
	tools := one[networkingv1.NetworkPolicy](t, all, "NetworkPolicy", "executor-tools").Spec
	require.Equal(t, []networkingv1.PolicyType{"Ingress", "Egress"}, tools.PolicyTypes)
	require.Empty(t, tools.Ingress)
	require.Equal(t, []int{53, 4222}, egressPorts(tools))
	require.Equal(t, []int{53, 4222, 8080}, egressPorts(one[networkingv1.NetworkPolicy](t, all, "NetworkPolicy", "executor-crm").Spec))
	dispatcher := one[networkingv1.NetworkPolicy](t, all, "NetworkPolicy", "dispatcher").Spec
	require.Equal(t, []int{53, 443, 4222, 6379}, egressPorts(dispatcher))
	require.Len(t, dispatcher.Ingress, 1)
	require.Equal(t, intstr.FromString("http"), *dispatcher.Ingress[0].Ports[0].Port)
	require.NotNil(t, dispatcher.Ingress[0].From[0].PodSelector, "by default the pods of the namespace")
	require.Equal(t, []int{53, 443, 4222}, egressPorts(one[networkingv1.NetworkPolicy](t, render(t, file(t, "jetstream")), "NetworkPolicy", "dispatcher").Spec))

	monitored := one[networkingv1.NetworkPolicy](t, render(t, file(t, "executors"), "monitoring: {podMonitor: {enabled: true}}"), "NetworkPolicy", "executor-tools").Spec
	require.Len(t, monitored.Ingress, 1, "who collects metrics gets in")
	full := one[networkingv1.NetworkPolicy](t, render(t, file(t, "full")), "NetworkPolicy", "executor-tools").Spec
	require.Equal(t, "monitoring", full.Ingress[0].From[0].NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"])
}

// egressPorts lists the numbers of the ports that may be reached.
func egressPorts(spec networkingv1.NetworkPolicySpec) (ports []int) {
	for _, rule := range spec.Egress {
		for _, port := range rule.Ports {
			if port.Port.Type == intstr.Int {
				ports = append(ports, port.Port.IntValue())
			}
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// The alerts use metrics and labels that docs/metrics.md has.
func TestAlertsUseMetricsThatExist(t *testing.T) {
	t.Parallel()
	docs, err := os.ReadFile("../../docs/metrics.md")
	require.NoError(t, err)
	rules := render(t, file(t, "full")).of("PrometheusRule")
	require.Len(t, rules, 1)
	names := regexp.MustCompile(`callfan_[a-z_]+|(?:event|reason)="[a-z_]+"`).FindAllString(string(rules[0].Text), -1)
	require.Greater(t, len(names), 5)
	for _, name := range names {
		if match := regexp.MustCompile(`="(.*)"`).FindStringSubmatch(name); match != nil {
			name = match[1]
		}
		require.Contains(t, string(docs), "`"+name+"`")
	}
}

// What has to be reachable from outside is a port and a service of its own; the Ingress leads to the one path and to nothing else.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	all := render(t, file(t, "full"))
	services := slices.DeleteFunc(all.of("Service"), func(o object) bool { return o.Name != "fan-callfan-dispatcher-webhook" })
	require.Len(t, services, 1)
	require.Equal(t, intstr.FromString("webhook"), typed[corev1.Service](t, services[0]).Spec.Ports[0].TargetPort)
	ingress := one[networkingv1.Ingress](t, all, "Ingress", "dispatcher").Spec
	require.Len(t, ingress.Rules, 1)
	require.Len(t, ingress.Rules[0].HTTP.Paths, 1)
	require.Equal(t, "/webhooks/openai", ingress.Rules[0].HTTP.Paths[0].Path)
	require.Equal(t, services[0].Name, ingress.Rules[0].HTTP.Paths[0].Backend.Service.Name)
	pod := podSpecs(t, all)["dispatcher"]
	require.Equal(t, ":8421", variable(pod, "CALLFAN_WEBHOOK_LISTEN"))
	require.Contains(t, mountedSecrets(pod), variable(pod, "OPENAI_WEBHOOK_SECRET_FILE"))
	require.Equal(t, "ingress", one[networkingv1.NetworkPolicy](t, all, "NetworkPolicy", "dispatcher").Spec.Ingress[1].From[0].NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"])

	require.Empty(t, variable(podSpecs(t, render(t, file(t, "default")))["dispatcher"], "CALLFAN_WEBHOOK_LISTEN"))
	require.Contains(t, refusal(t, file(t, "default"), "dispatcher: {webhook: {enabled: true}}"), "dispatcher.webhook.secret.existingSecret is empty")
	require.Contains(t, refusal(t, file(t, "full"), `dispatcher: {webhook: {ingress: {host: ""}}}`), "dispatcher.webhook.ingress.host is empty")
}
