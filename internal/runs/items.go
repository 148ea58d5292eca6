package runs

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/callfan/callfan/pkg/call"
)

// item is what callfan reads of an output item.
type item struct {
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	Status    string          `json:"status"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Namespace string          `json:"namespace"`
	Arguments json.RawMessage `json:"arguments"`
	Input     json.RawMessage `json:"input"`
	Async     bool            `json:"async"`
	Caller    json.RawMessage `json:"caller"`
	Execution string          `json:"execution"`
	Content   []struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	} `json:"content"`
}

func readItem(raw json.RawMessage) item {
	var it item
	// A member that callfan does not understand spoils no other; reasoning items have
	// contents of other shapes.
	_ = json.Unmarshal(raw, &it)
	return it
}

// function is the name by which executors register what the item calls.
func (it item) function() string {
	if it.Namespace != "" {
		return it.Namespace + "." + it.Name
	}
	return it.Name
}

// call gives the call that the item asks for; false when it asks for none. A call that
// the model did not finish is none.
func (it item) call(index int) (Call, bool) {
	c := Call{Index: index, ID: it.CallID, Function: it.function(), Async: it.Async}
	switch {
	case it.CallID == "", it.Status == "incomplete":
		return Call{}, false
	case it.Type == "function_call":
		c.Kind, c.Print = FunctionCall, fingerprint(c.Function, it.Arguments)
	case it.Type == "custom_tool_call":
		c.Kind, c.Print = CustomToolCall, fingerprint(c.Function, it.Input)
	case it.Type == "tool_search_call" && it.Execution == "client":
		c.Kind, c.Print = ToolSearchCall, fingerprint("", it.Arguments)
	default:
		return Call{}, false
	}
	return c, true
}

// foreign are items that wait for something that callfan does not do.
var foreign = []string{
	"computer_call", "local_shell_call", "shell_call", "apply_patch_call", "mcp_approval_request",
}

func (it item) foreign() bool { return slices.Contains(foreign, it.Type) }

func fingerprint(name string, arguments json.RawMessage) string {
	sum := sha256.New()
	sum.Write([]byte(name))
	sum.Write([]byte{0})
	sum.Write(arguments)
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil)[:9])
}

// answerText is the text, and the refusal, of a response.
func answerText(output []json.RawMessage) (text, refusal string) {
	var said, refused strings.Builder
	for _, raw := range output {
		it := readItem(raw)
		if it.Type != "message" {
			continue
		}
		for _, part := range it.Content {
			switch part.Type {
			case "output_text":
				said.WriteString(part.Text)
			case "refusal":
				refused.WriteString(part.Refusal)
			}
		}
	}
	return said.String(), refused.String()
}

// arguments are what executors get. Those of functions are a JSON text in a string, which
// the dispatcher unwraps; a custom tool's text becomes an object of one string.
func (it item) arguments(f call.Function) json.RawMessage {
	if it.Type != "custom_tool_call" {
		return it.Arguments
	}
	var args object
	args.add(textParameter(f), it.Input)
	return args.end()
}

// textParameter is the one parameter of a function that serves a custom tool: its only
// property, or else "input".
func textParameter(f call.Function) string {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(f.Parameters, &schema) == nil && len(schema.Properties) == 1 {
		for name := range schema.Properties {
			return name
		}
	}
	return "input"
}

// outputItem is the item that answers a call. An error travels in the output, as the API
// knows no other way.
func outputItem(kind CallKind, it item, result call.Result) json.RawMessage {
	var out object
	out.text("type", string(kind)+"_output")
	out.text("call_id", it.CallID)
	if len(it.Caller) > 0 && string(it.Caller) != "null" {
		out.add("caller", it.Caller)
	}
	switch output := bytes.TrimSpace(result.Output); {
	case !result.Success:
		var failure object
		failure.text("error", result.Error)
		out.text("output", string(failure.end()))
	case len(output) == 0, string(output) == "null":
		out.text("output", "")
	default:
		out.add("output", output)
	}
	return out.end()
}
