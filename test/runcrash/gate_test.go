//go:build unix

package runcrash

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// gate stands before the simulator. It knows which replica asks, since each has its own base URL, springs the trap, and
// keeps book of the requests for responses.
type gate struct {
	api  http.Handler
	trap *trap
	// process names the running process of a replica.
	process func(replica string) string

	mu   sync.Mutex
	book []*request
}

// request is one request for a response.
type request struct {
	run, round string
	stored     bool
	// process is who made it; at is when, told when the asker had the response's id.
	process  string
	at, told time.Time
	body     string
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	replica, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	r.URL.Path, r.URL.RawPath = "/"+path, ""
	switch {
	case r.Method == http.MethodPost && path == "v1/responses":
		g.create(w, r, replica)
	case r.Method == http.MethodGet && strings.HasPrefix(path, "v1/responses/"):
		g.trap.reach(retrieved, replica)
		g.api.ServeHTTP(&answer{ResponseWriter: w, flushed: g.streamed(replica, nil)}, r)
		g.trap.reach(answered, replica)
	default:
		g.api.ServeHTTP(w, r)
	}
}

func (g *gate) create(w http.ResponseWriter, r *http.Request, replica string) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the asker is gone
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var asks struct {
		Store    *bool
		Metadata map[string]string
	}
	_ = json.Unmarshal(body, &asks)
	it := &request{
		run: asks.Metadata["callfan_run"], round: asks.Metadata["callfan_round"], stored: asks.Store == nil || *asks.Store,
		process: g.process(replica), at: time.Now(), body: string(body),
	}
	g.mu.Lock()
	g.book = append(g.book, it)
	g.mu.Unlock()
	g.trap.reach(asked, replica)
	if r.Context().Err() != nil {
		return // killed before it was sent, as it were
	}
	first := taken
	if bytes.Contains(body, []byte(`"function_call_output"`)) {
		first = outputs
	}
	g.api.ServeHTTP(&answer{
		ResponseWriter: w, begins: func() { g.trap.reach(taken, replica); g.reachOnly(first, replica) }, flushed: g.streamed(replica, it),
	}, r)
	g.trap.reach(answered, replica)
}

// reachOnly springs the trap at a point other than taken, which was tried.
func (g *gate) reachOnly(at point, replica string) {
	if at != taken {
		g.trap.reach(at, replica)
	}
}

// streamed springs the trap as bytes go out.
func (g *gate) streamed(replica string, it *request) func(n int) {
	return func(n int) {
		if it != nil && n == 1 {
			g.mu.Lock()
			it.told = time.Now()
			g.mu.Unlock()
		}
		switch {
		case n == 1:
			g.trap.reach(begun, replica)
		case n > 1:
			g.trap.reach(streaming, replica)
		}
	}
}

// requests are all requests so far, by run and round.
func (g *gate) requests() map[[2]string][]request {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := map[[2]string][]request{}
	for _, it := range g.book {
		at := [2]string{it.run, it.round}
		all[at] = append(all[at], *it)
	}
	return all
}

// answer sees the bytes of an answer go out.
type answer struct {
	http.ResponseWriter

	begins  func()
	flushed func(n int)
	wrote   bool
	writes  int
}

func (a *answer) WriteHeader(status int) {
	a.begin()
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(p []byte) (int, error) {
	a.begin()
	a.wrote = true
	return a.ResponseWriter.Write(p)
}

func (a *answer) begin() {
	if a.begins != nil {
		a.begins()
		a.begins = nil
	}
}

// FlushError is what http.ResponseController calls.
func (a *answer) FlushError() error {
	err := http.NewResponseController(a.ResponseWriter).Flush()
	if a.wrote && err == nil {
		a.writes++
		a.flushed(a.writes)
	}
	return err
}

// Unwrap lets http.ResponseController reach the rest.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
