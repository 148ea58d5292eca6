package runs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// ErrInvalidRequest is wrapped by the errors about what a run is asked for.
var ErrInvalidRequest = errors.New("invalid run")

// MaxTime is the longest that a run may be allowed to take, see Bounds.Time.
const MaxTime = 72 * time.Hour

// Request is what a run is asked for: the body of POST /v1/responses, in which tools may
// name registered functions, and which may have the member "bounds". Members that callfan
// does not set itself go to the API as they are.
type Request struct {
	members []member
	model   string
	bounds  Bounds
	tools   []json.RawMessage
	stream  bool
	store   bool
	// background: the response is made apart from the connection, so that it cannot be
	// lost; its calls are run as they come.
	background   bool
	conversation string
}

// member is one member of an object, with its very bytes.
type member struct {
	name  string
	value json.RawMessage
}

// own are the members that callfan writes itself in each round.
var own = []string{"bounds", "tools", "input", "previous_response_id", "stream", "background", "tool_choice", "metadata", "include"}

// ParseRequest reads and judges a request. Its errors wrap ErrInvalidRequest.
func ParseRequest(body json.RawMessage) (*Request, error) {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrInvalidRequest, fmt.Sprintf(format, args...))
	}
	members, err := readMembers(body)
	if err != nil {
		return nil, bad("%v", err)
	}
	r := &Request{members: members, stream: true, store: true}
	r.background = true
	explicit := false
	for _, m := range members {
		var err error
		switch m.name {
		case "model":
			err = json.Unmarshal(m.value, &r.model)
		case "bounds":
			err = strictly(m.value, &r.bounds)
		case "tools":
			err = json.Unmarshal(m.value, &r.tools)
		case "stream":
			err = json.Unmarshal(m.value, &r.stream)
		case "store":
			err = json.Unmarshal(m.value, &r.store)
		case "background":
			err, explicit = json.Unmarshal(m.value, &r.background), true
		case "conversation":
			r.conversation, err = readConversation(m.value)
		case "metadata":
			_, err = readMembers(m.value)
		}
		if err != nil {
			return nil, bad("%s: %v", m.name, err)
		}
	}
	if !explicit {
		r.background = r.store
	}
	switch {
	case r.model == "":
		return nil, bad("model is missing")
	case r.get("input") == nil && r.conversation == "" && r.get("prompt") == nil:
		return nil, bad("input is missing")
	case r.background && !r.store:
		return nil, bad("background needs store: the API keeps what it makes in the background")
	case r.conversation != "" && r.get("previous_response_id") != nil:
		return nil, bad("conversation and previous_response_id exclude each other")
	case r.conversation != "" && !r.store:
		return nil, bad("conversation needs store")
	}
	r.bounds, err = r.bounds.withDefaults()
	if err != nil {
		return nil, bad("bounds: %v", err)
	}
	return r, nil
}

func (b Bounds) withDefaults() (Bounds, error) {
	num := func(n *int, name string, v int) error {
		if *n < 0 {
			return fmt.Errorf("%s is %d, want a positive number", name, *n)
		}
		if *n == 0 {
			*n = v
		}
		return nil
	}
	err := errors.Join(num(&b.Rounds, "rounds", 10), num(&b.Calls, "calls", 100), num(&b.Repeats, "repeats", 3))
	if b.Time == 0 {
		b.Time = call.Duration(30 * time.Minute)
	}
	if b.Time < 0 || time.Duration(b.Time) > MaxTime {
		err = errors.Join(err, fmt.Errorf("time is %v, want at most %v", b.Time, MaxTime))
	}
	return b, err
}

// get is the value of a member, nil when it is missing or null.
func (r *Request) get(name string) json.RawMessage {
	for _, m := range r.members {
		if m.name == name && string(m.value) != "null" {
			return m.value
		}
	}
	return nil
}

// readMembers takes an object apart without changing a byte of its values.
func readMembers(body json.RawMessage) ([]member, error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return nil, errors.New("want a JSON object")
	}
	var members []member
	seen := map[string]bool{}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, err
		}
		m := member{name: tok.(string)} //nolint:forcetypeassert // the decoder takes nothing else there
		if seen[m.name] {
			return nil, fmt.Errorf("the member %q appears twice", m.name)
		}
		seen[m.name] = true
		if err := dec.Decode(&m.value); err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		members = append(members, m)
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return members, nil
}

func strictly(raw json.RawMessage, into any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

// readConversation reads "conv_1" or {"id":"conv_1"}.
func readConversation(raw json.RawMessage) (string, error) {
	var id string
	if json.Unmarshal(raw, &id) == nil {
		return id, nil
	}
	var object struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return "", errors.New("want an id or an object with an id")
	}
	return object.ID, nil
}
