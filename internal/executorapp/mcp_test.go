package executorapp

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/queue"
)

// answering is an MCP server whose one tool has this description.
func answering(description string) http.Handler {
	server := mcp.NewServer(&mcp.Implementation{Name: "tools"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "answer", Description: description},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "42"}}}, nil, nil
		})
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
}

func TestAppServesToolsOfMCPServers(t *testing.T) {
	t.Parallel()
	var handler atomic.Value
	handler.Store(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "starting", http.StatusBadGateway) }))
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.Load().(http.HandlerFunc)(w, r) }))
	defer endpoint.Close()
	server, log := testservers.NATS(t), slog.New(slog.DiscardHandler)
	serving, end := context.WithCancel(context.Background())
	conn, err := queue.Connect(serving, queue.Config{URL: server.URL(), Partitions: 1, Logger: log})
	require.NoError(t, err)
	defer conn.Close()
	defer end()
	require.NoError(t, conn.Provision(serving))
	registry, err := conn.ServeRegistry(serving)
	require.NoError(t, err)

	text := "pool: tools\nversion: \"3\"\nmcp:\n  remote: {url: \"" + endpoint.URL + "\"}\n"
	start := func() (app *App, stop func()) {
		app, err := New(settings(t, text, "--nats", server.URL(), "--metrics-listen", "127.0.0.1:0", "--stop-timeout", "5s"), "v1", log)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- app.Run(ctx) }()
		return app, func() {
			cancel()
			require.NoError(t, <-done)
		}
	}
	first, stopFirst := start()
	require.Eventually(t, func() bool {
		status, body := get(t, "http://"+first.Addr()+"/readyz")
		return status == http.StatusServiceUnavailable && regexpMatch(`.*"mcp:remote":".*Bad Gateway".*"nats":"the functions are not registered: an MCP server is awaited".*`, body)
	}, 10*time.Second, 20*time.Millisecond)
	handler.Store(http.HandlerFunc(answering("Old.").ServeHTTP))
	require.Eventually(t, func() bool { status, _ := get(t, "http://"+first.Addr()+"/readyz"); return status == http.StatusOK }, 20*time.Second, 20*time.Millisecond)
	declared := func() string { f, _ := registry.Function("answer"); return f.Description }
	require.Equal(t, "Old.", declared())

	// The server is upgraded, and the next process of the pool finds other tools.
	handler.Store(http.HandlerFunc(answering("New.").ServeHTTP))
	second, stopSecond := start()
	require.Eventually(t, func() bool { status, _ := get(t, "http://"+second.Addr()+"/readyz"); return status == http.StatusOK }, 20*time.Second, 20*time.Millisecond)
	require.Equal(t, "New.", declared())
	stopSecond()
	stopFirst()

	app, err := New(settings(t, text, "--nats", server.URL(), "--register"), "v1", log)
	require.NoError(t, err)
	require.NoError(t, app.Register(t.Context()))
	end()
}
