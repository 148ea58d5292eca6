package mcptools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

// TestMain lets the test binary play an MCP server on its standard streams.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) < 2:
	case os.Args[1] == "serve":
		if err := toolServer(os.Args[2:]...).Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			os.Exit(3)
		}
		os.Exit(0)
	case os.Args[1] == "noisy":
		fmt.Println("Welcome to the noisy server!") // before the messages, as some do
		_ = toolServer().Run(context.Background(), &mcp.StdioTransport{})
		os.Exit(0)
	case os.Args[1] == "broken":
		fmt.Fprintln(os.Stderr, "the license has expired")
		os.Exit(9)
	}
	// A server that a test made forget its sessions leaves them behind.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/modelcontextprotocol/go-sdk/mcp.(*streamableServerConn).Read"))
}

func raw(text string) json.RawMessage { return json.RawMessage(text) }

func texts(texts ...string) *mcp.CallToolResult {
	r := &mcp.CallToolResult{Content: []mcp.Content{}}
	for _, text := range texts {
		r.Content = append(r.Content, &mcp.TextContent{Text: text})
	}
	return r
}

// bigSchema has members in an order of its own and a number that no float64 holds.
const bigSchema = `{"type":"object","properties":{"z":{"type":"integer","maximum":18446744073709551615},"a":{"type":"string"}},"additionalProperties":true}`

// toolServer is a server with tools of all kinds, on pages of three. With a file as the
// first argument, tools note there what they saw.
func toolServer(args ...string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "tools", Version: "1"}, &mcp.ServerOptions{PageSize: 3})
	note := func(text string) {
		if len(args) > 0 {
			if f, err := os.OpenFile(args[0], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
				_, _ = f.WriteString(text + "\n")
				_ = f.Close()
			}
		}
	}
	add := func(name string, h func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error), change ...func(*mcp.Tool)) {
		t := &mcp.Tool{Name: name, Description: "The tool " + name + ".", InputSchema: raw(`{"type":"object"}`)}
		for _, c := range change {
			c(t)
		}
		s.AddTool(t, h)
	}
	add("echo", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return texts(string(r.Params.Arguments)), nil
	}, func(t *mcp.Tool) {
		t.InputSchema = raw(bigSchema)
		t.Annotations = &mcp.ToolAnnotations{ReadOnlyHint: true}
	})
	add("again", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return texts("again"), nil },
		func(t *mcp.Tool) { t.Annotations = &mcp.ToolAnnotations{IdempotentHint: true} })
	add("meta", func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		text, err := json.Marshal(map[string]any{
			"key": r.Params.Meta[metaIdempotencyKey], "attempt": r.Params.Meta[metaAttempt],
			"uncertain": r.Params.Meta[metaUncertain], "traceparent": r.Params.Meta[metaTraceparent],
		})
		return texts(string(text)), err
	})
	add("parts", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		r := texts("a chart")
		r.Content = append(r.Content, &mcp.ImageContent{MIMEType: "image/png", Data: []byte{1, 2, 3}})
		return r, nil
	})
	add("structured", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{}, StructuredContent: raw(`{"z":18446744073709551615,"a":"b"}`)}, nil
	})
	add("nothing", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return texts(), nil })
	add("fail", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		r := texts("no such customer", "try another")
		r.IsError = true
		return r, nil
	})
	add("refuse", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the id is not one"}
	})
	add("busy", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, &jsonrpc.Error{Code: -32050, Message: "come back later"}
	})
	add("ask", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"name": &mcp.ElicitParams{Message: "Who are you?"}}}, nil
	})
	add("wait", func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		note("started")
		_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1, Total: 2})
		<-ctx.Done()
		note("cancelled")
		return nil, errors.New("cancelled")
	})
	add("die", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		note("died")
		os.Exit(4)
		return nil, nil
	})
	add("grow", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		add("new", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return texts("new"), nil })
		s.RemoveTools("again")
		return texts("grown"), nil
	})
	add("number", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return texts("1"), nil },
		func(t *mcp.Tool) {
			t.InputSchema = raw(`{"type":"object","properties":{"n":{"$ref":"https://example.com/schema.json"}}}`)
		})
	return s
}

// streamable serves a server of its own for each session.
func streamable(options *mcp.StreamableHTTPOptions) http.Handler {
	server := toolServer()
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, options)
}
