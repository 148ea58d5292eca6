package test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/natsaccess"
	"github.com/callfan/callfan/internal/programtest"
	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/queue"
)

// What the pods' specs state is started as processes, and answers calls: that the chart's names of variables, files, keys
// and ports are those of the programs.
func TestPodsAsProcesses(t *testing.T) {
	t.Parallel()
	programs := buildPrograms(t)
	t.Run("executors beside the dispatcher", func(t *testing.T) { t.Parallel(); executorsBeside(t, programs) })
	t.Run("a release of executors only", func(t *testing.T) { t.Parallel(); executorsOnly(t, programs) })
	t.Run("teams with accounts of their own", func(t *testing.T) { t.Parallel(); teamsWithAccounts(t, programs) })
}

// With Redis, credentials files, functions in the values and as a file, and an HTTP endpoint that needs a token.
func executorsBeside(t *testing.T, programs string) {
	redis, api := testservers.Redis(t), simulate(t, programs)
	resolver, creds := credentials(t, "tools=echo,slow", "customers=get_customer")
	nats := testservers.NATS(t, testservers.NATSConfig(resolver))
	crm := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret-of-crm" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = io.WriteString(w, `{"name":"Ada"}`)
	}))
	t.Cleanup(crm.Close)
	started := filepath.Join(t.TempDir(), "started")
	ports := []any{freePort(t), freePort(t), freePort(t)}
	k := &kubelet{
		programs: programs,
		release: render(t, file(t, "executors"), fmt.Sprintf(`
installation: {streamReplicas: 1, partitions: 4}
nats: {url: "%s"}
redis: {url: "%s"}
openai: {baseURL: "%s"}
test: {timeout: 30s}`, nats.URL(), redis.URL(), api), fmt.Sprintf(`
dispatcher: {health: {port: %d}}
executors:
  tools:
    health: {port: %d}
    nats: {inboxPrefix: _INBOX_tools}
    registration: {enabled: true}
    functions:
      slow: {timeout: 20s, exec: {command: [sh, -c, "touch %[4]s; sleep 1; cat"]}}
  crm:
    health: {port: %[3]d}
    nats: {inboxPrefix: _INBOX_customers}`, append(ports, started)...)),
		secrets: map[string]map[string]string{
			"callfan-dispatcher-nats": {"nats.creds": creds("dispatcher")}, "tools-nats": {"nats.creds": creds("tools")}, "crm-nats": {"nats.creds": creds("customers")},
			"callfan-openai": {"api-key": "any"}, "callfan-admin": {"token": "secret-of-the-admin-api"}, "crm": {"token": "secret-of-crm"},
		},
		hosts: map[string]string{"fan-callfan-dispatcher:8420": fmt.Sprintf("127.0.0.1:%d", ports[0]), "crm.crm.svc:8080": strings.TrimPrefix(crm.URL, "http://")},
	}
	dispatcher := k.start(t, "dispatcher")
	dispatcher.probe(t)
	register := k.start(t, "executor-tools-register")
	require.Zero(t, register.Wait(), "%s", register.Stderr)
	tools, customers := k.start(t, "executor-tools"), k.start(t, "executor-crm")
	tools.probe(t)
	customers.probe(t)
	check := k.start(t, "check")
	require.Zero(t, check.Wait(), "%s", check.Stderr)

	asked := k.ask(t, `{"rounds":[[{"name":"echo","arguments":{"text":"again"}},{"name":"get_customer","arguments":{"customer_id":"7"}}]],"say":"done"}`)
	require.Zero(t, asked.Wait(), "%s", asked.Stderr)
	require.Contains(t, asked.Stdout.String(), "again")
	require.Contains(t, asked.Stdout.String(), "Ada")
	require.Contains(t, asked.Stdout.String(), "done")

	// A pod that is told to stop while it works finishes, and another one could take over.
	asked = k.ask(t, `{"rounds":[[{"name":"slow","arguments":{"text":"finished"}}]],"say":"done"}`)
	require.Eventually(t, func() bool { _, err := os.Stat(started); return err == nil }, 20*time.Second, 10*time.Millisecond, "%s", tools.Stderr)
	tools.terminate(t)
	require.Zero(t, asked.Wait(), "%s", asked.Stderr)
	require.Contains(t, asked.Stdout.String(), "finished")
	customers.terminate(t)
	dispatcher.terminate(t)
}

// A team's release, with an nkey, TLS and a prefix of replies, at the dispatcher of another release without Redis.
func executorsOnly(t *testing.T, programs string) {
	api := simulate(t, programs)
	authority, tls := certificate(t)
	access, seeds := nkeyUsers(t, "billing=get_invoice")
	nats := testservers.NATS(t, testservers.NATSConfig(tls+access))
	port, teamPort := freePort(t), freePort(t)
	shared := fmt.Sprintf("installation: {prefix: shared}\nnats: {nkey: {existingSecret: shared-nats}, tls: {ca: {existingSecret: nats-ca}}, url: \"tls://%s\"}", nats.Addr())
	platform := &kubelet{
		programs: programs,
		release: render(t, file(t, "jetstream"), shared, fmt.Sprintf(`
openai: {baseURL: "%s"}
test: {timeout: 30s}
dispatcher: {health: {port: %d}}`, api, port)),
		secrets: map[string]map[string]string{
			"shared-nats": {"nats.nkey": seeds["dispatcher"]}, "nats-ca": {"ca.crt": authority},
			"callfan-openai": {"api-key": "any"}, "callfan-admin": {"token": "secret-of-the-admin-api"},
		},
		hosts: map[string]string{"fan-callfan-dispatcher:8420": fmt.Sprintf("127.0.0.1:%d", port)},
	}
	team := &kubelet{
		programs: programs,
		release:  render(t, file(t, "executors-only"), fmt.Sprintf("executors: {billing: {health: {port: %d}}}", teamPort)),
		secrets:  map[string]map[string]string{"billing-nats": {"seed": seeds["billing"]}, "nats-ca": {"ca.crt": authority}},
		hosts:    map[string]string{"nats.example.com:4222": nats.Addr()},
	}
	billing := team.start(t, "executor-billing") // before there is a dispatcher
	require.Eventually(t, func() bool { return billing.get(billing.spec.LivenessProbe) == http.StatusOK }, 20*time.Second, 20*time.Millisecond)
	require.Equal(t, http.StatusServiceUnavailable, billing.get(billing.spec.ReadinessProbe), "not registered yet")
	dispatcher := platform.start(t, "dispatcher")
	dispatcher.probe(t)
	billing.probe(t)
	check := platform.start(t, "check")
	require.Zero(t, check.Wait(), "%s", check.Stderr)
	asked := platform.ask(t, `{"rounds":[[{"name":"get_invoice","arguments":{"number":12}}]],"say":"done"}`)
	require.Zero(t, asked.Wait(), "%s", asked.Stderr)
	require.Contains(t, asked.Stdout.String(), "12")
	dispatcher.terminate(t)
	billing.terminate(t) // with nobody there to report to
}

// The example helm/examples/ten-teams: a team's executors are in an account of their own, which imports what they need.
func teamsWithAccounts(t *testing.T, programs string) {
	redis, api := testservers.Redis(t), simulate(t, programs)
	var lines []string
	passwords := "DISPATCHER_PASSWORD: of-dispatcher\n"
	for _, team := range pools(t) {
		lines = append(lines, team.String())
		passwords += fmt.Sprintf("%s_PASSWORD: of-%s\n", strings.ToUpper(team.name), team.name)
	}
	plan := accessPlan(t, natsaccess.Options{Accounts: true}, lines...)
	nats := testservers.NATS(t, testservers.NATSConfig(passwords+plan.Config()))
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `"seven left"`) }))
	t.Cleanup(backend.Close)
	port, teamPort := freePort(t), freePort(t)
	platform := &kubelet{
		programs: programs,
		release: render(t, read(t, teamsDir, "platform-values.yaml"), fmt.Sprintf(`
installation: {streamReplicas: 1, partitions: 4}
redis: {url: "%s"}
openai: {baseURL: "%s"}
dispatcher: {health: {port: %d}}`, redis.URL(), api, port)),
		secrets: map[string]map[string]string{
			"nats": {"password": "of-dispatcher"}, "callfan-openai": {"api-key": "any"}, "callfan-admin": {"token": "secret-of-the-admin-api"},
		},
		hosts: map[string]string{"fan-callfan-dispatcher:8420": fmt.Sprintf("127.0.0.1:%d", port), "nats.nats.svc:4222": nats.Addr()},
	}
	team := &kubelet{
		programs: programs,
		release:  render(t, read(t, teamsDir, "teams-values.yaml"), read(t, teamsDir, "teams/stock.yaml"), fmt.Sprintf("executors: {stock: {health: {port: %d}}}", teamPort)),
		secrets:  map[string]map[string]string{"nats": {"password": "of-stock"}},
		hosts:    map[string]string{"nats.nats.svc:4222": nats.Addr(), "api.stock.svc:8080": strings.TrimPrefix(backend.URL, "http://")},
	}
	dispatcher := platform.start(t, "dispatcher")
	dispatcher.probe(t)
	register := team.start(t, "executor-stock-register")
	require.Zero(t, register.Wait(), "%s", register.Stderr)
	stock := team.start(t, "executor-stock")
	stock.probe(t)
	asked := platform.ask(t, `{"rounds":[[{"name":"get_stock","arguments":{"article":"lamp"}}]],"say":"done"}`)
	require.Zero(t, asked.Wait(), "%s", asked.Stderr)
	require.Contains(t, asked.Stdout.String(), "seven left")
	require.NotContains(t, register.Stderr.String()+stock.Stderr.String(), "denied", "they need no more than they are allowed")
	stock.terminate(t)
	dispatcher.terminate(t)
}

// simulate starts the simulator and gives its base URL.
func simulate(t *testing.T, programs string) string {
	t.Helper()
	p := programtest.Start(t, programtest.Command{Path: filepath.Join(programs, "callfan"), Args: []string{"simulate", "--listen", "127.0.0.1:0"}})
	p.Await(p.Stdout, "OPENAI_BASE_URL=")
	return regexp.MustCompile(`OPENAI_BASE_URL=(\S+)`).FindStringSubmatch(p.Stdout.String())[1]
}

// ask asks an agent with the environment of the pod of `helm test`.
func (k *kubelet) ask(t *testing.T, text string) *programtest.Process {
	t.Helper()
	with := *k
	with.release = nil
	for _, o := range k.release {
		if o.Component == "check" && o.Kind == "Job" {
			o.Text = []byte(regexp.MustCompile(`(?s)args:\n.*?\n(\s+env:)`).ReplaceAllString(string(o.Text), fmt.Sprintf("args: [ask, %q]\n$1", text)))
		}
		with.release = append(with.release, o)
	}
	return with.start(t, "check").Process
}

func accessPlan(t *testing.T, options natsaccess.Options, pools ...string) natsaccess.Plan {
	t.Helper()
	var parsed []natsaccess.Pool
	for _, text := range pools {
		pool, err := natsaccess.ParsePool(text)
		require.NoError(t, err)
		parsed = append(parsed, pool)
	}
	plan, err := natsaccess.New(parsed, options)
	require.NoError(t, err)
	return plan
}

// credentials makes users as JWTs, which may do what `callfan nats permissions` says.
func credentials(t *testing.T, pools ...string) (resolver string, of func(user string) string) {
	t.Helper()
	dir := t.TempDir()
	script := "nsc add operator --name operator --sys\nnsc add account --name CALLFAN\n" +
		"nsc edit account --name CALLFAN --js-mem-storage -1 --js-disk-storage -1\nnsc add user --account CALLFAN --name dispatcher\n" +
		accessPlan(t, natsaccess.Options{}, pools...).NSC() + "\nnsc generate config --mem-resolver --config-file resolver.conf\n"
	cmd := exec.CommandContext(t.Context(), "sh", "-euc", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+testservers.NSC(t)+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+dir, "TMPDIR="+dir,
		"NSC_HOME="+dir+"/nsc", "NKEYS_PATH="+dir+"/keys", "XDG_DATA_HOME="+dir+"/data", "XDG_CONFIG_HOME="+dir+"/config")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return read(t, dir, "resolver.conf"), func(user string) string {
		return read(t, dir, "keys/creds/operator/CALLFAN", user+".creds")
	}
}

// nkeyUsers is the configuration for users with nkeys, and their seeds.
func nkeyUsers(t *testing.T, pools ...string) (config string, seeds map[string]string) {
	t.Helper()
	plan := accessPlan(t, natsaccess.Options{NKeys: true, Installation: queue.Config{Prefix: "shared"}}, pools...)
	seeds = map[string]string{}
	for _, name := range []string{"dispatcher", plan.Grants[0].Pool} {
		pair, err := nkeys.CreateUser()
		require.NoError(t, err)
		public, err := pair.PublicKey()
		require.NoError(t, err)
		seed, err := pair.Seed()
		require.NoError(t, err)
		seeds[name] = string(seed)
		config += fmt.Sprintf("%s_NKEY: %s\n", strings.ToUpper(name), public)
	}
	return config + plan.Config(), seeds
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	require.NoError(t, err)
	return string(text)
}
