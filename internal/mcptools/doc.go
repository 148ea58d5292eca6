// Package mcptools makes functions of the tools of MCP servers: programs that speak
// MCP over their standard streams, and streamable HTTP endpoints.
//
// A Client keeps one server connected, lists its tools and calls them. A server is
// somebody else's program: what it says about itself is not believed unless
// Server.TrustAnnotations says so, and it is given nothing of the executor's
// environment but what its Command names.
package mcptools
