package functionfile

import (
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/callfan/callfan/internal/mcptools"
)

// reach reads how a server is reached: by a command or at an address.
type reach struct {
	loader
	where string
	found []entry
}

func (r *reach) add(e entry) { r.found = append(r.found, e) }

func (r *reach) get(name string) (entry, bool) {
	i := slices.IndexFunc(r.found, func(e entry) bool { return e.name == name })
	if i < 0 {
		return entry{}, false
	}
	return r.found[i], true
}

func (r *reach) into(s *mcptools.Server, at entry) error {
	command, hasCommand := r.get("command")
	address, hasURL := r.get("url")
	switch {
	case hasCommand && hasURL:
		return r.fault(address.key, "%s has both command and url; keep one", r.where)
	case hasCommand:
		return r.command(s, command)
	case hasURL:
		return r.endpoint(s, address)
	default:
		return r.fault(at.key, "%s has neither command nor url; add the one that reaches it", r.where)
	}
}

// only refuses what does not go with the way in which the server is reached.
func (r *reach) only(way string, names ...string) error {
	for _, e := range r.found {
		if !slices.Contains(names, e.name) {
			return r.fault(e.key, "%s: %s does not go with %s; remove it", r.where, e.name, way)
		}
	}
	return nil
}

func (r *reach) command(s *mcptools.Server, command entry) (err error) {
	if err := r.only("command", "command", "dir", "env"); err != nil {
		return err
	}
	p := &program{dir: r.dir}
	if e, ok := r.get("dir"); ok {
		if p.dir, err = r.directory(e, r.where+": dir"); err != nil {
			return err
		}
	}
	if e, ok := r.get("env"); ok {
		if p.env, err = r.environment(e, r.where+": env"); err != nil {
			return err
		}
	}
	if err := r.loader.command(p, command, r.where+": command"); err != nil {
		return err
	}
	s.Command = &mcptools.Command{Path: p.path, Args: p.args, Dir: p.dir, Env: append(inheritedEnvironment(), p.env...)}
	return nil
}

func (r *reach) endpoint(s *mcptools.Server, address entry) (err error) {
	if err := r.only("url", "url", "headers", "bearer_file"); err != nil {
		return err
	}
	e := &mcptools.Endpoint{Header: make(http.Header)}
	if e.URL, err = r.url(address, r.where+": url"); err != nil {
		return err
	}
	if err := r.noSecret(e.URL, address); err != nil {
		return err
	}
	if h, ok := r.get("headers"); ok {
		if err := r.secretHeaders(e.Header, h); err != nil {
			return err
		}
	}
	if b, ok := r.get("bearer_file"); ok {
		if e.BearerFile, err = r.text(b.value, r.where+": bearer_file"); err != nil {
			return err
		}
		if e.Header.Get("Authorization") != "" {
			return r.fault(b.key, "%s has both bearer_file and the header Authorization; keep one", r.where)
		}
		if !filepath.IsAbs(e.BearerFile) {
			e.BearerFile = filepath.Join(r.dir, e.BearerFile)
		}
		if err := e.CheckBearer(); err != nil {
			return r.fault(b.value, "%s: %v", r.where, err)
		}
	}
	s.Endpoint = e
	return nil
}

// secretNames are what members of an address and headers that hold a secret are called.
var secretNames = []string{
	"token", "access_token", "api_key", "apikey", "api-key", "key", "secret", "password", "auth",
	"authorization", "proxy-authorization", "cookie", "x-api-key", "x-auth-token",
}

func isSecret(name string) bool { return slices.Contains(secretNames, strings.ToLower(name)) }

// noSecret refuses an address that seems to hold a secret: addresses end up in logs.
func (r *reach) noSecret(address string, e entry) error {
	u, err := url.Parse(address)
	if err != nil {
		return r.fault(e.value, "%s: url: %v", r.where, err)
	}
	for name := range u.Query() {
		if isSecret(name) {
			return r.fault(e.value, "%s: url holds a secret in %q; send it by a header from the environment, or by bearer_file", r.where, name)
		}
	}
	return nil
}

func (r *reach) secretHeaders(into http.Header, at entry) error {
	entries, err := r.mapping(at.value, r.where+": headers")
	if err != nil {
		return err
	}
	for _, v := range entries {
		text, err := r.text(v.value, r.where+": headers: "+v.name)
		switch name := strings.ToLower(v.name); {
		case err != nil:
			return err
		case name == "accept" || name == "last-event-id" || strings.HasPrefix(name, "mcp-"):
			return r.fault(v.key, "%s: headers: %s is set by the protocol; remove it", r.where, v.name)
		case isSecret(name) && !variable.MatchString(text):
			return r.fault(v.value, "%s: headers: %s holds a secret in the file; take it from the environment, such as ${NAME}, or use bearer_file", r.where, v.name)
		}
	}
	return r.headers(into, at, r.where+": headers")
}
