package simulator

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	maxCallID      = 64
	maxOutputRunes = 10_485_760
)

// responseItem is one item of the input or output of a response. The parsed fields are those that the simulator acts on.
type responseItem struct {
	raw    []byte // as it is listed, with an id
	id     string
	kind   string
	role   string
	text   string // of a message
	callID string

	// Of a call.
	namespace, name string
	arguments       string // or input
	async           bool
	incomplete      bool
	client          bool // a tool_search_call that the client answers

	// Of an answer.
	output json.RawMessage
	caller json.RawMessage
	tools  []responseTool // of tool_search_output

	encrypted string // of a reasoning item
}

// The kinds of items that are calls, and what answers them.
const (
	kindMessage         = "message"
	kindFunctionCall    = "function_call"
	kindFunctionOutput  = "function_call_output"
	kindCustomCall      = "custom_tool_call"
	kindCustomOutput    = "custom_tool_call_output"
	kindSearchCall      = "tool_search_call"
	kindSearchOutput    = "tool_search_output"
	kindReasoning       = "reasoning"
	kindReference       = "item_reference"
	functionCallWords   = "function call"
	customToolCallWords = "custom tool call"
	toolSearchCallWords = "tool search call"
)

// callKinds maps a kind of call to its name in error messages, and answerKinds a kind of answer to its kind of call.
var (
	callKinds = map[string]string{
		kindFunctionCall: functionCallWords, kindCustomCall: customToolCallWords, kindSearchCall: toolSearchCallWords,
	}
	answerKinds = map[string]string{
		kindFunctionOutput: kindFunctionCall, kindCustomOutput: kindCustomCall, kindSearchOutput: kindSearchCall,
	}
	idPrefixes = map[string]string{
		kindMessage: "msg_", kindFunctionCall: "fc_", kindFunctionOutput: "fco_", kindCustomCall: "ctc_",
		kindCustomOutput: "ctco_", kindSearchCall: "tsc_", kindSearchOutput: "tso_", kindReasoning: "rs_",
	}
	otherItemKinds = []string{
		"apply_patch_call", "apply_patch_call_output", "code_interpreter_call", "compaction", "compaction_trigger",
		"computer_call", "computer_call_output", "file_search_call", "image_generation_call", "local_shell_call",
		"local_shell_call_output", "mcp_approval_request", "mcp_approval_response", "mcp_call", "mcp_list_tools",
		"program", "program_output", "shell_call", "shell_call_output", "web_search_call", "additional_tools",
	}
)

// isCall and isAnswer say what an item is to the pairing of calls and outputs.
func (it *responseItem) isCall() bool {
	return callKinds[it.kind] != "" && (it.kind != kindSearchCall || it.client)
}

func (it *responseItem) isAnswer() bool { return answerKinds[it.kind] != "" && it.callID != "" }

type itemFields struct {
	ID        *string         `json:"id"`
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    *string         `json:"call_id"`
	Name      *string         `json:"name"`
	Namespace *string         `json:"namespace"`
	Arguments json.RawMessage `json:"arguments"`
	Input     *string         `json:"input"`
	Output    json.RawMessage `json:"output"`
	Async     *bool           `json:"async"`
	Status    *string         `json:"status"`
	Execution *string         `json:"execution"`
	Tools     json.RawMessage `json:"tools"`
	Caller    json.RawMessage `json:"caller"`
	Encrypted *string         `json:"encrypted_content"`
}

// parseResponseInput reads the input of a request, a string or an array of items, at the parameter of that name.
func parseResponseInput(raw json.RawMessage, param string) ([]*responseItem, error) {
	if isNull(raw) {
		return nil, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		content := append(append([]byte(`[{"type":"input_text","text":`), bytes.TrimSpace(raw)...), "}]"...)
		return []*responseItem{newMessageItem("user", content, text)}, nil
	}
	var entries []json.RawMessage
	if err := json.Unmarshal(raw, &entries); err != nil {
		return nil, refused(param, "invalid_type",
			"Invalid type for '%s': expected one of a string or array of input items.", param)
	}
	items := make([]*responseItem, 0, len(entries))
	for i, entry := range entries {
		it, err := parseItem(entry, fmt.Sprintf("%s[%d]", param, i))
		if err != nil {
			return nil, err
		}
		items = append(items, it)
	}
	return items, nil
}

func newMessageItem(role string, content []byte, text string) *responseItem {
	it := &responseItem{id: newID("msg_"), kind: kindMessage, role: role, text: text}
	b := appendString([]byte(`{"id":`), it.id)
	b = append(b, `,"type":"message","status":"completed"`...)
	b = appendRawField(b, "content", content)
	it.raw = append(appendStringField(b, "role", role), '}')
	return it
}

// parseItem reads one item and gives it an id when it has none.
func parseItem(raw json.RawMessage, param string) (*responseItem, error) {
	var f itemFields
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, refused(param, "invalid_type", "Invalid type for '%s': expected an input item.", param)
	}
	if f.Type == "" {
		switch {
		case f.Role != "":
			f.Type = kindMessage
		case f.ID != nil && f.CallID == nil:
			f.Type = kindReference
		default:
			return nil, missing(param + ".type")
		}
	}
	it := &responseItem{kind: f.Type}
	if f.ID != nil {
		it.id = *f.ID
	}
	if err := it.read(&f, param); err != nil {
		return nil, err
	}
	if it.raw == nil {
		it.raw = raw
		if it.id == "" {
			it.id = newID(cmp.Or(idPrefixes[it.kind], "item_"))
			it.raw = appendString([]byte(`{"id":`), it.id)
			it.raw = append(append(it.raw, ','), bytes.TrimLeft(raw, " \t\r\n{")...)
		}
	}
	return it, nil
}

func (it *responseItem) read(f *itemFields, param string) error {
	switch it.kind {
	case kindMessage:
		return it.readMessage(f, param)
	case kindFunctionCall, kindCustomCall, kindSearchCall:
		return it.readCall(f, param)
	case kindFunctionOutput, kindCustomOutput, kindSearchOutput:
		return it.readAnswer(f, param)
	case kindReasoning:
		if f.Encrypted != nil {
			it.encrypted = *f.Encrypted
		}
		return nil
	case kindReference:
		if it.id == "" {
			return missing(param + ".id")
		}
		return nil
	}
	if !slices.Contains(otherItemKinds, it.kind) {
		kinds := append(append(slices.Clone(otherItemKinds), kindReference), slices.Collect(maps.Keys(idPrefixes))...)
		slices.Sort(kinds)
		return invalidValue(param, it.kind, "'"+strings.Join(kinds, "', '")+"'")
	}
	return nil
}
