package ops

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/callfan/callfan/internal/httpserver"
)

// Server serves health, metrics and the admin API.
type Server struct {
	cfg      Config
	http     *httpserver.Server
	stopping atomic.Bool
}

// New listens, and serves until Close. Its errors are about the configuration or
// the address, and wrap ErrNoToken where a token is missing.
func New(cfg Config) (*Server, error) {
	cfg = cfg.withDefaults()
	if cfg.Admin == nil || cfg.Metrics == nil {
		return nil, errors.New("ops: Admin and Metrics are required")
	}
	if err := CheckAddress(cfg.Listen, cfg.AdminToken); err != nil {
		return nil, fmt.Errorf("ops: %w", err)
	}
	listener, err := httpserver.Listen(cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("ops: %w; choose another address by --listen", err)
	}
	s := &Server{cfg: cfg, http: listener}
	s.http.Serve(&http.Server{
		Handler:           s.routes(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	})
	cfg.Logger.Info("serving health, metrics and the admin API", "address", s.Addr(), "admin_token", cfg.AdminToken != "")
	return s, nil
}

// Addr is the host:port that the server listens on.
func (s *Server) Addr() string { return s.http.Addr() }

// Stopping makes the server not ready for the rest of its life, so that nothing
// new is sent here while the process stops.
func (s *Server) Stopping() { s.stopping.Store(true) }

// Close finishes the requests under way, until ctx ends, and stops listening.
func (s *Server) Close(ctx context.Context) error { return s.http.Close(ctx) }

func (s *Server) routes() http.Handler {
	admin := http.NewServeMux()
	admin.HandleFunc("GET /v1/sessions", s.listSessions)
	admin.HandleFunc("POST /v1/sessions", s.attachSessions)
	admin.HandleFunc("DELETE /v1/sessions/{id}", s.detachSession)
	admin.HandleFunc("GET /v1/functions", s.listFunctions)
	admin.HandleFunc("GET /v1/calls", s.listCalls)
	admin.HandleFunc("GET /v1/calls/{session}/{turn}/{call}", s.showCall)
	admin.HandleFunc("POST /v1/calls/{session}/{turn}/{call}/decision", s.decide)
	admin.HandleFunc("GET /v1/dead", s.listDead)
	admin.HandleFunc("GET /v1/dead/{seq}", s.showDead)
	admin.HandleFunc("DELETE /v1/dead/{seq}", s.dropDead)
	admin.HandleFunc("POST /v1/dead/{seq}/replay", s.replayDead)
	admin.HandleFunc("POST /v1/runs", s.startRun)
	admin.HandleFunc("GET /v1/runs/{id}", s.showRun)
	admin.HandleFunc("POST /v1/runs/{id}/cancel", s.cancelRun)
	admin.HandleFunc("GET /v1/runs/{id}/events", s.followRun)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.live)
	mux.HandleFunc("GET /readyz", s.ready)
	mux.Handle("GET /metrics", s.cfg.Metrics)
	mux.Handle("/v1/", s.guard(admin))
	return plainErrors(mux)
}
