package test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// Each test of this file answers a complaint that users of other charts have, with an issue where it was made.

// "Bundled databases break or look production-ready": temporalio/helm-charts#367, bitnami/charts#36313.
func TestComplaintBundledDatabases(t *testing.T) {
	t.Parallel()
	loaded, err := loadChart()
	require.NoError(t, err)
	require.Empty(t, loaded.Metadata.Dependencies)
	require.Empty(t, loaded.Dependencies())
	for _, name := range ciNames(t) {
		require.Empty(t, render(t, file(t, name)).of("StatefulSet"), name)
	}
	base := file(t, "default")
	require.Contains(t, refusal(t, base, `nats: {url: ""}`), "nats.url is empty")
	require.Contains(t, refusal(t, base, `redis: {url: ""}`), "redis.url is empty")
	require.Contains(t, refusal(t, base, `nats: {enabled: true}`), "nats.enabled is not a value of this chart: the chart installs no NATS")
}

// "existingSecret forgotten in one place": temporalio/helm-charts#261, YOURLS/charts#120.
func TestComplaintExistingSecretForgotten(t *testing.T) {
	t.Parallel()
	all := render(t, file(t, "tls"))
	require.Empty(t, all.of("Secret"), "the chart makes no Secret")
	want := map[string][]string{ // every Secret of the values, with its key
		"dispatcher":     {"addresses/nats", "addresses/redis", "admin/secret", "nats-client/client.crt", "nats-client/client.key", "nats-tls/ca.crt", "nats-user/pass", "openai/production", "redis-client/tls.crt", "redis-client/tls.key", "redis-tls/ca.crt", "redis-user/pass"},
		"executor-tools": {"addresses/nats", "nats-client/client.crt", "nats-client/client.key", "nats-tls/ca.crt", "nats-user/pass"},
		"check":          {"addresses/nats", "admin/secret", "nats-client/client.crt", "nats-client/client.key", "nats-tls/ca.crt", "nats-user/pass", "openai/production"},
	}
	for component, secrets := range want {
		require.Equal(t, secrets, secretsOf(podSpecs(t, all)[component]), component)
	}
	pod := podSpecs(t, all)["dispatcher"]
	for _, variable := range pod.Containers[0].Env {
		require.NotContains(t, []string{"NATS_PASSWORD", "NATS_TOKEN", "REDIS_PASSWORD", "OPENAI_API_KEY", "CALLFAN_ADMIN_TOKEN"}, variable.Name, "secrets are files")
	}
	// A file that a variable names is mounted, and the other way round.
	require.Equal(t, mountedSecrets(pod), namedSecrets(pod))
}

// secretsOf lists the Secrets that a pod names, with their keys.
func secretsOf(pod corev1.PodSpec) []string {
	var found []string
	for _, volume := range pod.Volumes {
		if volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			for _, item := range source.Secret.Items {
				found = append(found, source.Secret.Name+"/"+item.Key)
			}
		}
	}
	for _, c := range pod.Containers {
		for _, variable := range c.Env {
			if from := variable.ValueFrom; from != nil && from.SecretKeyRef != nil {
				found = append(found, from.SecretKeyRef.Name+"/"+from.SecretKeyRef.Key)
			}
		}
	}
	slices.Sort(found)
	return found
}

func mountedSecrets(pod corev1.PodSpec) (paths []string) {
	for _, volume := range pod.Volumes {
		if volume.Name != "secrets" {
			continue
		}
		for _, source := range volume.Projected.Sources {
			for _, item := range source.Secret.Items {
				paths = append(paths, "/etc/callfan/secrets/"+item.Path)
			}
		}
	}
	slices.Sort(paths)
	return paths
}

func namedSecrets(pod corev1.PodSpec) (paths []string) {
	for _, variable := range pod.Containers[0].Env {
		if strings.HasPrefix(variable.Value, "/etc/callfan/secrets/") {
			paths = append(paths, variable.Value)
		}
	}
	slices.Sort(paths)
	return paths
}

// "Secret or config change does not restart pods": rustfs/helm#16, redpanda-data/helm-charts#312.
func TestComplaintConfigChangeDoesNotRestart(t *testing.T) {
	t.Parallel()
	annotations := func(component string, more ...string) map[string]string {
		all := render(t, append([]string{file(t, "executors")}, more...)...)
		return one[appsv1.Deployment](t, all, "Deployment", component).Spec.Template.Annotations
	}
	before := annotations("executor-tools")
	require.Equal(t, before, annotations("executor-tools", "dispatcher: {config: {watchdog: 5m}}"), "another component's change restarts nothing")
	require.NotEqual(t, before["checksum/config"], annotations("executor-tools", "executors: {tools: {functions: {echo: {timeout: 1s}}}}")["checksum/config"])
	require.NotEqual(t, annotations("dispatcher")["checksum/config"], annotations("dispatcher", "dispatcher: {config: {watchdog: 5m}}")["checksum/config"])
	require.NotEqual(t, annotations("dispatcher")["checksum/config"], annotations("dispatcher", "dispatcher: {policies: {f: {attempts: 2}}}")["checksum/config"])
	// What is in an existing Secret is not known to the chart: this restarts the pods after a change.
	require.NotEqual(t, before, annotations("executor-tools", `secretsRevision: "2"`))
	require.NotEqual(t, annotations("executor-mail"), annotations("executor-mail", `secretsRevision: "2"`))
}

// "Selector contains version labels, so an upgrade is impossible": helm/charts#7680, zitadel-charts#389.
func TestComplaintSelectorChanges(t *testing.T) {
	t.Parallel()
	golden := map[string]string{"app.kubernetes.io/name": "callfan", "app.kubernetes.io/instance": release, "app.kubernetes.io/component": "executor-tools"}
	for _, more := range []string{"", "commonLabels: {app.kubernetes.io/name: other, team: a}", "executors: {tools: {podLabels: {app.kubernetes.io/component: other}}}"} {
		d := one[appsv1.Deployment](t, render(t, file(t, "executors"), more), "Deployment", "executor-tools")
		require.Equal(t, golden, d.Spec.Selector.MatchLabels, more)
		require.Subset(t, d.Spec.Template.Labels, golden, more)
		require.NotContains(t, d.Spec.Template.Labels, "helm.sh/chart", "a new chart alone restarts nothing")
		require.NotContains(t, d.Spec.Template.Labels, "app.kubernetes.io/version")
	}
	require.Equal(t, selectors(t, previousObjects(t)), selectors(t, render(t, previousValues)), "selectors and names are those of the previous version")
}

// previousValues are values that the previous version of the chart takes too.
const previousValues = `
nats: {url: "nats://nats:4222"}
redis: {url: "redis://redis:6379"}
openai: {apiKey: {existingSecret: callfan-openai}}
dispatcher: {adminToken: {existingSecret: callfan-admin}}
executors: {tools: {functions: {echo: {effects: none, exec: {command: [cat]}}}}}
`

func loadPrevious(t *testing.T) *chart.Chart {
	t.Helper()
	loaded, err := loader.Load("testdata/previous/callfan")
	require.NoError(t, err)
	return loaded
}

func previousObjects(t *testing.T) objects {
	t.Helper()
	loaded := loadPrevious(t)
	all, err := util.ToRenderValues(loaded, parse(t, previousValues), common.ReleaseOptions{Name: release, Namespace: namespace}, capabilities)
	require.NoError(t, err)
	rendered, err := engine.Render(loaded, all)
	require.NoError(t, err)
	found, err := parseObjects(rendered)
	require.NoError(t, err)
	return found
}

// selectors are those of the Deployments by name, as JSON.
func selectors(t *testing.T, all objects) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, o := range all.of("Deployment") {
		text, err := json.Marshal(typed[appsv1.Deployment](t, o).Spec.Selector)
		require.NoError(t, err)
		found[o.Name] = string(text)
	}
	require.NotEmpty(t, found)
	return found
}

// "replicas fights the autoscaler": kubernetes/kubernetes#25238, grafana/mimir#7367. Helm 4 fails on it.
func TestComplaintReplicasFightTheAutoscaler(t *testing.T) {
	t.Parallel()
	for _, name := range ciNames(t) {
		all := render(t, file(t, name))
		scaled := map[string]bool{}
		for _, o := range append(all.of("HorizontalPodAutoscaler"), all.of("ScaledObject")...) {
			scaled[o.Name] = true
		}
		for _, o := range all.of("Deployment") {
			d := typed[appsv1.Deployment](t, o)
			require.Equal(t, scaled[o.Name], d.Spec.Replicas == nil, "%s: %s", name, o.Name)
		}
	}
}

// "Strict schema breaks use as a subchart": cert-manager#7334; "too strict for new fields": runatlantis/helm-charts#583.
func TestComplaintStrictSchema(t *testing.T) {
	t.Parallel()
	base := file(t, "default")
	loaded, err := loader.Load(chartDir) // its own copy, which learns of its parent
	require.NoError(t, err)
	parent := &chart.Chart{Metadata: &chart.Metadata{APIVersion: "v2", Name: "parent", Version: "1.0.0", Dependencies: []*chart.Dependency{{Name: "callfan", Version: ">0.0.0-0", Condition: "callfan.enabled"}}}}
	parent.AddDependency(loaded)
	given := values{"global": values{"anything": values{"goes": 1}}, "callfan": parse(t, base, "enabled: true")}
	_, err = util.ToRenderValues(parent, given, common.ReleaseOptions{Name: release, Namespace: namespace}, capabilities)
	require.NoError(t, err)
	_, err = texts(parse(t, base, "dispatcher: {podSecurityContext: {newField: 1}, affinity: {newField: {}}, tolerations: [{newField: 1}], extraPodSpec: {newField: 1}}"))
	require.NoError(t, err)
	require.Contains(t, refusal(t, base, "dispatcher: {replica: 3}"), "replica")
	require.Contains(t, refusal(t, base, "executors: {a: {functions: {}, conccurency: 3}}"), "conccurency")
	require.Contains(t, refusal(t, base, "dispatcher: {config: {watch-dog: 1s}}"), "watch-dog")
	require.Contains(t, refusal(t, base, "dispatcher: {image: {tag: 1.10}}"), "tag", "1.10 would be 1.1")
}

// "Hook and test pods are rejected by the restricted Pod Security standard": openbao-helm#154, smallstep/helm-charts#185.
func TestComplaintPodSecurityOfEveryPod(t *testing.T) {
	t.Parallel()
	pods := 0
	for _, name := range ciNames(t) {
		for component, pod := range podSpecs(t, render(t, file(t, name))) {
			pods++
			requireRestricted(t, pod, name+" "+component)
		}
	}
	require.Greater(t, pods, 20)
}

// requireRestricted checks what the restricted standard asks for, and that nothing can be written but /tmp.
func requireRestricted(t *testing.T, pod corev1.PodSpec, where string) {
	t.Helper()
	require.NotNil(t, pod.SecurityContext, where)
	require.True(t, *pod.SecurityContext.RunAsNonRoot, where)
	require.NotZero(t, *pod.SecurityContext.RunAsUser, where)
	require.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, pod.SecurityContext.SeccompProfile.Type, where)
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		require.NotNil(t, c.SecurityContext, "%s %s", where, c.Name)
		require.False(t, *c.SecurityContext.AllowPrivilegeEscalation, where)
		require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem, where)
		require.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop, where)
		require.Empty(t, c.SecurityContext.Capabilities.Add, where)
	}
}

// podSpecs are the pods of Deployments and Jobs by component.
func podSpecs(t *testing.T, all objects) map[string]corev1.PodSpec {
	t.Helper()
	found := map[string]corev1.PodSpec{}
	for _, o := range all {
		if o.Kind != "Deployment" && o.Kind != "Job" {
			continue
		}
		var with struct {
			Spec struct {
				Template corev1.PodTemplateSpec `json:"template"`
			} `json:"spec"`
		}
		require.NoError(t, yaml.Unmarshal(o.Text, &with))
		require.NotContains(t, found, o.Component)
		found[o.Component] = with.Spec.Template.Spec
	}
	return found
}

// "No grace period or preStop for workers": nautobot/helm-charts#268, DataDog/helm-charts#2776 (the program must know it).
func TestComplaintNoGracePeriod(t *testing.T) {
	t.Parallel()
	stop := func(component string, more ...string) (grace int64, budget string, preStop int64) {
		all := render(t, append([]string{file(t, "executors")}, more...)...)
		pod := podSpecs(t, all)[component]
		if hook := pod.Containers[0].Lifecycle; hook != nil {
			preStop = hook.PreStop.Sleep.Seconds
		}
		return *pod.TerminationGracePeriodSeconds, variable(pod, "CALLFAN_STOP_TIMEOUT"), preStop
	}
	grace, budget, preStop := stop("executor-mail")
	require.Equal(t, []any{int64(310), "300s", int64(0)}, []any{grace, budget, preStop})
	grace, budget, preStop = stop("executor-tools", "executors: {tools: {terminationGracePeriodSeconds: 50, preStopSleepSeconds: 4}}")
	require.Equal(t, []any{int64(50), "36s", int64(4)}, []any{grace, budget, preStop})
	grace, budget, preStop = stop("dispatcher")
	require.Equal(t, []any{int64(60), "14s", int64(5)}, []any{grace, budget, preStop}, "a dispatcher spends its budget up to three times")

	base := file(t, "executors")
	require.Contains(t, refusal(t, base, "executors: {tools: {functions: {echo: {timeout: 2m30s}}}}"),
		"executors.tools: the function echo may take 150s, and a pod that stops has 50s for it: set terminationGracePeriodSeconds to 160 or more")
	render(t, base, "executors: {tools: {terminationGracePeriodSeconds: 160, functions: {echo: {timeout: 2m30s}}}}")
	require.Contains(t, refusal(t, base, "executors: {mail: {terminationGracePeriodSeconds: 10}}"), "executors.mail.terminationGracePeriodSeconds is 10")
	require.Contains(t, refusal(t, base, "dispatcher: {terminationGracePeriodSeconds: 10}"), "dispatcher.terminationGracePeriodSeconds is 10")
}

// variable is the value of a variable of the first container, "" if it has none.
func variable(pod corev1.PodSpec, name string) string {
	for _, v := range pod.Containers[0].Env {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

// "PDB, topologySpread or extraObjects are missing for a component": temporalio/helm-charts#952, external-secrets#2083.
func TestComplaintKnobMissingForAComponent(t *testing.T) {
	t.Parallel()
	all := render(t, file(t, "full"))
	require.Len(t, all.of("ConfigMap"), 4, "two of extraObjects")
	pods := podSpecs(t, all)
	for _, component := range []string{"dispatcher", "executor-tools", "executor-own"} {
		pod := pods[component]
		require.Equal(t, "50%", one[policyv1.PodDisruptionBudget](t, all, "PodDisruptionBudget", component).Spec.MinAvailable.StrVal)
		require.Len(t, pod.TopologySpreadConstraints, 1, component)
		require.Equal(t, component, pod.TopologySpreadConstraints[0].LabelSelector.MatchLabels["app.kubernetes.io/component"])
		require.Equal(t, "system-cluster-critical", pod.PriorityClassName)
		require.Equal(t, "gvisor", *pod.RuntimeClassName)
		require.Equal(t, "UTC", variable(pod, "TZ"))
		require.False(t, *pod.HostUsers, "extraPodSpec")
		require.NotEmpty(t, pod.NodeSelector)
		require.NotEmpty(t, pod.Tolerations)
		require.NotEmpty(t, pod.InitContainers)
		require.Len(t, pod.Containers, 2)
		require.Len(t, pod.ImagePullSecrets, 2)
		require.NotNil(t, pod.Affinity.PodAntiAffinity)
		require.NotEmpty(t, pod.Containers[0].EnvFrom)
		for _, kind := range []string{"NetworkPolicy", "PodMonitor", "ServiceMonitor", "ServiceAccount"} {
			require.Len(t, slices.DeleteFunc(all.of(kind), func(o object) bool { return o.Component != component }), 1, "%s of %s", kind, component)
		}
	}
	spread := podSpecs(t, render(t, file(t, "default")))["dispatcher"].TopologySpreadConstraints
	require.Len(t, spread, 2, "without constraints of one's own: zones and nodes")
}

// "Immutable fields and big-bang renames": nats-io/k8s#89.
func TestComplaintNamesChange(t *testing.T) {
	t.Parallel()
	names := func(all objects) (found []string) {
		for _, o := range all {
			if o.Kind != "Job" { // their names hold a hash
				found = append(found, o.Kind+" "+o.Name)
			}
		}
		slices.Sort(found)
		return found
	}
	require.Subset(t, names(render(t, previousValues)), names(previousObjects(t)), "no object of the previous version is renamed")
	// Jobs cannot be changed, so what they run is a part of their name.
	jobs := func(more ...string) (found []string) {
		for _, o := range render(t, append([]string{file(t, "keda"), "test: {enabled: false}"}, more...)...).of("Job") {
			found = append(found, o.Name)
		}
		return found
	}
	before := jobs()
	require.Len(t, before, 2)
	require.Equal(t, before, jobs("executorDefaults: {replicas: 7}"))
	require.NotEqual(t, before, jobs("executors: {tools: {functions: {echo: {timeout: 3s}}}}"))
	require.NotEqual(t, before, jobs("executors: {mail: {env: [{name: A, value: b}]}}"))
	// The longest names still fit into labels.
	long := strings.Repeat("a", 40)
	for _, o := range render(t, file(t, "default"), fmt.Sprintf(`
fullnameOverride: %s
nats: {monitoring: {endpoint: "nats:8222"}}
executors: {%s: {autoscaling: {type: keda, minReplicas: 0}, functions: {f: {exec: {command: [cat]}}}}}`, long, long)) {
		require.LessOrEqual(t, len(o.Name), 63, "%s %s", o.Kind, o.Name)
		for key, value := range o.Labels {
			require.LessOrEqual(t, len(value), 63, key)
		}
	}
}

// "Chart upgrade undocumented": kedacore/charts#699.
func TestComplaintUpgradeUndocumented(t *testing.T) {
	t.Parallel()
	loaded, err := loadChart()
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(chartDir, "UPGRADING.md"))
	require.NoError(t, err)
	require.Contains(t, string(text), "## "+loaded.Metadata.Version, "a section for this version")
	require.Contains(t, loaded.Metadata.Annotations, "artifacthub.io/changes")
	rendered, err := texts(parse(t, file(t, "default")))
	require.NoError(t, err)
	require.Contains(t, rendered["callfan/templates/NOTES.txt"], "UPGRADING.md")
	require.Contains(t, rendered["callfan/templates/NOTES.txt"], "docs/kubernetes.md")
	// Every value that is gone says so in one sentence, with what to use instead.
	removed, err := os.ReadFile(filepath.Join(chartDir, "templates/_removed.tpl"))
	require.NoError(t, err)
	paths := regexp.MustCompile(`dict "path" "([a-zA-Z.]+)"`).FindAllStringSubmatch(string(removed), -1)
	require.NotEmpty(t, paths)
	for _, match := range paths {
		given := any(true)
		for _, key := range slices.Backward(strings.Split(match[1], ".")) {
			given = values{key: given}
		}
		more, err := yaml.Marshal(given)
		require.NoError(t, err)
		require.Contains(t, refusal(t, file(t, "default"), string(more)), match[1]+" is not a value of this chart: ")
	}
}

// Two renders of the same values differ in nothing, so that GitOps tools see no change where there is none.
func TestRenderIsRepeatable(t *testing.T) {
	t.Parallel()
	for _, name := range ciNames(t) {
		var sums []string
		for range 3 {
			rendered, err := texts(parse(t, file(t, name)))
			require.NoError(t, err)
			sum := sha256.New()
			for _, path := range slices.Sorted(maps.Keys(rendered)) {
				fmt.Fprintln(sum, path, rendered[path])
			}
			sums = append(sums, hex.EncodeToString(sum.Sum(nil)))
		}
		require.Len(t, slices.Compact(sums), 1, name)
	}
}
