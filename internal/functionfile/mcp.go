package functionfile

import (
	"slices"

	"github.com/goccy/go-yaml/ast"

	"github.com/callfan/callfan/internal/mcptools"
)

// policyKeys are the keys that say how a function is run, for one tool and for all
// tools of a server alike.
var policyKeys = []string{"timeout", "queue_timeout", "total_deadline", "attempts", "backoff", "effects", "on_uncertain", "verify"}

var serverKeys = append([]string{
	"command", "dir", "env", "url", "headers", "bearer_file", "tools", "prefix", "trust_annotations", "concurrency", "start_timeout", "overrides",
}, policyKeys...)

var overrideKeys = append([]string{"name", "description", "concurrency"}, policyKeys...)

// mcpServer is one server of a file.
type mcpServer struct {
	mcptools.Server
	at source
	// key is where the file names it.
	key ast.Node
}

func (l loader) mcpServers(n ast.Node) ([]mcpServer, error) {
	entries, err := l.mapping(n, "mcp")
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return nil, l.fault(n, "mcp is empty; add at least one server")
	}
	servers := make([]mcpServer, 0, len(entries))
	for _, e := range entries {
		s, err := l.mcpServer(e)
		if err != nil {
			return nil, err
		}
		servers = append(servers, mcpServer{Server: s, at: l.source, key: e.key})
	}
	return servers, nil
}

func (l loader) mcpServer(at entry) (mcptools.Server, error) {
	s := mcptools.Server{Name: at.name}
	if s.Name == "" {
		return s, l.fault(at.key, "an MCP server's name is empty; name it for logs")
	}
	where := "MCP server " + quoted(s.Name)
	entries, err := l.mapping(at.value, where)
	if err != nil {
		return s, err
	}
	r := reach{loader: l, where: where}
	p := policyReader{loader: l}
	for _, e := range entries {
		where := where + ": " + e.name
		switch e.name {
		case "command", "dir", "env", "url", "headers", "bearer_file":
			r.add(e)
		case "tools":
			s.Tools, err = l.texts(e, where)
		case "prefix":
			s.Prefix, err = l.text(e.value, where)
		case "trust_annotations":
			s.TrustAnnotations, err = l.boolean(e.value, where)
		case "concurrency":
			s.Concurrency, err = l.concurrency(e, where)
		case "start_timeout":
			s.StartTimeout, err = l.duration(e.value, where)
		case "overrides": // read once it is known whether there is a verify
		default:
			if !slices.Contains(policyKeys, e.name) {
				return s, l.unknownKey(e, "MCP server "+quoted(s.Name), serverKeys)
			}
			err = p.read(e, where)
		}
		if err != nil {
			return s, err
		}
	}
	if err := p.check(where); err != nil {
		return s, err
	}
	if s.TrustAnnotations && p.effects != nil {
		return s, l.fault(p.effects, "%s has both effects and trust_annotations; keep one, and put what one tool has of its own under overrides", where)
	}
	s.Options = p.options
	for _, e := range entries {
		if e.name == "overrides" {
			if s.Overrides, err = l.overrides(e, where+": overrides", p.verify); err != nil {
				return s, err
			}
		}
	}
	return s, r.into(&s, at)
}
