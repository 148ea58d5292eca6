package dispatcher

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/callfan/callfan/pkg/call"
)

// rejection is why a call is answered without being handed to an executor.
type rejection struct{ reason, text string }

// admit gives the arguments to hand to executors: always an object. The API sends
// an object or, by some paths, an object encoded as a string, which is unwrapped
// once; nothing at all becomes {}.
func admit(c call.Call) (json.RawMessage, *rejection) {
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
		return json.RawMessage("{}"), nil
	}
	if args[0] != '{' {
		return nil, &rejection{call.ReasonInvalidArguments, fmt.Sprintf(
			"the arguments must be a JSON object, not %s", jsonKind(args[0]))}
	}
	return args, nil
}

// check says how the arguments of a call do not fit its function's parameters. A call that
// may have been published is not checked any more: the function may have been registered
// anew with other parameters, while an executor works on the call (ADR 0016). Whatever makes
// it wait after a publication, or after an owner that may have published it, sets publishAt.
func (s *session) check(t *tracked, f call.Function, args json.RawMessage) *rejection {
	if s.d.arguments == nil || t.attempt > 1 || t.handover > 1 || !t.publishAt.IsZero() {
		return nil
	}
	if err := s.d.arguments.Check(f, args); err != nil {
		return &rejection{call.ReasonInvalidArguments, fmt.Sprintf(
			"the arguments do not fit the parameters of %s:\n%v", t.Function, err)}
	}
	return nil
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
