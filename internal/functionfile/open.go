package functionfile

import (
	"context"
	"errors"
	"log/slog"

	"github.com/callfan/callfan/internal/mcptools"
)

// Open are the MCP servers of a file, connected.
type Open struct{ clients []*mcptools.Client }

// HasServers says whether the file names MCP servers.
func (f *File) HasServers() bool { return len(f.servers) > 0 }

// Open starts to connect to the MCP servers of the file, and again whenever a
// connection ends, until Close. The version is that of the executor, for servers to
// know.
func (f *File) Open(version string, log *slog.Logger) *Open {
	o := &Open{clients: make([]*mcptools.Client, 0, len(f.servers))}
	for _, s := range f.servers {
		o.clients = append(o.clients, mcptools.New(s.Server, version, log))
	}
	return o
}

// Close ends all connections, and the servers that are programs.
func (o *Open) Close() {
	done := make(chan struct{})
	for _, c := range o.clients {
		go func() {
			defer func() { done <- struct{}{} }()
			c.Close()
		}()
	}
	for range o.clients {
		<-done
	}
}

// Ready says by the name of each server why it cannot be called now; nil where it can.
func (o *Open) Ready() map[string]error {
	ready := make(map[string]error, len(o.clients))
	for _, c := range o.clients {
		ready[c.Name()] = c.Ready()
	}
	return ready
}

// Tools waits until all servers are connected and adds their tools to the functions of
// the file. It is called once. An *Error says that the tools are not what the file names;
// any other error that ctx ended.
func (f *File) Tools(ctx context.Context, o *Open) error {
	owners := make(map[string]string, len(f.Functions))
	for _, fn := range f.Functions {
		owners[fn.Name] = "the function " + quoted(fn.Name) + " of this file"
	}
	for i, c := range o.clients {
		s := f.servers[i]
		functions, err := c.Functions(ctx)
		switch {
		case errors.Is(err, mcptools.ErrTools):
			return s.at.fault(s.key, "%v", err)
		case err != nil:
			return err
		}
		for _, fn := range functions {
			mine := "the tool " + quoted(fn.Tool) + " of the MCP server " + quoted(s.Name)
			if other, taken := owners[fn.Name]; taken {
				return s.at.fault(s.key, "two functions are named %s: %s and %s; add a prefix to a server, such as `prefix: %s_`, or a name under overrides, or leave one out by tools",
					quoted(fn.Name), other, mine, s.Name)
			}
			owners[fn.Name] = mine
			f.Functions = append(f.Functions, Function{Name: fn.Name, kind: kindMCP, options: fn.Options, handler: fn.Handler})
		}
	}
	return nil
}
