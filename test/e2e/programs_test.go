package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/programtest"
	"github.com/callfan/callfan/internal/simulator"
	"github.com/callfan/callfan/internal/testservers"
)

// installation is the three programs as processes, beside real servers.
type installation struct {
	t         *testing.T
	nats      *testservers.NATSServer
	redis     *testservers.RedisServer
	simulator *programtest.Process
	baseURL   string
	api       openai.Client
	// functions is the executors' file, and runs where its programs write a line for each run.
	functions, runs string
}

var listensOn = regexp.MustCompile(`listens on (http://\S+/v1)`)

// install starts the servers and the simulator, and writes the functions file: "count" notes its run and gives its
// arguments back, "slow" does so after 300 ms, "double" is an HTTP endpoint.
func install(t *testing.T) *installation {
	t.Helper()
	i := &installation{t: t, nats: testservers.NATS(t), redis: testservers.Redis(t, testservers.RedisAppendOnly())}
	i.simulator = programtest.Start(t, programtest.Command{
		Path: programtest.Build(t, "cmd/callfan"), Args: []string{"simulate", "--listen", "127.0.0.1:0"},
	})
	i.simulator.Await(i.simulator.Stdout, "OPENAI_API_KEY=any\n")
	i.baseURL = listensOn.FindStringSubmatch(i.simulator.Stdout.String())[1]
	i.api = openai.NewClient(option.WithBaseURL(i.baseURL), option.WithAPIKey("test"), option.WithMaxRetries(0))

	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ N int }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.N < 0 {
			http.Error(w, "n must be a number that is not negative", http.StatusUnprocessableEntity)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]int{"n": 2 * in.N})
	}))
	t.Cleanup(endpoint.Close)
	dir := t.TempDir()
	i.functions, i.runs = filepath.Join(dir, "functions.yaml"), filepath.Join(dir, "runs.txt")
	write(t, filepath.Join(dir, "count.sh"), "#!/bin/sh\necho \"$FN_CALL_ID\" >> runs.txt\nsleep \"$1\"\ncat\n", 0o700)
	write(t, i.functions, `pool: things
functions:
  count:
    exec: {command: [./count.sh, "0"]}
  slow:
    exec: {command: [./count.sh, "0.3"]}
  double:
    effects: none
    http: {url: "`+endpoint.URL+`"}
`, 0o600)
	return i
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), mode))
}

// daemon is a running dispatcher.
type daemon struct {
	*programtest.Process
	admin string
}

var servesAt = regexp.MustCompile(`msg="serving health, metrics and the admin API" address=(\S+)`)

// dispatch starts a dispatcher. The prefix keeps installations on the same servers apart.
func (i *installation) dispatch(prefix string, args ...string) *daemon {
	i.t.Helper()
	d := &daemon{Process: programtest.Start(i.t, programtest.Command{
		Path: programtest.Build(i.t, "cmd/dispatcher"), Args: args,
		Env: []string{
			"OPENAI_BASE_URL=" + i.baseURL, "OPENAI_API_KEY=test", "NATS_URL=" + i.nats.URL(), "REDIS_URL=" + i.redis.URL(),
			"CALLFAN_PREFIX=" + prefix, "CALLFAN_REDIS_PREFIX=" + prefix, "CALLFAN_LISTEN=127.0.0.1:0",
			"CALLFAN_PARTITIONS=4", "CALLFAN_POLL_INTERVAL=200ms", "CALLFAN_LEASE_TTL=2s", "CALLFAN_ACK_WAIT=5s",
		},
	})}
	d.Await(d.Stderr, "serving health, metrics and the admin API")
	d.admin = "http://" + servesAt.FindStringSubmatch(d.Stderr.String())[1]
	return d
}

// readiness is the answer of /readyz.
func (d *daemon) readiness(t *testing.T) (status int, body string) {
	t.Helper()
	res, err := http.Get(d.admin + "/readyz") //nolint:noctx // a test on loopback
	require.NoError(t, err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(raw)
}

func (d *daemon) awaitReady(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		status, _ := d.readiness(t)
		return status == http.StatusOK
	}, patience, 20*time.Millisecond, "the dispatcher is not ready")
}

func (i *installation) execute(prefix string) *programtest.Process {
	i.t.Helper()
	return programtest.Start(i.t, programtest.Command{
		Path: programtest.Build(i.t, "cmd/executor"), Args: []string{i.functions},
		Env: []string{"NATS_URL=" + i.nats.URL(), "CALLFAN_PREFIX=" + prefix},
	})
}

// params create a session that runs a script.
func params(text string, metadata map[string]string) openai.BetaAgentSessionNewParams {
	p := openai.BetaAgentSessionNewParams{
		Agent:       openai.BetaAgentSessionNewParamsAgent{Model: openai.String("gpt-6-astra")},
		Environment: openai.EnvironmentParamUnion{OfParamNone: &openai.EnvironmentParamNone{}},
		Input:       openai.BetaAgentSessionNewParamsInputUnion{OfString: openai.String(text)},
		Metadata:    metadata,
	}
	for _, name := range []string{"count", "slow", "double"} {
		p.Agent.Tools = append(p.Agent.Tools, openai.AgentToolParamUnion{OfParamFunction: &openai.AgentToolParamFunction{
			Name: name, Description: name, Parameters: map[string]any{"type": "object"},
		}})
	}
	return p
}

func (i *installation) create(text string) string {
	i.t.Helper()
	session, err := i.api.Beta.Agents.Sessions.New(i.t.Context(), params(text, nil))
	require.NoError(i.t, err)
	return session.ID
}

func (i *installation) awaitIdle(id string) {
	i.t.Helper()
	require.Eventually(i.t, func() bool { return i.isIdle(id) }, patience, 20*time.Millisecond, "session %s did not become idle", id)
}

func (i *installation) isIdle(id string) bool {
	session, err := i.api.Beta.Agents.Sessions.Get(i.t.Context(), id)
	return err == nil && session.Status == openai.AgentSessionStatusIdle
}

// get decodes what the simulator knows.
func (i *installation) get(path string, into any) {
	i.t.Helper()
	res, err := http.Get(strings.TrimSuffix(i.baseURL, "/v1") + path) //nolint:noctx // a test on loopback
	require.NoError(i.t, err)
	defer res.Body.Close()
	require.NoError(i.t, json.NewDecoder(res.Body).Decode(into))
}

func (i *installation) stats() (stats simulator.Stats) {
	i.t.Helper()
	i.get("/_sim/stats", &stats)
	return stats
}

// outputs are the submitted outputs of a session, or errors, by call id. All are texts.
func (i *installation) outputs(session string) map[string]string {
	i.t.Helper()
	outputs := map[string]string{}
	for id, raw := range i.rawOutputs(session) {
		var text string
		require.NoError(i.t, json.Unmarshal(raw, &text))
		outputs[id] = text
	}
	return outputs
}

// rawOutputs are the submitted outputs of a session, or errors, as JSON by call id.
func (i *installation) rawOutputs(session string) map[string]json.RawMessage {
	i.t.Helper()
	var list struct {
		Results []struct {
			CallID  string `json:"call_id"`
			Success bool
			Output  json.RawMessage
			Error   json.RawMessage
		}
	}
	i.get("/_sim/results?session="+session, &list)
	outputs := map[string]json.RawMessage{}
	for _, r := range list.Results {
		outputs[r.CallID] = r.Output
		if !r.Success {
			outputs[r.CallID] = r.Error
		}
	}
	return outputs
}

// ran are the ids that the programs noted, one for each run.
func (i *installation) ran() []string {
	i.t.Helper()
	text, err := os.ReadFile(i.runs)
	require.NoError(i.t, err)
	return strings.Fields(string(text))
}

// awaitEmptyStreams waits until no message of the installation is left, dead letters included.
func (i *installation) awaitEmptyStreams() {
	i.t.Helper()
	conn, err := nats.Connect(i.nats.URL())
	require.NoError(i.t, err)
	defer conn.Close()
	js, err := jetstream.New(conn)
	require.NoError(i.t, err)
	for _, name := range []string{"FN_CALLS", "FN_RESULTS", "FN_DEAD"} {
		stream, err := js.Stream(i.t.Context(), name)
		require.NoError(i.t, err)
		require.Eventually(i.t, func() bool {
			info, err := stream.Info(i.t.Context())
			return err == nil && info.State.Msgs == 0
		}, patience, 50*time.Millisecond, "messages are left in %s", name)
	}
}
