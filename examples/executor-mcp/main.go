// Command executor-mcp is an MCP server with one tool, for the guide in
// docs/executors/mcp.md. It knows nothing of callfan.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type question struct {
	CustomerID string `json:"customer_id" jsonschema:"the number on the customer's invoices"`
}

type customer struct {
	Found bool   `json:"found"`
	Name  string `json:"name,omitempty"`
}

func getCustomer(_ context.Context, _ *mcp.CallToolRequest, q question) (*mcp.CallToolResult, customer, error) {
	if q.CustomerID != "123" {
		return nil, customer{}, nil
	}
	return nil, customer{Found: true, Name: "Example Customer"}, nil
}

func main() {
	server := mcp.NewServer(&mcp.Implementation{Name: "customers", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "get_customer", Description: "Look up a customer by ID."}, getCustomer)
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, "the server failed:", err)
		os.Exit(1)
	}
}
