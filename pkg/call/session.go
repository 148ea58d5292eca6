package call

import "encoding/json"

// Session is what a dispatcher needs to know of an API session at one moment.
type Session struct {
	ID string
	// Status is idle, in_progress, requires_action or failed.
	Status string
	// Calls are the function calls of required_actions, in the API's order. The
	// list is the only truth about what is pending.
	Calls []Call
	// Others counts required actions of other types, which callfan leaves alone.
	Others int
	// Tools is the session's list of tools as the API shows it; nil when it shows none.
	Tools json.RawMessage
}

// Answer is one tool result in a submission.
type Answer struct {
	Key
	Result Result
}

// Batch is one submission: tool results of one session that go to the API in one
// request, under one idempotency key.
type Batch struct {
	Session        string
	Answers        []Answer
	IdempotencyKey string
}

// AppendEvent appends the answer's tool_result input event, as the API takes it,
// to dst. The output's bytes are copied, not re-encoded.
func (a Answer) AppendEvent(dst []byte) []byte {
	dst = append(dst, `{"type":"agent.session.input.tool_result","turn_id":`...)
	dst = appendString(dst, a.Turn)
	dst = append(dst, `,"call_id":`...)
	dst = appendString(dst, a.Call)
	if !a.Result.Success {
		dst = append(dst, `,"success":false,"error":`...)
		return append(appendString(dst, a.Result.Error), '}')
	}
	dst = append(dst, `,"success":true,"output":`...)
	if len(a.Result.Output) == 0 {
		dst = append(dst, "null"...)
	} else {
		dst = append(dst, a.Result.Output...)
	}
	return append(dst, '}')
}

func appendString(dst []byte, s string) []byte {
	b, err := json.Marshal(s)
	if err != nil { // a string always marshals
		panic(err)
	}
	return append(dst, b...)
}
