// Package httpserver serves HTTP on an address of its own until it is closed.
package httpserver

import (
	"context"
	"errors"
	"net"
	"net/http"
)

// Server listens from Listen on, and answers from Serve on.
type Server struct {
	listener net.Listener
	http     *http.Server
	served   chan error
}

// Listen takes a TCP address, host:port.
func Listen(address string) (*Server, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, err
	}
	return &Server{listener: listener, served: make(chan error, 1)}, nil
}

// Addr is the host:port that the server listens on.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Serve answers requests as h says, and returns at once. It is called once.
func (s *Server) Serve(h *http.Server) {
	s.http = h
	go func() { s.served <- h.Serve(s.listener) }()
}

// Close finishes the requests under way, until ctx ends, and stops listening. It tells
// why the server ended, if it did before.
func (s *Server) Close(ctx context.Context) error {
	if s.http == nil {
		return s.listener.Close()
	}
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	if failed := <-s.served; !errors.Is(failed, http.ErrServerClosed) {
		err = errors.Join(err, failed)
	}
	return err
}
