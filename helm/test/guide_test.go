package test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/callfan/callfan/internal/programtest"
	"github.com/callfan/callfan/internal/testservers"
)

const guidePath = "../../docs/kubernetes.md"

// docs/kubernetes.md is played from top to bottom with the real helm, kubectl and callfan: each block of YAML becomes the
// file that it names, each block of shell runs. Pods do not run, so nothing is forwarded and nobody has logs; the chart of NATS
// is a stand-in, since it is on the Internet.
func TestAPIServerPlaysTheGuide(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "guide")
	dir := t.TempDir()
	charts, err := filepath.Abs("..")
	require.NoError(t, err)
	require.NoError(t, os.Symlink(charts, filepath.Join(dir, "helm")))
	programs := buildPrograms(t)
	namespaces := []string{"agents", "erp", "platform", "nats"}
	for _, team := range pools(t) {
		namespaces = append(namespaces, team.name)
	}
	c.playControllers(t, namespaces)

	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	environment := append(programtest.Environ(), "PATH="+strings.Join([]string{tools(t), programs, os.Getenv("PATH")}, string(os.PathListSeparator)),
		"HOME="+dir, "KUBECONFIG="+c.kubeconfig, "STAND_IN="+standIn(t), "CALLFAN_DISPATCHER="+dev(t, programs), "OPENAI_API_KEY=any", "NEW_OPENAI_API_KEY=other")
	run := func(script string) (string, error) {
		bash := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
		bash.Dir, bash.Env, bash.WaitDelay = dir, environment, 5*time.Second
		out, err := bash.CombinedOutput()
		return string(out), err
	}
	out, err := run(guideScript(t, dir))
	require.NoError(t, err, "%s", out)
	c.hasTheGuidesReleases(t)

	// What the page says of a roll-back past the upgrade that turned autoscaling on.
	out, err = run("kubectl -n agents scale deployment/fan-callfan-executor-tools --replicas=9; helm rollback fan 2 -n agents")
	require.Error(t, err)
	require.Contains(t, out, ".spec.replicas")
	out, err = run("helm rollback fan 2 -n agents --force-conflicts")
	require.NoError(t, err, "%s", out)
	c.natsTakesTheTeams(t, filepath.Join(dir, "auth.conf"))
}

// guideScript is the shell of the page; the files of its YAML are beside it.
func guideScript(t *testing.T, dir string) string {
	t.Helper()
	script := `
helm() { if [[ "$1 ${2-}" == "repo add" ]]; then return; fi; command helm "${@/#nats\/nats/$STAND_IN}"; }
kubectl() { case " $* " in *" port-forward "*|*" logs "*) return ;; esac; command kubectl "$@"; }
`
	files := map[string]values{}
	shells := 0
	for i, block := range regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(read(t, guidePath), -1) {
		language, text := block[1], block[2]
		if language == "sh" {
			script += "set -x\n" + text + "{ set +x; } 2>/dev/null\n"
			shells++
			continue
		}
		require.Equal(t, "yaml", language, "%s", text)
		head, body, _ := strings.Cut(text, "\n")
		name, is := strings.CutPrefix(head, "# ")
		require.True(t, is, "a block of YAML begins with the file's name: %s", head)
		name, added := strings.CutPrefix(name, "added to ")
		if strings.HasPrefix(name, "helm/") {
			require.Equal(t, read(t, "../..", name), body, name)
			continue
		}
		if added {
			require.Contains(t, files, name)
			files[name] = parse(t, jsonOf(t, files[name]), body)
		} else {
			files[name] = parse(t, body)
		}
		step := fmt.Sprintf("%d-%s", i, name)
		require.NoError(t, os.WriteFile(filepath.Join(dir, step), []byte(jsonOf(t, files[name])), 0o600))
		script += fmt.Sprintf("cp %s %s\n", step, name)
	}
	require.Greater(t, shells, 10)
	return script
}

// standIn is a chart in place of the official one of NATS: it keeps its values.
func standIn(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "nats")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "templates"), 0o700))
	for name, text := range map[string]string{
		"Chart.yaml":            "{apiVersion: v2, name: nats, version: 1.0.0}",
		"templates/values.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: values}\ndata: {values: {{ toJson .Values | quote }}}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// dev is the address of a dispatcher, which answers the page's callfan.
func dev(t *testing.T, programs string) string {
	t.Helper()
	listen := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	p := programtest.Start(t, programtest.Command{Path: filepath.Join(programs, "callfan"), Args: []string{
		"dev", "--dir", t.TempDir(), "--nats-listen", "127.0.0.1:0", "--simulate-listen", "127.0.0.1:0", "--listen", listen,
	}})
	p.Await(p.Stdout, "NATS_URL=")
	return "http://" + listen
}

// hasTheGuidesReleases checks what the page has left at the API server.
func (c *cluster) hasTheGuidesReleases(t *testing.T) {
	t.Helper()
	in := func(namespace string) *cluster { other := *c; other.namespace = namespace; return &other }
	tools := in("agents").deployment(t, "fan-callfan-executor-tools")
	require.Equal(t, int32(5), *tools.Spec.Replicas, "handed over")
	for name, least := range map[string]int32{"dispatcher": 2, "executor-mail": 2} {
		hpa, err := c.client.AutoscalingV2().HorizontalPodAutoscalers("agents").Get(t.Context(), "fan-callfan-"+name, metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, &least, hpa.Spec.MinReplicas)
		require.Equal(t, autoscalingv2.ResourceMetricSourceType, hpa.Spec.Metrics[0].Type)
	}
	key, err := c.client.CoreV1().Secrets("agents").Get(t.Context(), "callfan-openai", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "other", string(key.Data["api-key"]), "rotated")
	require.Contains(t, in("erp").live(t), "Deployment erp-callfan-executor-erp")
	require.Contains(t, in("platform").live(t), "Deployment callfan-dispatcher")
	for _, team := range pools(t) {
		live := in(team.name).live(t)
		require.Contains(t, live, "Deployment callfan-executor-"+team.name)
		require.Contains(t, live, "ScaledObject callfan-executor-"+team.name)
		require.NotContains(t, live, "Deployment callfan-dispatcher")
	}
}

// natsTakesTheTeams starts NATS with the accounts that the page makes, where each team and the platform come in with the
// password of its Secret.
func (c *cluster) natsTakesTheTeams(t *testing.T, auth string) {
	t.Helper()
	stored, err := c.client.CoreV1().ConfigMaps("nats").Get(t.Context(), "values", metav1.GetOptions{})
	require.NoError(t, err)
	var given struct {
		Config    struct{ Merge map[string]any }
		ConfigMap struct {
			Merge struct{ Data map[string]string }
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(stored.Data["values"]), &given))
	require.Equal(t, read(t, auth), given.ConfigMap.Merge.Data["auth.conf"])
	require.Equal(t, "auth.conf", given.Config.Merge["00$include"])

	passwords, err := c.client.CoreV1().Secrets("nats").Get(t.Context(), "nats-passwords", metav1.GetOptions{})
	require.NoError(t, err)
	config := given.ConfigMap.Merge.Data["auth.conf"]
	for name, password := range passwords.Data {
		config = fmt.Sprintf("%s: %s\n", name, password) + config // as the server's environment
	}
	server := testservers.NATS(t, testservers.NATSConfig(config))
	users := map[string]string{"dispatcher": "platform"}
	for _, team := range pools(t) {
		users[team.name] = team.name
	}
	for user, namespace := range users {
		var secret *corev1.Secret
		secret, err = c.client.CoreV1().Secrets(namespace).Get(t.Context(), "nats", metav1.GetOptions{})
		require.NoError(t, err)
		conn, err := nats.Connect(server.URL(), nats.UserInfo(user, string(secret.Data["password"])))
		require.NoError(t, err, user)
		conn.Close()
		_, err = nats.Connect(server.URL(), nats.UserInfo(user, "wrong"))
		require.ErrorIs(t, err, nats.ErrAuthorization, user)
	}
}
