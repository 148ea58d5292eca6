package ops

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"

	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/pkg/call"
)

// Decision is what an operator decides about a call without a result, and the body of
// POST /v1/calls/{session}/{turn}/{call}/decision. Exactly one of the first four is set.
type Decision struct {
	// Rerun has a parked call run again, as a new attempt.
	Rerun bool
	// Output is the result, a JSON string; OutputJSON one that may be a content array,
	// too. Their bytes go to the API as they are.
	Output, OutputJSON json.RawMessage
	// Error is the text for the model in place of a result.
	Error string
	// By names who decided, for the call's history; at most MaxBy bytes of printable text.
	By string
}

// MaxBy is how many bytes the name of who decided has at most.
const MaxBy = 100

// maxDecision bounds the body of a decision, in bytes: the largest result that the API
// takes, and what is around it.
const maxDecision = 5 << 20

// Result is the call's result that was decided. It must not be called for a Rerun.
func (d Decision) Result() call.Result {
	if d.Error != "" {
		return call.Result{Error: d.Error, Reason: call.ReasonOperator}
	}
	output := d.Output
	if output == nil {
		output = d.OutputJSON
	}
	return call.Result{Success: true, Output: output, Reason: call.ReasonOperator}
}

// Check says what is wrong with a decision.
func (d Decision) Check() error {
	given := 0
	for _, set := range []bool{d.Rerun, d.Output != nil, d.OutputJSON != nil, d.Error != ""} {
		if set {
			given++
		}
	}
	switch {
	case given != 1:
		return fmt.Errorf(`%d decisions; give exactly one of "rerun":true, "output":"text", "output_json":[…] and "error":"text" (not empty)`, given)
	case d.Output != nil && kind(d.Output) != '"':
		return errors.New(`"output" is no string; give a content array as "output_json"`)
	case d.OutputJSON != nil && kind(d.OutputJSON) != '"' && kind(d.OutputJSON) != '[':
		return errors.New(`"output_json" is neither a JSON string nor an array of content parts`)
	case len(d.By) > MaxBy || strings.ContainsFunc(d.By, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf(`"by" is no name: use at most %d bytes of printable text`, MaxBy)
	}
	return nil
}

// kind is the first byte of a JSON value, 0 when it is none.
func kind(value []byte) byte {
	if !json.Valid(value) {
		return 0
	}
	return bytes.TrimSpace(value)[0]
}

// Body is the decision as the body of a request. It is not json.Marshal's, which would
// compact and escape the outputs.
func (d Decision) Body() []byte {
	out := []byte("{")
	add := func(name string, value []byte) {
		if value == nil {
			return
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(out, `"`+name+`":`...), value...)
	}
	if d.Rerun {
		add("rerun", []byte("true"))
	}
	add("output", d.Output)
	add("output_json", d.OutputJSON)
	add("error", quoted(d.Error))
	add("by", quoted(d.By))
	return append(out, '}')
}

// quoted is a JSON string, nil for nothing.
func quoted(text string) []byte {
	if text == "" {
		return nil
	}
	value, _ := json.Marshal(text) // a string cannot fail
	return value
}

// decide takes an operator's decision about a call. It answers 202: the decision is
// kept, and the owner of the session acts on it.
func (s *Server) decide(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Rerun      bool            `json:"rerun"`
		Output     json.RawMessage `json:"output"`
		OutputJSON json.RawMessage `json:"output_json"`
		Error      string          `json:"error"`
		By         string          `json:"by"`
	}
	if !read(w, r, &body, maxDecision, `{"rerun":true,"by":"me"}`) {
		return
	}
	d := Decision(body)
	if err := d.Check(); err != nil {
		refuse(w, http.StatusBadRequest, "invalid_decision", err.Error())
		return
	}
	key := keyOf(r)
	err := s.cfg.Admin.Decide(r.Context(), key, d)
	show := "; callfan calls show " + key.String() + " says "
	switch {
	case err == nil:
		w.WriteHeader(http.StatusAccepted)
	case errors.Is(err, dispatcher.ErrUnusable):
		refuse(w, http.StatusBadRequest, "invalid_decision", err.Error())
	case errors.Is(err, dispatcher.ErrNoCall):
		refuse(w, http.StatusNotFound, "unknown_call", err.Error()+"; callfan calls list --state parked lists those that wait for an operator")
	case errors.Is(err, dispatcher.ErrAnswered):
		refuse(w, http.StatusConflict, "answered", err.Error()+show+"what became of it")
	case errors.Is(err, dispatcher.ErrNotParked):
		refuse(w, http.StatusConflict, "not_parked", err.Error()+show+"where it is")
	default:
		s.fail(w, r, err)
	}
}
