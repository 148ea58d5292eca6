package executorapp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"sync"

	"github.com/callfan/callfan/internal/functionfile"
	"github.com/callfan/callfan/pkg/executor"
)

// serving is one Run of an App.
type serving struct {
	*App
	servers *functionfile.Open // nil without MCP servers

	mu sync.Mutex
	ex *executor.Executor // nil while MCP servers are awaited
}

func newServing(a *App) *serving {
	s := &serving{App: a}
	if a.file.HasServers() {
		s.servers = a.file.Open(a.version, a.log)
	} else {
		s.ex = a.ex
	}
	return s
}

// run waits for the MCP servers, and serves.
func (s *serving) run(ctx context.Context) error { return s.with(ctx, (*executor.Executor).Run) }

// register waits for the MCP servers, and declares the functions.
func (s *serving) register(ctx context.Context) error {
	return s.with(ctx, (*executor.Executor).Register)
}

// with waits for the MCP servers, and has an executor of all functions do its work.
func (s *serving) with(ctx context.Context, work func(*executor.Executor, context.Context) error) error {
	if s.servers == nil {
		return work(s.ex, ctx)
	}
	defer s.servers.Close() // after the calls that work ended
	if err := s.file.Tools(ctx, s.servers); err != nil {
		if ctx.Err() != nil {
			return nil // stopped before anything began
		}
		return err
	}
	version := cmp.Or(s.file.Version, s.version)
	ex, err := s.executor(version)
	if err != nil {
		return err
	}
	// The tools of a server change when the server does, whatever version the file has.
	// A definition that changes needs a version that does (ADR 0020, ADR 0021).
	if ex, err = s.executor(toolsVersion(version, s.file, ex)); err != nil {
		return err
	}
	s.mu.Lock()
	s.ex = ex
	s.mu.Unlock()
	return work(ex, ctx)
}

// ready says what keeps the executor from serving, by what it depends on.
func (s *serving) ready(ctx context.Context) map[string]error {
	s.mu.Lock()
	ex := s.ex
	s.mu.Unlock()
	checks := map[string]error{}
	if ex != nil {
		checks["nats"] = ex.Ready(ctx)
	} else {
		checks["nats"] = errors.New("the functions are not registered: an MCP server is awaited")
	}
	if s.servers != nil {
		for name, err := range s.servers.Ready() {
			checks["mcp:"+name] = err
		}
	}
	return checks
}

// toolsVersion is the version with a mark of the definitions that come from MCP
// servers: version+mcp.12345678, as Semantic Versioning adds what the build knows.
func toolsVersion(version string, file *functionfile.File, ex *executor.Executor) string {
	hash := sha256.New()
	for i, f := range ex.Functions() {
		if file.Functions[i].IsTool() {
			_, _ = hash.Write([]byte(f.Fingerprint()))
		}
	}
	mark := "mcp." + hex.EncodeToString(hash.Sum(nil)[:4])
	switch {
	case version == "":
		return mark
	case strings.Contains(version, "+"):
		return version + "." + mark
	default:
		return version + "+" + mark
	}
}
