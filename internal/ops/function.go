package ops

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// Function is a registered function, as the admin API shows it.
type Function struct {
	call.Function
	// Pool is the pool of executors that serves it.
	Pool string `json:"pool"`
	// Language and Version are those of the executor that last changed the
	// definition, at Changed.
	Language string    `json:"language,omitempty"`
	Version  string    `json:"version,omitempty"`
	Changed  time.Time `json:"changed_at"`
	// Effective is the policy in force: what was declared, what this dispatcher's
	// configuration overrules, and the defaults.
	Effective call.Policy `json:"effective_policy"`
	// Executors are those that were heard registering it of late, by id.
	Executors []Executor `json:"executors"`
}

// Executor is an executor that serves a function.
type Executor struct {
	// ID, Language, Version and Host are what it says of itself; all may be empty.
	ID       string `json:"id,omitempty"`
	Language string `json:"language,omitempty"`
	Version  string `json:"version,omitempty"`
	Host     string `json:"host,omitempty"`
	// Seen is when it last registered.
	Seen time.Time `json:"last_seen_at"`
	// Current says that it declares the definition in force.
	Current bool `json:"current"`
}

// Seen is when an executor last registered the function; zero when none was heard of
// late.
func (f Function) Seen() time.Time {
	var last time.Time
	for _, e := range f.Executors {
		if e.Seen.After(last) {
			last = e.Seen
		}
	}
	return last
}

// AppendFunctions appends a JSON array of functions, each with the very bytes of its
// parameters. An error leaves dst as it was.
func AppendFunctions(dst []byte, functions []Function) ([]byte, error) {
	out := append(bytes.Clone(dst), '[')
	for i, f := range functions {
		if i > 0 {
			out = append(out, ',')
		}
		definition, err := f.Function.AppendJSON(nil)
		if err != nil {
			return dst, err
		}
		f.Function = call.Function{}
		f.Executors = append([]Executor{}, f.Executors...)
		type rest Function
		others, err := json.Marshal(struct {
			rest
			Name   *struct{} `json:"name,omitempty"`
			Policy *struct{} `json:"policy,omitempty"`
		}{rest: rest(f)})
		if err != nil {
			return dst, err
		}
		out = append(append(append(out, definition[:len(definition)-1]...), ','), others[1:]...)
	}
	return append(out, ']'), nil
}

func (s *Server) listFunctions(w http.ResponseWriter, r *http.Request) {
	functions, err := s.cfg.Admin.Functions(r.Context())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	body, err := AppendFunctions([]byte(`{"functions":`), functions)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	writeBytes(w, http.StatusOK, append(body, "}\n"...))
}
