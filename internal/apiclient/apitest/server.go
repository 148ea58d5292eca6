// Package apitest is a server that plays the OpenAI API in the tests of its adapters, with
// answers that the simulator does not give, and remembers what it was asked.
package apitest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

// Secret is the API key of the tests.
const Secret = "sk-test-Zm9vYmFy0123456789"

// Request is what the server was asked.
type Request struct {
	Method, URI string
	Header      http.Header
	Body        string
}

// Server answers with a handler.
type Server struct {
	// URL is the base URL for a client.
	URL string

	mu       sync.Mutex
	requests []Request
}

// Serve starts a server that ends with the test.
func Serve(t testing.TB, handler http.HandlerFunc) *Server {
	t.Helper()
	s := &Server{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.requests = append(s.requests, Request{Method: r.Method, URI: r.RequestURI, Header: r.Header.Clone(), Body: string(body)})
		s.mu.Unlock()
		handler(w, r)
	}))
	s.URL = srv.URL + "/v1"
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return s
}

// Asked are the requests so far.
func (s *Server) Asked() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// Reply answers everything with one status, content type and body, and with headers, given
// as names and values.
func Reply(status int, contentType, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("X-Request-Id", "req_1")
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// ReplyJSON is Reply with JSON.
func ReplyJSON(status int, body string, headers ...string) http.HandlerFunc {
	return Reply(status, "application/json", body, headers...)
}

// Refused takes the refusal out of an error, which must not hold the key.
func Refused(t testing.TB, err error) *call.Refusal {
	t.Helper()
	var r *call.Refusal
	require.ErrorAs(t, err, &r)
	require.NotContains(t, err.Error(), Secret)
	return r
}
