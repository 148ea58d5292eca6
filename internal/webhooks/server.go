package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/openai/openai-go/v3/option"
	sdk "github.com/openai/openai-go/v3/webhooks"

	"github.com/callfan/callfan/internal/httpserver"
)

// Server receives webhooks.
type Server struct {
	cfg      Config
	verifier sdk.WebhookService
	seen     *seen
	warned   atomic.Int64 // when a refused signature was logged last, in Unix seconds
	http     *httpserver.Server
}

// New listens, and serves until Close. Its errors are about the configuration or the
// address.
func New(cfg Config) (*Server, error) {
	cfg = cfg.withDefaults()
	if cfg.ActionRequired == nil {
		return nil, errors.New("webhooks: ActionRequired is required")
	}
	if err := Check(cfg.Listen, cfg.Secret); err != nil {
		return nil, err
	}
	listener, err := httpserver.Listen(cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("webhooks: %w; choose another address by --webhook-listen", err)
	}
	s := &Server{
		cfg: cfg, http: listener, seen: newSeen(remembered),
		verifier: sdk.NewWebhookService(option.WithWebhookSecret(cfg.Secret)),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+Path, s.receive)
	s.http.Serve(&http.Server{ // strangers reach it
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      cfg.Timeout + 15*time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
	})
	cfg.Logger.Info("receiving webhooks", "address", s.Addr(), "path", Path)
	return s, nil
}

// Addr is the host:port that the server listens on.
func (s *Server) Addr() string { return s.http.Addr() }

// Close finishes the requests under way, until ctx ends, and stops listening.
func (s *Server) Close(ctx context.Context) error { return s.http.Close(ctx) }
