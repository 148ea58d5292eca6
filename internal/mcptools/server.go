package mcptools

import (
	"net/http"
	"time"

	"github.com/callfan/callfan/pkg/executor"
)

// Server describes one MCP server and what its tools become.
type Server struct {
	// Name is for logs, errors and readiness.
	Name string
	// Command or Endpoint says how to reach it; exactly one is set.
	Command  *Command
	Endpoint *Endpoint
	// Tools are the only ones that become functions; empty means all. One that the
	// server does not have is an error.
	Tools []string
	// Prefix goes before the name of each tool to make the name of its function.
	Prefix string
	// TrustAnnotations takes readOnlyHint for executor's "no effects" and idempotentHint
	// for "idempotent". They are hints of the server about itself, so that by default
	// every tool counts as one with side effects.
	TrustAnnotations bool
	// Concurrency is how many calls the server runs at once; 0 means any number.
	Concurrency int
	// StartTimeout bounds one attempt to connect and list the tools. Defaults to 30 s.
	StartTimeout time.Duration
	// Options apply to every function of the server.
	Options []executor.Option
	// Overrides are by the name of the tool, without the prefix. One for a tool that is
	// not served is an error.
	Overrides map[string]Override
}

// Override is what one tool has of its own.
type Override struct {
	// Name is that of the function, without any prefix. Defaults to prefix and tool.
	Name string
	// Concurrency is how many calls of this tool run at once; 0 means any number.
	Concurrency int
	// Options come after those of the server and so overrule them.
	Options []executor.Option
}

// Command starts a server that speaks on its standard input and output.
type Command struct {
	// Path is the program, absolute.
	Path string
	Args []string
	// Dir is the working directory.
	Dir string
	// Env is the whole environment.
	Env []string
}

// Endpoint is a server that speaks streamable HTTP.
type Endpoint struct {
	URL string
	// Header goes with each request.
	Header http.Header
	// BearerFile is a file whose content goes with each request as a bearer token. It is
	// read each time, so that a token can be exchanged while the executor runs.
	BearerFile string
}

const defaultStartTimeout = 30 * time.Second

func (s Server) startTimeout() time.Duration {
	if s.StartTimeout > 0 {
		return s.StartTimeout
	}
	return defaultStartTimeout
}
