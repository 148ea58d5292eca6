package simulator

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
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

func (it *responseItem) readMessage(f *itemFields, param string) error {
	if accepted := []string{"assistant", "system", "developer", "user"}; !slices.Contains(accepted, f.Role) {
		return invalidValue(param+".role", f.Role, "'assistant', 'system', 'developer', and 'user'")
	}
	it.role = f.Role
	if isNull(f.Content) {
		return missing(param + ".content")
	}
	var text string
	if json.Unmarshal(f.Content, &text) == nil {
		part := `[{"type":"input_text","text":`
		if f.Role == "assistant" {
			part = `[{"type":"output_text","annotations":[],"text":`
		}
		content := append(append([]byte(part), bytes.TrimSpace(f.Content)...), "}]"...)
		made := newMessageItem(f.Role, content, text)
		if it.id != "" {
			made.raw = bytes.Replace(made.raw, []byte(made.id), []byte(it.id), 1)
			made.id = it.id
		}
		*it = *made
		return nil
	}
	var parts []struct{ Type, Text string }
	if err := json.Unmarshal(f.Content, &parts); err != nil {
		return refused(param+".content", "invalid_type",
			"Invalid type for '%s': expected one of a string or array of content parts.", param+".content")
	}
	var texts []string
	for i, part := range parts {
		switch part.Type {
		case "input_text", "output_text":
			texts = append(texts, part.Text)
		case "input_image", "input_file", "input_audio", "refusal", "summary_text":
		default:
			return invalidValue(fmt.Sprintf("%s.content[%d]", param, i), part.Type,
				"'input_text', 'input_image', 'output_text', 'refusal', 'input_file', 'computer_screenshot', and 'summary_text'")
		}
	}
	it.text = strings.Join(texts, "\n")
	return nil
}

func (it *responseItem) readCall(f *itemFields, param string) error {
	it.client = it.kind == kindSearchCall && f.Execution != nil && *f.Execution == "client"
	it.async = f.Async != nil && *f.Async
	it.incomplete = f.Status != nil && *f.Status == "incomplete"
	if f.Namespace != nil {
		it.namespace = *f.Namespace
	}
	if f.Name != nil {
		it.name = *f.Name
	}
	if err := it.readCallID(f.CallID, param, it.kind == kindSearchCall); err != nil {
		return err
	}
	switch {
	case it.kind == kindSearchCall:
		it.arguments = string(f.Arguments)
		return nil
	case f.Name == nil:
		return missing(param + ".name")
	case it.kind == kindCustomCall && f.Input == nil:
		return missing(param + ".input")
	case it.kind == kindCustomCall:
		it.arguments = *f.Input
		return nil
	case isNull(f.Arguments):
		return missing(param + ".arguments")
	}
	if err := json.Unmarshal(f.Arguments, &it.arguments); err != nil {
		return refused(param+".arguments", "invalid_type",
			"Invalid type for '%s': expected a string, but got an object instead.", param+".arguments")
	}
	return nil
}

func (it *responseItem) readCallID(id *string, param string, optional bool) error {
	param += ".call_id"
	switch {
	case id == nil && optional:
		return nil
	case id == nil:
		return missing(param)
	case *id == "":
		return refused(param, "empty_string",
			"Invalid '%s': empty string. Expected a string with minimum length 1, but got an empty string instead.", param)
	case utf8.RuneCountInString(*id) > maxCallID:
		return tooLong(param, maxCallID, utf8.RuneCountInString(*id))
	}
	it.callID = *id
	return nil
}

func (it *responseItem) readAnswer(f *itemFields, param string) error {
	// An output may come from a tool that the model did not call; then it names the tool.
	named := it.kind == kindFunctionOutput && f.Name != nil && *f.Name != ""
	own := it.kind == kindSearchOutput && f.Execution != nil && *f.Execution == "server"
	if err := it.readCallID(f.CallID, param, named || own); err != nil {
		return err
	}
	it.caller = f.Caller
	if it.kind == kindSearchOutput {
		if f.Tools == nil {
			return missing(param + ".tools")
		}
		var err error
		it.output = f.Tools
		it.tools, err = parseResponseTools(f.Tools, param+".tools", false)
		return err
	}
	param += ".output"
	if isNull(f.Output) {
		return missing(param)
	}
	it.output = f.Output
	var text string
	if json.Unmarshal(f.Output, &text) == nil {
		if n := utf8.RuneCountInString(text); n > maxOutputRunes {
			return tooLong(param, maxOutputRunes, n)
		}
		return nil
	}
	var parts []struct{ Type string }
	if err := json.Unmarshal(f.Output, &parts); err != nil {
		return refused(param, "invalid_type",
			"Invalid type for '%s': expected one of a string or array of input content.", param)
	}
	for i, part := range parts {
		if part.Type != "input_text" && part.Type != "input_image" && part.Type != "input_file" {
			return invalidValue(fmt.Sprintf("%s[%d]", param, i), part.Type, "'input_text', 'input_image', and 'input_file'")
		}
	}
	return nil
}
