// Command mcp is an MCP server whose one tool does nothing.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type input struct {
	Text string `json:"text"`
}

func noop(context.Context, *mcp.CallToolRequest, input) (*mcp.CallToolResult, any, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "ok"}}}, nil, nil
}

func main() {
	server := mcp.NewServer(&mcp.Implementation{Name: "noop", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "noop_mcp", Description: "Does nothing."}, noop)
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, "the server failed:", err)
		os.Exit(1)
	}
}
