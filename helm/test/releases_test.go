package test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// Every object of every combination, and every pod that would come of them, passes the API server: its schemas, its validation,
// and the admission of a namespace that enforces the restricted Pod Security standard.
func TestAPIServerTakesEveryCombination(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "dry-run")
	for _, name := range ciNames(t) {
		all := render(t, file(t, name))
		for _, o := range all {
			require.NoError(t, c.dryRun(t.Context(), o.Map), "%s: %s %s", name, o.Kind, o.Name)
		}
		for component, spec := range podSpecs(t, all) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "pod-"}, Spec: spec}
			_, err := c.client.CoreV1().Pods(c.namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
			require.NoError(t, err, "%s: pod of %s", name, component)
		}
	}
	// What this test would notice.
	spec := podSpecs(t, render(t, file(t, "default"), "dispatcher: {securityContext: {allowPrivilegeEscalation: true}}"))["dispatcher"]
	_, err := c.client.CoreV1().Pods(c.namespace).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "pod-"}, Spec: spec}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	require.ErrorContains(t, err, `violates PodSecurity "restricted`)
	wrong := render(t, file(t, "default"), "dispatcher: {extraPodSpec: {dnsPolizy: Default}}").of("Deployment")[0].Map
	require.ErrorContains(t, c.dryRun(t.Context(), wrong), "dnsPolizy")
}

// Install, upgrade, roll back and uninstall, with every combination.
func TestAPIServerLifeOfARelease(t *testing.T) {
	t.Parallel()
	for _, name := range ciNames(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, "life-"+name)
			require.NoError(t, c.install(freshChart(t), parse(t, file(t, name))))
			installed := c.live(t)
			require.NotEmpty(t, installed)
			require.Empty(t, c.warnings.of("PodSecurity"))

			changed := "{defaults: {logLevel: warn}, dispatcher: {config: {watchdog: 2m}}}"
			require.NoError(t, c.upgrade(freshChart(t), parse(t, file(t, name), changed)))
			for _, o := range render(t, file(t, name), changed).of("Deployment") {
				require.Equal(t, "warn", variable(c.deployment(t, o.Name).Spec.Template.Spec, "CALLFAN_LOG_LEVEL"))
			}
			require.NoError(t, c.rollback())
			require.ElementsMatch(t, installed, c.live(t), "as it was installed")
			for _, o := range render(t, file(t, name)).of("Deployment") {
				require.NotEqual(t, "warn", variable(c.deployment(t, o.Name).Spec.Template.Spec, "CALLFAN_LOG_LEVEL"))
			}
			require.NoError(t, c.uninstall())
			require.Empty(t, c.live(t), "nothing is left")
		})
	}
}

// From the previous version of the chart to this one, and back.
func TestAPIServerUpgradeFromThePreviousVersion(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "previous")
	require.NoError(t, c.install(loadPrevious(t), parse(t, previousValues)))
	before := c.live(t)
	require.NoError(t, c.upgrade(freshChart(t), parse(t, previousValues)))
	require.Subset(t, c.live(t), before)
	loaded := freshChart(t)
	require.Equal(t, "callfan-"+loaded.Metadata.Version, c.deployment(t, "fan-callfan-executor-tools").Labels["helm.sh/chart"])
	require.NoError(t, c.rollback())
	require.ElementsMatch(t, before, c.live(t))
	require.NoError(t, c.uninstall())
}

// An autoscaler's number survives upgrades, and the hand-over of UPGRADING.md keeps it when autoscaling is turned on.
func TestAPIServerReplicasBelongToTheAutoscaler(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "replicas")
	const name = "fan-callfan-executor-tools"
	fixed := []string{file(t, "default"), `
nats: {monitoring: {endpoint: "nats:8222"}}
executors: {tools: {replicas: 5, functions: {f: {effects: none, exec: {command: [cat]}}}}}`}
	scaled := append(fixed, "executors: {tools: {autoscaling: {type: keda}}}")
	replicas := func() int32 { return *c.deployment(t, name).Spec.Replicas }
	require.NoError(t, c.install(freshChart(t), parse(t, fixed...)))
	require.Equal(t, int32(5), replicas())

	// The command of UPGRADING.md.
	upgrading, err := os.ReadFile(filepath.Join(chartDir, "UPGRADING.md"))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(upgrading), "--field-manager=autoscaling-handover --force-conflicts -f - <<'EOF'\n")
	require.True(t, found)
	handover, _, found := strings.Cut(rest, "EOF\n")
	require.True(t, found)
	body, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(handover, "namespace: agents", "namespace: "+c.namespace)))
	require.NoError(t, err)
	force := true
	_, err = c.client.AppsV1().Deployments(c.namespace).Patch(t.Context(), name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: "autoscaling-handover", Force: &force})
	require.NoError(t, err)

	require.NoError(t, c.upgrade(freshChart(t), parse(t, scaled...)))
	require.Equal(t, int32(5), replicas(), "kept")
	scale, err := c.client.AppsV1().Deployments(c.namespace).GetScale(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	scale.Spec.Replicas = 9
	_, err = c.client.AppsV1().Deployments(c.namespace).UpdateScale(t.Context(), name, scale, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NoError(t, c.upgrade(freshChart(t), parse(t, append(scaled, "defaults: {logLevel: debug}")...)), "no conflict with the autoscaler")
	require.Equal(t, int32(9), replicas(), "kept")
}

// Selectors cannot be changed: what would is refused by Kubernetes, and a second release stands beside the first.
func TestAPIServerTwoReleasesInANamespace(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "two")
	require.NoError(t, c.install(freshChart(t), parse(t, file(t, "default"))))
	install := action.NewInstall(c.helm)
	install.ReleaseName, install.Namespace = "team", c.namespace
	install.WaitStrategy, install.Timeout = kube.HookOnlyStrategy, time.Minute
	_, err := install.Run(freshChart(t), parse(t, file(t, "executors-only")))
	require.NoError(t, err)
	require.Contains(t, c.live(t), "Deployment team-callfan-executor-billing")
	_, err = c.client.AppsV1().Deployments(c.namespace).Get(t.Context(), "team-callfan-dispatcher", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err))
}

// `helm test` makes the job, waits for it, and says what came of it. Nobody runs pods here, so this test ends the job.
func TestAPIServerHelmTest(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "helm-test")
	require.NoError(t, c.install(freshChart(t), parse(t, file(t, "default"))))
	for _, ending := range []struct{ kind, condition batchv1.JobConditionType }{
		{batchv1.JobComplete, batchv1.JobSuccessCriteriaMet},
		{batchv1.JobFailed, batchv1.JobFailureTarget},
	} {
		ended := make(chan error, 1)
		go func() {
			testing := action.NewReleaseTesting(c.helm)
			testing.Namespace, testing.Timeout = c.namespace, time.Minute
			_, shutdown, err := testing.Run(release)
			ended <- errors.Join(err, shutdown())
		}()
		jobs := c.client.BatchV1().Jobs(c.namespace)
		var job *batchv1.Job
		require.Eventually(t, func() bool {
			found, err := jobs.Get(t.Context(), "fan-callfan-dispatcher-check", metav1.GetOptions{})
			if err != nil || (job != nil && found.UID == job.UID) { // that of the ending before
				return false
			}
			job = found
			return len(found.Status.Conditions) == 0
		}, 30*time.Second, 50*time.Millisecond)
		now := metav1.Now()
		job.Status.StartTime = &now
		job.Status.Conditions = []batchv1.JobCondition{{Type: ending.condition, Status: corev1.ConditionTrue}, {Type: ending.kind, Status: corev1.ConditionTrue}}
		if ending.kind == batchv1.JobComplete {
			job.Status.CompletionTime = &now
		}
		_, err := jobs.UpdateStatus(t.Context(), job, metav1.UpdateOptions{})
		require.NoError(t, err)
		select {
		case err := <-ended:
			require.Equal(t, ending.kind == batchv1.JobFailed, err != nil, "%v", err)
		case <-time.After(time.Minute):
			require.Fail(t, "helm test does not end")
		}
	}
}
