package runs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// maxMetadata is how many pairs the API takes.
const maxMetadata = 16

// material is what the next request is made of.
type material struct {
	run   string
	round int
	tools json.RawMessage
	// previous is the id of the response before; empty in the first round.
	previous string
	// earlier are all items and outputs since the request's own input, in order; only used
	// without store.
	earlier []json.RawMessage
	// outputs are those that this round sends.
	outputs []json.RawMessage
}

// compose writes the body of a round's request: always the same bytes for the same
// round. Instructions and tools are sent in each, since no response inherits them.
func (r *Request) compose(m material) (json.RawMessage, error) {
	var body object
	for _, member := range r.members {
		if !slices.Contains(own, member.name) {
			body.add(member.name, member.value)
		}
	}
	input, err := r.input(m)
	if err != nil {
		return nil, err
	}
	body.add("input", input)
	if len(m.tools) > 0 && string(m.tools) != "[]" {
		body.add("tools", m.tools)
	}
	choice := r.get("tool_choice")
	if m.round > 1 {
		if choice, err = relaxed(choice); err != nil {
			return nil, err
		}
	}
	body.add("tool_choice", choice)
	switch {
	case m.round > 1 && r.store && r.conversation == "":
		body.text("previous_response_id", m.previous)
	default:
		body.add("previous_response_id", r.get("previous_response_id"))
	}
	body.add("include", r.include())
	body.add("metadata", r.metadata(m))
	if r.stream {
		body.add("stream", json.RawMessage("true"))
	}
	if r.background {
		body.add("background", json.RawMessage("true"))
	}
	return body.end(), nil
}

// input is the request's own input in the first round; later the outputs alone, or all
// that was said so far where the API keeps nothing.
func (r *Request) input(m material) (json.RawMessage, error) {
	given := r.get("input")
	if m.round == 1 {
		return given, nil
	}
	if r.store {
		return array(m.outputs), nil
	}
	var items []json.RawMessage
	switch given = bytes.TrimSpace(given); {
	case len(given) == 0:
	case given[0] == '"':
		var message object
		message.text("role", "user")
		message.add("content", given)
		items = append(items, message.end())
	default:
		if err := json.Unmarshal(given, &items); err != nil {
			return nil, fmt.Errorf("%w: input: want text or a list of items: %w", ErrInvalidRequest, err)
		}
	}
	return array(append(append(items, m.earlier...), m.outputs...)), nil
}

// encrypted is what reasoning items need to be carried along.
const encrypted = "reasoning.encrypted_content"

// include asks for the encrypted reasoning where the API keeps nothing.
func (r *Request) include() json.RawMessage {
	given := r.get("include")
	if r.store {
		return given
	}
	var list []string
	if len(given) > 0 && json.Unmarshal(given, &list) != nil {
		return given // the API says what is wrong with it
	}
	if slices.Contains(list, encrypted) {
		return given
	}
	values := make([]json.RawMessage, 0, len(list)+1)
	for _, v := range append(list, encrypted) {
		values = append(values, appendText(nil, v))
	}
	return array(values)
}

// metadata names the run and the round in each response, unless there is no room.
func (r *Request) metadata(m material) json.RawMessage {
	given := r.get("metadata")
	var pairs []member
	if given != nil {
		pairs, _ = readMembers(given) // was read before
	}
	if len(pairs)+2 > maxMetadata {
		return given
	}
	var out object
	for _, p := range pairs {
		out.add(p.name, p.value)
	}
	out.text("callfan_run", m.run)
	out.text("callfan_round", strconv.Itoa(m.round))
	return out.end()
}

// relaxed is the tool_choice after the first round: what forces a call has done so, and
// would force one for ever (ADR 0023).
func relaxed(choice json.RawMessage) (json.RawMessage, error) {
	choice = bytes.TrimSpace(choice)
	switch {
	case len(choice) == 0, string(choice) == `"none"`, string(choice) == `"auto"`:
		return choice, nil
	case choice[0] == '"':
		return nil, nil
	}
	members, err := readMembers(choice)
	if err != nil {
		return nil, fmt.Errorf("%w: tool_choice: %w", ErrInvalidRequest, err)
	}
	var out object
	allowed := false
	for _, m := range members {
		allowed = allowed || m.name == "type" && string(m.value) == `"allowed_tools"`
		if m.name == "mode" {
			m.value = json.RawMessage(`"auto"`)
		}
		out.add(m.name, m.value)
	}
	if !allowed {
		return nil, nil
	}
	return out.end(), nil
}
