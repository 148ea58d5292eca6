//go:build unix

// Package peers runs callfan against servers of the Responses API that others wrote: what callfan asks for, and how it
// reads the answers, is not judged by the simulator of this repository alone.
package peers

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/programtest"
	"github.com/callfan/callfan/internal/runs"
	"github.com/callfan/callfan/internal/testservers"
)

func TestMain(m *testing.M) {
	code := m.Run()
	programtest.Remove()
	os.Exit(code)
}

const (
	// remedy is what a failure for want of a server says.
	remedy = "a server is not installed; remedy: make peers-deps"
	// patience bounds the waits.
	patience = 60 * time.Second

	warmer = "Shanghai is 3 degrees warmer than Beijing."
)

// aimock starts the server from npm and returns its URL.
func aimock(t *testing.T) string {
	t.Helper()
	const program = "aimock/node_modules/@copilotkit/aimock/dist/cli.js"
	require.FileExists(t, program, remedy)
	node, err := exec.LookPath("node")
	require.NoError(t, err, "remedy: make deps")
	// Strict: a request that no fixture foresees is refused, not answered with something.
	p := programtest.Start(t, programtest.Command{
		Path: node, Args: []string{program, "--port", "0", "--host", "127.0.0.1", "--strict", "--fixtures", "aimock/fixtures.json", "--chunk-size", "7"},
	})
	p.Await(p.Stdout, "listening on http")
	return regexp.MustCompile(`listening on (http://\S+)`).FindStringSubmatch(p.Stdout.String())[1]
}

// llmMockAPI starts the server from PyPI and returns its URL.
func llmMockAPI(t *testing.T) string {
	t.Helper()
	const python = "llm-mock-api/.venv/bin/python"
	require.FileExists(t, "llm-mock-api/.venv/installed", remedy)
	free, err := net.Listen("tcp", "127.0.0.1:0") // the server does not say which port it got
	require.NoError(t, err)
	address := free.Addr().String()
	require.NoError(t, free.Close())
	programtest.Start(t, programtest.Command{
		Path: python, Args: []string{
			"-m", "llm_mock_api.cli", "start", "--host", "127.0.0.1", "--port", strings.TrimPrefix(address, "127.0.0.1:"),
			"--rules", "llm-mock-api/rules.json5", "--chunk-size", "7", "--latency", "2",
		},
	})
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, patience, 50*time.Millisecond, "llm-mock-api does not listen")
	return "http://" + address
}

// installation is callfan in front of a server.
type installation struct {
	admin string
	// executions is where each function writes a line when it is run.
	executions string
}

var servesAt = regexp.MustCompile(`msg="serving health, metrics and the admin API" address=(\S+)`)

func install(t *testing.T, api string) *installation {
	t.Helper()
	nats := testservers.NATS(t)
	dispatcher := programtest.Start(t, programtest.Command{
		Path: programtest.Build(t, "cmd/dispatcher"), Args: []string{"--listen", "127.0.0.1:0", "--partitions", "4"},
		Env: []string{"OPENAI_BASE_URL=" + api + "/v1", "OPENAI_API_KEY=any", "NATS_URL=" + nats.URL()},
	})
	i := &installation{executions: filepath.Join(t.TempDir(), "executions.txt")}
	executor := programtest.Start(t, programtest.Command{
		Path: programtest.Build(t, "cmd/executor"), Args: []string{"functions/functions.yaml"},
		Env: []string{"NATS_URL=" + nats.URL(), "EXECUTIONS=" + i.executions},
	})
	dispatcher.Await(dispatcher.Stderr, "serving health, metrics and the admin API")
	i.admin = "http://" + servesAt.FindStringSubmatch(dispatcher.Stderr.String())[1]
	executor.Await(executor.Stderr, "executor serves")
	return i
}

// callfan runs the command line with an input, and returns what it printed.
func (i *installation) callfan(t *testing.T, input string, args ...string) string {
	t.Helper()
	code, p := programtest.Run(t, programtest.Command{
		Path: programtest.Build(t, "cmd/callfan"), Args: args, Stdin: strings.NewReader(input),
		Env: []string{"CALLFAN_DISPATCHER=" + i.admin},
	})
	require.Zero(t, code, p.Stderr)
	return p.Stdout.String()
}

// run makes a run of a request and returns it.
func (i *installation) run(t *testing.T, request string) (run runs.Run) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(i.callfan(t, request, "run", "--json", "--request", "-")), &run))
	return run
}

// executed is how often functions were run for a run.
func (i *installation) executed(t *testing.T, run string) int {
	t.Helper()
	lines, err := os.ReadFile(i.executions)
	require.NoError(t, err)
	return strings.Count(string(lines), run+" ")
}

// requireWarmer checks the run that compares two cities: three rounds, of which the first has two calls.
func (i *installation) requireWarmer(t *testing.T, run runs.Run) {
	t.Helper()
	require.Equal(t, runs.Completed, run.Status, run.Error)
	require.Equal(t, warmer, run.Text)
	var calls [][]string
	for _, round := range run.Rounds {
		var names []string
		for _, c := range round.Calls {
			names = append(names, c.Function)
		}
		calls = append(calls, names)
	}
	require.Equal(t, [][]string{{"get_weather", "get_weather"}, {"calculate"}, nil}, calls)
	require.Equal(t, 3, i.executed(t, run.ID))
}

const tools = `"tools":["get_weather","calculate","get_time"]`

// TestAimock runs against @copilotkit/aimock, whose fixtures ask for the outputs of the calls before.
func TestAimock(t *testing.T) {
	t.Parallel()
	i := install(t, aimock(t))
	for name, mode := range map[string]string{
		"streamed":                   `,"background":false`,
		"at once":                    `,"background":false,"stream":false`,
		"not stored":                 `,"store":false`,
		"not stored, at once":        `,"store":false,"stream":false`,
		"with encrypted reasoning":   `,"store":false,"model":"gpt-5"`,
		"background, which it lacks": ``,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(mode, "model") {
				mode += `,"model":"gpt-4o"`
			}
			run := i.run(t, `{"input":"Which is warmer, Beijing or Shanghai?",`+tools+mode+`}`)
			i.requireWarmer(t, run)
			if strings.Contains(mode, "gpt-5") {
				require.Equal(t, 3, run.Rounds[0].Items, "a reasoning item and two calls")
			}
		})
	}
	t.Run("an error in an output", func(t *testing.T) {
		t.Parallel()
		run := i.run(t, `{"model":"gpt-4o","input":"What time is it?","background":false,`+tools+`}`)
		require.Equal(t, runs.Completed, run.Status, run.Error)
		require.Equal(t, "I cannot tell the time.", run.Text)
	})
	t.Run("a request that is refused", func(t *testing.T) {
		t.Parallel()
		code, p := programtest.Run(t, programtest.Command{
			Path: programtest.Build(t, "cmd/callfan"), Args: []string{"run", "--no-store", "--time", "2s", "What is nowhere foreseen?"},
			Env: []string{"CALLFAN_DISPATCHER=" + i.admin},
		})
		require.Equal(t, 1, code)
		require.Contains(t, p.Stderr.String(), "the run has no answer")
	})
	t.Run("shown as it comes", func(t *testing.T) {
		t.Parallel()
		shown := i.callfan(t, "", "run", "--stream", "--no-store", "--model", "gpt-4o", "--tools", "get_weather,calculate", "Which is warmer?")
		require.Equal(t, 2, strings.Count(shown, "calling get_weather\n"), shown)
		require.Equal(t, 1, strings.Count(shown, "calling calculate\n"), shown)
		require.True(t, strings.HasSuffix(shown, warmer+"\n"), shown)
	})
}

// TestLLMMockAPI runs against llm-mock-api, which numbers its events and knows a request by its user message.
func TestLLMMockAPI(t *testing.T) {
	t.Parallel()
	i := install(t, llmMockAPI(t))
	for question, mode := range map[string]string{"in a stream": ``, "at once": `,"stream":false`} {
		t.Run(question, func(t *testing.T) {
			t.Parallel()
			run := i.run(t, `{"model":"any","input":"Which is warmer, `+question+`?","store":false,`+tools+mode+`}`)
			i.requireWarmer(t, run)
		})
	}
}
