package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/programtest"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/queue"
)

const (
	customerSchema = `{ "type": "object", "properties": {"customer_id": {"type": "integer", "description": "<id>"}}, "required": ["customer_id"], "additionalProperties": false }`
	refundSchema   = `{"type":"object","properties":{"amount":{"type":"number"},"reason":{"type":"string"}},"required":["amount"]}`
)

// toolbox is a dev with two registered functions.
type toolbox struct {
	*dev
	t   *testing.T
	dir string
}

func startToolbox(t *testing.T) *toolbox {
	t.Helper()
	d := startDev(t, t.TempDir(), nil)
	conn, err := queue.Connect(t.Context(), queue.Config{URL: d.nats})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	_, err = conn.Register(t.Context(), queue.Registration{
		Pool: "crm", ID: "crm-1", Language: "go", Version: "1.4", Host: "here", Functions: []call.Function{
			{Name: "get_customer", Description: "Look up a customer by id.", Parameters: json.RawMessage(customerSchema)},
			{Name: "refund", Parameters: json.RawMessage(refundSchema)},
		},
	})
	require.NoError(t, err)
	return &toolbox{dev: d, t: t, dir: t.TempDir()}
}

// sh runs a line of a shell in a directory of its own.
func (b *toolbox) sh(code int, line string) *programtest.Process {
	b.t.Helper()
	got, p := programtest.Run(b.t, programtest.Command{
		Path: "/bin/sh", Args: []string{"-uc", "cd " + b.dir + " && " + line}, Env: append(b.environment(),
			"PATH="+filepath.Dir(programtest.Build(b.t, "cmd/callfan"))+":"+os.Getenv("PATH")),
	})
	require.Equal(b.t, code, got, "%s: %s%s", line, p.Stdout, p.Stderr)
	return p
}

func (b *toolbox) get(path string) string {
	b.t.Helper()
	res, err := http.Get(b.admin + path) //nolint:noctx // a test's request
	require.NoError(b.t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(b.t, err)
	return string(body)
}

func (b *toolbox) client() openai.Client { return client(b.api) }

func (b *toolbox) newAgent(tools string) string {
	b.t.Helper()
	c := b.client()
	agent, err := c.Beta.Agents.New(b.t.Context(), openai.BetaAgentNewParams{},
		option.WithRequestBody("application/json", []byte(`{"model":"gpt-6-astra","tools":`+tools+`}`)))
	require.NoError(b.t, err)
	return agent.ID
}

func (b *toolbox) agentTools(id string) string {
	b.t.Helper()
	c := b.client()
	agent, err := c.Beta.Agents.Get(b.t.Context(), id)
	require.NoError(b.t, err)
	return agent.JSON.Tools.Raw()
}

func (b *toolbox) newSession(tools string) string {
	b.t.Helper()
	c := b.client()
	session, err := c.Beta.Agents.Sessions.New(b.t.Context(), openai.BetaAgentSessionNewParams{}, option.WithRequestBody("application/json",
		[]byte(`{"agent":{"model":"gpt-6-astra","tools":`+tools+`},"environment":{"type":"none"},"input":"{\"say\":\"hello\"}"}`)))
	require.NoError(b.t, err)
	return session.ID
}

func (b *toolbox) sessionTools(id string) string {
	b.t.Helper()
	c := b.client()
	session, err := c.Beta.Agents.Sessions.Get(b.t.Context(), id)
	require.NoError(b.t, err)
	return session.Agent.JSON.Tools.Raw()
}

// toolsPage is the lines of commands of docs/tools.md.
func toolsPage(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(programtest.Root(), "docs", "tools.md"))
	require.NoError(t, err)
	var lines []string
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) {
		for line := range strings.Lines(block[1]) {
			line, _, _ = strings.Cut(line, " # ")
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

const oldTools = `[{"type":"web_search"},
	{"type":"function","name":"get_customer","description":"Look up a customer.","parameters":{"type":"object","properties":{"customer_id":{"type":"string"}}},"async":true},
	{"type":"function","name":"alien","description":"","parameters":{"type":"object"}}]`

// TestToolsPage runs the commands of docs/tools.md.
func TestToolsPage(t *testing.T) {
	t.Parallel()
	b := startToolbox(t)
	session := b.newSession(oldTools)
	b.sh(exitOK, "callfan sessions watch "+session)
	agent := b.newAgent(oldTools)
	require.Eventually(t, func() bool {
		return regexp.MustCompile(`(?m)^` + session + ` .* get_customer$`).MatchString(b.sh(exitOK, "callfan sessions list").Stdout.String())
	}, time.Minute, 50*time.Millisecond, "the session's tool is not as it is registered")
	require.Contains(t, b.get("/metrics"), `callfan_events_total{event="tool_drift"} 1`)
	lists, syncs := 0, 0
	for _, line := range toolsPage(t) {
		run := strings.NewReplacer("agent_1", agent, "sess_1", session).Replace(line)
		switch {
		case strings.HasPrefix(line, "callfan functions list"):
			require.Regexp(t, `(?m)^get_customer +crm +go .* 1\.4 +1 +20\S+Z +Look up`, b.sh(exitOK, run).Stdout)
		case strings.HasPrefix(line, "callfan functions show"):
			require.Regexp(t, `(?m)^crm-1 +go +1\.4 +here +20\S+Z +in force$`, b.sh(exitOK, run).Stdout)
		case strings.HasPrefix(line, "callfan sessions list"):
			require.Regexp(t, `(?m)^`+session+` `, b.sh(exitOK, run).Stdout)
		case strings.HasPrefix(line, "callfan tools sync"):
			syncs++
			asks := !strings.Contains(line, "--yes")
			if asks {
				run = "echo y | " + run
			}
			p := b.sh(exitOK, run)
			require.Equal(t, asks, strings.Contains(p.Stdout.String(), "Change the tools of agent "+agent+"? [y/N]"), p.Stdout)
		case strings.HasPrefix(line, "callfan tools"):
			lists++
			p := b.sh(exitOK, run)
			require.Contains(t, p.Stdout.String(), `"parameters":`+customerSchema)
			require.True(t, json.Valid([]byte(p.Stdout.String())))
			require.Equal(t, strings.Contains(line, "--responses"), strings.Contains(p.Stdout.String(), `"strict":true`))
			if strings.Contains(line, "--responses") {
				page, err := os.ReadFile(filepath.Join(programtest.Root(), "docs", "tools.md"))
				require.NoError(t, err)
				require.Contains(t, string(page), p.Stderr.String(), "the page shows it")
				require.NotEmpty(t, p.Stderr.String())
			}
		case strings.HasPrefix(line, "(printf"):
			b.sh(exitOK, run)
			body, err := os.ReadFile(filepath.Join(b.dir, "agent.json"))
			require.NoError(t, err)
			c := b.client()
			_, err = c.Beta.Agents.New(t.Context(), openai.BetaAgentNewParams{}, option.WithRequestBody("application/json", body))
			require.NoError(t, err)
		default:
			t.Errorf("this test does not know the line %s", line)
		}
	}
	require.Equal(t, 5, lists)
	require.Equal(t, 4, syncs)
	require.Equal(t, `[{"type":"web_search"},{"type":"function","name":"get_customer","description":"Look up a customer by id.","defer_loading":false,"async":true,"parameters":`+
		customerSchema+`},{"type":"function","name":"refund","description":"","defer_loading":false,"async":false,"parameters":`+refundSchema+`}]`, b.agentTools(agent))
	require.Contains(t, b.sessionTools(session), customerSchema)
	require.NotContains(t, b.sessionTools(session), "refund")
	require.Contains(t, b.sessionTools(session), "alien")

	conn, err := queue.Connect(t.Context(), queue.Config{URL: b.nats})
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Register(t.Context(), queue.Registration{
		Pool: "erp", ID: "erp-1", Language: "go", Host: "here", Functions: []call.Function{{Name: "erp.find", Parameters: json.RawMessage(customerSchema)}},
	})
	require.NoError(t, err)
	p := b.sh(exitOK, "callfan tools erp.find get_customer --responses")
	require.Contains(t, p.Stdout.String(), `{"type":"namespace","name":"erp","description":"The functions of erp.","tools":[{"type":"function","name":"find",`)
	require.Equal(t, exitOK, b.Stop())
}

// Agents and sessions get what is registered, and only if somebody agrees.
func TestToolsSync(t *testing.T) {
	t.Parallel()
	b := startToolbox(t)
	agent := b.newAgent(oldTools)
	sync := "callfan tools sync --agent " + agent

	before := b.agentTools(agent)
	p := b.sh(exitFailed, "echo n | "+sync)
	require.Contains(t, p.Stderr.String(), "nothing was changed")
	require.Contains(t, p.Stdout.String(), `changed get_customer
  - description: "Look up a customer."
  + description: "Look up a customer by id."
    async: true
    parameters: {
  +   "additionalProperties": false,
      "properties": {
        "customer_id": {
  -       "type": "string"
  +       "description": "<id>",
  +       "type": "integer"
        }
      },
`)
	require.Contains(t, p.Stdout.String(), "added refund\n  + parameters: {\n")
	require.NotContains(t, p.Stdout.String(), "alien", "it is not asked to go")
	b.sh(exitFailed, sync+" </dev/null")
	require.Equal(t, before, b.agentTools(agent))

	require.Contains(t, b.sh(exitOK, sync+" --yes").Stdout.String(), "has 4 tools now")
	after := b.agentTools(agent)

	// Nothing differs: nobody is asked, and nothing is sent.
	var sent atomic.Int32
	front := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		if r.In.Method != http.MethodGet {
			sent.Add(1)
		}
		r.Out.URL.Scheme, r.Out.URL.Host = "http", strings.TrimSuffix(strings.TrimPrefix(b.api, "http://"), "/v1")
	}}
	server := httptest.NewServer(front)
	t.Cleanup(server.Close)
	through := "OPENAI_BASE_URL=" + server.URL + "/v1 "
	p = b.sh(exitOK, through+sync+" </dev/null")
	require.Contains(t, p.Stdout.String(), "as they are registered")
	b.sh(exitOK, through+sync+" --yes")
	require.Zero(t, sent.Load())
	require.Equal(t, after, b.agentTools(agent))
	require.Contains(t, b.sh(exitOK, through+sync+" --yes --prune --defer-loading --tool-search").Stdout.String(), "removed alien")
	require.Contains(t, b.agentTools(agent), `{"type":"tool_search"}`)
	require.Equal(t, 2, strings.Count(b.agentTools(agent), `"defer_loading":true`))
	require.EqualValues(t, 1, sent.Load())

	for line, text := range map[string]string{
		"callfan tools nope":                                            `no function "nope"`,
		"callfan tools --pool nope":                                     `by pool "nope"`,
		"callfan tools sync":                                            "--agent",
		"callfan tools sync --agent a --session":                        "--session",
		"OPENAI_BASE_URL= OPENAI_API_KEY= callfan tools sync --agent a": "OPENAI_API_KEY",
	} {
		require.Contains(t, b.sh(exitInvalid, line).Stderr.String(), text)
	}
	require.Contains(t, b.sh(exitFailed, "callfan tools sync --agent agent_gone").Stderr.String(), "agent_gone")

	// A session hides the headers of MCP servers.
	session := b.newSession(`[{"type":"mcp","server_label":"erp","transport":{"type":"http","server_url":"https://example.com"}}]`)
	sync = "callfan tools sync --session " + session + " get_customer --yes"
	require.Contains(t, b.sh(exitFailed, sync).Stderr.String(), "erp")
	b.sh(exitOK, sync+" --drop-mcp-headers")
	require.Contains(t, b.sessionTools(session), customerSchema)
	require.Contains(t, b.sessionTools(session), `"server_label":"erp"`)
	require.Equal(t, exitOK, b.Stop())
}

// What the admin API shows has the bytes that were registered.
func TestFunctionsKeepTheirBytes(t *testing.T) {
	t.Parallel()
	b := startToolbox(t)
	require.Contains(t, b.sh(exitOK, "callfan functions list --json").Stdout.String(), `"parameters":`+customerSchema)
	var list struct {
		Functions []struct {
			Parameters json.RawMessage `json:"parameters"`
		} `json:"functions"`
	}
	require.NoError(t, json.Unmarshal([]byte(b.get("/v1/functions")), &list))
	require.Equal(t, customerSchema, string(list.Functions[0].Parameters))
	require.Equal(t, exitOK, b.Stop())
}
