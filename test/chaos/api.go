//go:build unix

package chaos

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/callfan/callfan/internal/simulator"
)

// api serves the simulator and notes every tool result that is submitted to it.
type api struct {
	sim    *simulator.Simulator
	server *http.Server
	url    string

	mu      sync.Mutex
	results map[string]*submitted // by session/turn/call
	// asked says who asked about a session within a window of time.
	asked map[window]askers
}

// window is a short time in the life of a session.
type window struct {
	session string
	number  int64
}

// askers are the replicas that asked within a window.
type askers struct {
	last string
	// changes is how often another one than the last asked.
	changes int
}

// windowLength is much shorter than the time for which a session normally stays with one replica.
const windowLength = 2 * time.Second

// replicaHeader names the replica; each dispatcher is given a project of its own.
const replicaHeader = "OpenAI-Project"

// submitted is what was submitted for one call.
type submitted struct {
	// distinct are the different results, by their hash, with the answers they got.
	distinct map[[32]byte]*variant
}

type variant struct {
	text     string
	accepted int
	refused  int
	lost     int // the answer did not arrive, or was a fault's
	first    time.Time
}

func serveAPI(host string) (*api, error) {
	sim, err := simulator.New(simulator.Config{})
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", at(host, "0"))
	if err != nil {
		sim.Close()
		return nil, err
	}
	a := &api{sim: sim, url: "http://" + listener.Addr().String() + "/v1", results: map[string]*submitted{}, asked: map[window]askers{}}
	a.server = &http.Server{Handler: a.noting(sim.Handler()), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = a.server.Serve(listener) }() // ends by Close
	return a, nil
}

func (a *api) close() {
	a.sim.Close()
	_ = a.server.Close()
}

// noting passes requests on and notes the results in POSTs of events.
func (a *api) noting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.asks(r)
		path, isEvents := strings.CutSuffix(r.URL.Path, "/events")
		if !isEvents || r.Method != http.MethodPost {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the caller died
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		status := &statusWriter{ResponseWriter: w}
		defer func() { a.note(path[strings.LastIndexByte(path, '/')+1:], body, status.code) }() // after an abort too
		next.ServeHTTP(status, r)
	})
}

// asks notes which replica looks at a session or submits to it.
func (a *api) asks(r *http.Request) {
	replica := r.Header.Get(replicaHeader)
	_, rest, found := strings.Cut(r.URL.Path, "/agents/sessions/")
	if replica == "" || !found {
		return
	}
	session, _, _ := strings.Cut(rest, "/")
	a.mu.Lock()
	defer a.mu.Unlock()
	w := window{session, time.Now().UnixNano() / int64(windowLength)}
	was := a.asked[w]
	if was.last != "" && was.last != replica {
		was.changes++
	}
	was.last = replica
	a.asked[w] = was
}

type statusWriter struct {
	http.ResponseWriter
	code int
}

// WriteHeader remembers the status.
func (w *statusWriter) WriteHeader(code int) {
	w.code = code
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (a *api) note(session string, body []byte, status int) {
	var post struct {
		Events []struct {
			Type    string          `json:"type"`
			Turn    string          `json:"turn_id"`
			Call    string          `json:"call_id"`
			Success bool            `json:"success"`
			Output  json.RawMessage `json:"output"`
			Error   json.RawMessage `json:"error"`
		} `json:"events"`
	}
	if json.Unmarshal(body, &post) != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range post.Events {
		if e.Type != "agent.session.input.tool_result" {
			continue
		}
		key := session + "/" + e.Turn + "/" + e.Call
		s := a.results[key]
		if s == nil {
			s = &submitted{distinct: map[[32]byte]*variant{}}
			a.results[key] = s
		}
		text := string(e.Output) + string(e.Error)
		hash := sha256.Sum256([]byte(text))
		v := s.distinct[hash]
		if v == nil {
			v = &variant{text: text, first: time.Now()}
			s.distinct[hash] = v
		}
		switch {
		case status >= 200 && status < 300:
			v.accepted++
		case status == http.StatusBadRequest || status == http.StatusConflict:
			v.refused++
		default:
			v.lost++
		}
	}
}
