package functionfile

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor/executortest"
)

// serveTools is an MCP server on the standard streams with tools of these names.
func serveTools(names ...string) {
	s := mcp.NewServer(&mcp.Implementation{Name: "tools"}, nil)
	for _, name := range names {
		mcp.AddTool(s, &mcp.Tool{Name: name, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
			func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name + " of " + os.Getenv("NAME")}}}, nil, nil
			})
	}
	_ = s.Run(context.Background(), &mcp.StdioTransport{})
}

// server is an MCP server of a file, played by this test binary.
func server(t *testing.T, name, tools string, lines ...string) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return "  " + name + ":\n    command: [" + self + ", play, tools, " + tools + "]\n    env: {NAME: " + name + ", GORACE: atexit_sleep_ms=0}\n    " +
		strings.Join(lines, "\n    ") + "\n"
}

// open loads a file and waits for its servers.
func open(t *testing.T, text string) (*File, error) {
	t.Helper()
	f, err := Load(write(t, text))
	require.NoError(t, err)
	require.True(t, f.HasServers())
	servers := f.Open("v1", slog.New(slog.DiscardHandler))
	t.Cleanup(servers.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err = f.Tools(ctx, servers)
	if err == nil {
		for name, err := range servers.Ready() {
			require.NoError(t, err, name)
		}
	}
	return f, err
}

func TestToolsOfServersAreFunctions(t *testing.T) {
	t.Parallel()
	f, err := open(t, "pool: tools\nfunctions:\n  local: {exec: {command: [./ok.sh]}}\nmcp:\n"+
		server(t, "blue", "a,b", "timeout: 7s", "overrides: {b: {effects: none, attempts: 2, description: B., concurrency: 1}}")+
		server(t, "red", "a,c", "prefix: red_", "trust_annotations: true", "tools: [a]"))
	require.NoError(t, err)
	require.Equal(t, "exec, mcp", f.Language())
	ex := executortest.New(t)
	require.NoError(t, f.Add(ex))
	var names []string
	byName := map[string]call.Function{}
	for _, fn := range ex.Functions() {
		names, byName[fn.Name] = append(names, fn.Name), fn
	}
	require.Equal(t, []string{"local", "a", "b", "red_a"}, names)
	require.Equal(t, call.Policy{Timeout: call.Duration(7 * time.Second)}, byName["a"].Policy)
	require.Equal(t, call.Policy{Timeout: call.Duration(7 * time.Second), Effects: call.EffectsNone, Attempts: 2}, byName["b"].Policy)
	require.Equal(t, "B.", byName["b"].Description)
	require.Equal(t, call.EffectsNone, byName["red_a"].Policy.Effects)
	require.Equal(t, "a of red", executortest.Text(t, executortest.Call(t, ex, "red_a", `{}`)))
}

func TestConflictsOfToolsNameBothAndTheRemedy(t *testing.T) {
	t.Parallel()
	_, err := open(t, "pool: tools\nmcp:\n"+server(t, "blue", "a")+server(t, "red", "a"))
	require.ErrorContains(t, err, `functions.yaml:7:3: two functions are named "a": the tool "a" of the MCP server "blue" and the tool "a" of the MCP server "red"; `+
		"add a prefix to a server, such as `prefix: red_`, or a name under overrides, or leave one out by tools")
	_, err = open(t, "pool: tools\nfunctions:\n  a: {exec: {command: [./ok.sh]}}\nmcp:\n"+server(t, "blue", "a"))
	require.ErrorContains(t, err, `two functions are named "a": the function "a" of this file and the tool "a" of the MCP server "blue"; `)
	_, err = open(t, "pool: tools\nmcp:\n"+server(t, "blue", "a", "tools: [b]"))
	require.ErrorContains(t, err, `functions.yaml:3:3: the tools are not as configured: MCP server "blue" has no tool "b"; it has: a`)
}

func TestWhatIsWrongWithAServerIsNamed(t *testing.T) {
	t.Parallel()
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("two words"), 0o600))
	for want, line := range map[string]string{
		`4:5: MCP server "m" has no key "comand"; did you mean "command"? (known keys: command, dir, env, url, headers, bearer_file, tools, prefix, trust_annotations, concurrency, start_timeout, overrides, timeout, queue_timeout, total_deadline, attempts, backoff, effects, on_uncertain, verify)`: "comand: [x]",
		`3:3: MCP server "m" has neither command nor url; add the one that reaches it`:                                                                       "prefix: x",
		`4:26: MCP server "m" has both command and url; keep one`:                                                                                            `{command: [./ok.sh], url: "http://h"}`,
		`4:26: MCP server "m": headers does not go with command; remove it`:                                                                                  `{command: [./ok.sh], headers: {}}`,
		`4:15: MCP server "m": command: the program "no-such-program" is not in PATH; install it or write its path`:                                          "command: [no-such-program]",
		`4:10: MCP server "m": url holds a secret in "api_key"; send it by a header from the environment, or by bearer_file`:                                 `url: "http://h/?api_key=x"`,
		`4:10: MCP server "m": url holds a user or password; send it by a header from the environment, such as Authorization: "Basic ${NAME}"`:               `url: "http://u:p@h/"`,
		`4:48: MCP server "m": headers: Authorization holds a secret in the file; take it from the environment, such as ${NAME}, or use bearer_file`:         `{url: "http://h", headers: {Authorization: Bearer x}}`,
		`4:33: MCP server "m": headers: Mcp-Session-Id is set by the protocol; remove it`:                                                                    `{url: "http://h", headers: {Mcp-Session-Id: x}}`,
		`MCP server "m": the bearer token: ` + token + ` must hold one line of printable characters without spaces`:                                          `{url: "http://h", bearer_file: ` + token + `}`,
		`4:6: MCP server "m": tools is empty; name at least one, or leave it out for all`:                                                                    "{tools: [], url: x}",
		`4:30: MCP server "m": trust_annotations must be true or false, not a text`:                                                                          "{     trust_annotations: maybe}",
		`4:16: MCP server "m": effects is "some"; use none, idempotent or side_effects`:                                                                      "{effects:  some}",
		`4:18: MCP server "m": concurrency is 1.5; use a whole number from 1`:                                                                                "concurrency: 1.5",
		`MCP server "m" has both effects and trust_annotations; keep one, and put what one tool has of its own under overrides`:                              "{effects: none, trust_annotations: true}",
		`MCP server "m": on_uncertain is verify, and there is no verify; add the one that finds out, or use park, fail or rerun`:                             "on_uncertain: verify",
		`MCP server "m": overrides: a: on_uncertain is verify, and there is no verify; add the one that finds out, or use park, fail or rerun`:               "overrides: {a: {on_uncertain: verify}}",
		`MCP server "m": overrides: a has no key "exec" (known keys: name, description, concurrency, timeout, queue_timeout, total_deadline, attempts, back`: "overrides: {a: {exec: {}}}",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			_, err := Load(write(t, "pool: tools\nmcp:\n  m:\n    "+line+"\n"))
			require.ErrorContains(t, err, want)
		})
	}
	f, err := Load(write(t, "pool: tools\nmcp:\n  m:\n    command: [./ok.sh]\n    verify: {exec: {command: [./ok.sh]}}\n    overrides: {a: {on_uncertain: verify}}\n"))
	require.NoError(t, err)
	require.Empty(t, f.Functions)
}
