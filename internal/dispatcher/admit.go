package dispatcher

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/callfan/callfan/pkg/call"
)

// rejection is why a call is answered without being handed to an executor.
type rejection struct{ reason, text string }

// admit gives the arguments to hand to executors: always an object. The API sends
// an object or, by some paths, an object encoded as a string, which is unwrapped
// once; nothing at all becomes {} when the function requires no member.
func admit(c call.Call, f call.Function) (json.RawMessage, *rejection) {
	args := bytes.TrimSpace(c.Arguments)
	if len(args) > 0 && args[0] == '"' {
		var text string
		if err := json.Unmarshal(args, &text); err != nil {
			return nil, &rejection{call.ReasonInvalidArguments, "the arguments are not valid JSON: " + err.Error()}
		}
		args = bytes.TrimSpace([]byte(text))
		if len(args) > 0 && !json.Valid(args) {
			return nil, &rejection{call.ReasonInvalidArguments, "the arguments are a string that does not hold valid JSON"}
		}
	}
	if len(args) == 0 || string(args) == "null" {
		if required := required(f.Parameters); len(required) > 0 {
			return nil, &rejection{call.ReasonInvalidArguments, fmt.Sprintf(
				"the arguments are missing; %s requires: %s", c.Function, strings.Join(required, ", "))}
		}
		return json.RawMessage("{}"), nil
	}
	if args[0] != '{' {
		return nil, &rejection{call.ReasonInvalidArguments, fmt.Sprintf(
			"the arguments must be a JSON object, not %s", jsonKind(args[0]))}
	}
	return args, nil
}

func required(schema json.RawMessage) []string {
	var s struct {
		Required []string `json:"required"`
	}
	if len(schema) == 0 || json.Unmarshal(schema, &s) != nil {
		return nil
	}
	return s.Required
}

func jsonKind(first byte) string {
	switch first {
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	default:
		return "a number"
	}
}
