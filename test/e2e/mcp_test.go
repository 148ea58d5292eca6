package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/openai/openai-go/v3"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/programtest"
)

// guideBlocks are the code blocks of the guide to MCP servers in one language.
func guideBlocks(t *testing.T, language string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(programtest.Root(), "docs", "executors", "mcp.md"))
	require.NoError(t, err)
	var blocks []string
	for _, match := range fenced.FindAllStringSubmatch(string(text), -1) {
		if match[1] == language {
			blocks = append(blocks, match[2])
		}
	}
	return blocks
}

func TestMCPGuide(t *testing.T) {
	t.Parallel()
	commands, files := guideBlocks(t, "sh"), guideBlocks(t, "yaml")
	require.Len(t, commands, 3, "a block of commands is not run")
	example, err := os.ReadFile(filepath.Join(programtest.Root(), "examples", "executor-mcp", "functions.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(example), files[0], "the file is the example")

	dev := shell(t, commands[0], []string{
		"CALLFAN_DEV_DIR=" + t.TempDir(), "CALLFAN_DEV_NATS_LISTEN=127.0.0.1:0", "CALLFAN_DEV_SIMULATE_LISTEN=127.0.0.1:0", "CALLFAN_LISTEN=127.0.0.1:0",
	})
	dev.Await(dev.Stdout, "OPENAI_API_KEY=any\n")
	printed := func(pattern string) string {
		match := regexp.MustCompile(pattern).FindStringSubmatch(dev.Stdout.String())
		require.NotNil(t, match, pattern)
		return match[1]
	}
	programtest.Build(t, "examples/executor-mcp") // so that the file's `go run` has it in the build cache
	executor := shell(t, commands[1], []string{"NATS_URL=" + printed(`NATS_URL=(\S+)`)})
	executor.Await(executor.Stderr, "executor serves")
	ask := shell(t, commands[2], []string{"CALLFAN_DISPATCHER=" + printed(`health, admin +(\S+)`)},
		"http://127.0.0.1:8421/v1", printed(`OPENAI_BASE_URL=(\S+)`))
	require.Equal(t, 0, ask.Wait())
	require.Contains(t, ask.Stdout.String(), `get_customer({"customer_id":"123"}) = "{\"found\":true,\"name\":\"Example Customer\"}"`)
	require.Contains(t, ask.Stdout.String(), "Customer 456 was not found.")
	require.Equal(t, 0, executor.Stop())
	require.Equal(t, 0, dev.Stop())
}

// everything installs the reference server of the MCP project, from the npm registry
// the first time, and gives its program.
func everything(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(programtest.Root(), "test", "e2e", "testdata", "everything")
	lock, err := os.Stat(filepath.Join(dir, "package-lock.json"))
	require.NoError(t, err)
	program := filepath.Join(dir, "node_modules", ".bin", "mcp-server-everything")
	installed, err := os.Stat(filepath.Join(dir, "node_modules", ".package-lock.json"))
	if err != nil || installed.ModTime().Before(lock.ModTime()) {
		npm := exec.CommandContext(t.Context(), "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
		npm.Dir = dir
		out, err := npm.CombinedOutput()
		require.NoError(t, err, "npm ci in %s: %s; remedy: make deps, which installs Node and npm, and a way to the npm registry", dir, out)
	}
	return program
}

// TestMCPServersBehindTheDispatcher has one turn answered by an MCP server that nobody here wrote and by one over HTTP, with
// the files of the guide.
func TestMCPServersBehindTheDispatcher(t *testing.T) {
	t.Parallel()
	files := guideBlocks(t, "yaml")
	require.Len(t, files, 3)
	server := mcp.NewServer(&mcp.Implementation{Name: "tickets"}, nil)
	server.AddTool(&mcp.Tool{Name: "close_ticket", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			text := string(r.Params.Arguments) + " " + r.Params.Meta["io.github.callfan/idempotencyKey"].(string)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
		})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer hush" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(endpoint.Close)

	i := install(t)
	dispatcher := i.dispatch("fn", "--select", "metadata.dispatch=nats")
	npx := `[npx, -y, "@modelcontextprotocol/server-everything", stdio]`
	require.Contains(t, files[1], npx)
	require.Contains(t, files[2], "http://127.0.0.1:3001/mcp")
	var executors []*programtest.Process
	for _, text := range []string{
		strings.Replace(files[1], npx, "["+everything(t)+", stdio]", 1),
		strings.Replace(files[2], "http://127.0.0.1:3001/mcp", endpoint.URL, 1),
	} {
		file := filepath.Join(t.TempDir(), "functions.yaml")
		write(t, file, text, 0o600)
		executors = append(executors, programtest.Start(t, programtest.Command{
			Path: programtest.Build(t, "cmd/executor"), Args: []string{file}, Env: []string{"NATS_URL=" + i.nats.URL(), "TICKETS_TOKEN=hush"},
		}))
	}
	for _, executor := range executors {
		executor.Await(executor.Stderr, "executor serves")
	}

	asked := params(script("done", []scripted{
		{Name: "mcp_echo", Arguments: json.RawMessage(`{"message":"grüß <Gott>"}`), CallID: "echo"},
		{Name: "mcp_get-sum", Arguments: json.RawMessage(`{"a":2,"b":40}`), CallID: "sum"},
		{Name: "mcp_get-sum", Arguments: json.RawMessage(`{"a":"two","b":40}`), CallID: "refused"},
		{Name: "mcp_get-structured-content", Arguments: json.RawMessage(`{"location":"Chicago"}`), CallID: "structured"},
		{Name: "mcp_get-tiny-image", Arguments: json.RawMessage(`{}`), CallID: "image"},
		{Name: "mcp_get-env", Arguments: json.RawMessage(`{}`), CallID: "env"},
		{Name: "close_ticket", Arguments: json.RawMessage(`{"id":123456789012345678901234567890}`), CallID: "ticket"},
	}), map[string]string{"dispatch": "nats"})
	for _, name := range []string{"mcp_echo", "mcp_get-sum", "mcp_get-structured-content", "mcp_get-tiny-image", "mcp_get-env", "close_ticket"} {
		asked.Agent.Tools = append(asked.Agent.Tools, openai.AgentToolParamUnion{OfParamFunction: &openai.AgentToolParamFunction{
			Name: name, Description: name, Parameters: map[string]any{"type": "object"},
		}})
	}
	created, err := i.api.Beta.Agents.Sessions.New(t.Context(), asked)
	require.NoError(t, err)
	session := created.ID
	i.awaitIdle(session)
	got := map[string]string{}
	for id, raw := range i.rawOutputs(session) {
		got[id] = string(raw)
	}
	require.Equal(t, `"Echo: grüß <Gott>"`, got["echo"])
	require.Equal(t, `"The sum of 2 and 40 is 42."`, got["sum"])
	require.Contains(t, got["refused"], "/a: ", "the dispatcher checks the server's schema")
	require.Contains(t, got["structured"], `\"temperature\":`)
	require.Regexp(t, `^\[\{"type":"input_text","text":".*"\},\{"type":"input_image","image_url":"data:image/png;base64,[A-Za-z0-9+/]+=*"\},\{"type":"input_text","text":".*"\}\]$`, got["image"])
	require.Contains(t, got["env"], "PATH")
	require.NotContains(t, got["env"], "NATS")
	require.Regexp(t, `^"\{\\"id\\":123456789012345678901234567890\} call_[A-Za-z0-9_-]{22}"$`, got["ticket"])
	for _, executor := range executors {
		require.Equal(t, 0, executor.Stop())
	}
	require.Equal(t, 0, dispatcher.Stop())
}
