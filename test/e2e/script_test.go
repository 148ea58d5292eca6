package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"

	"github.com/callfan/callfan/pkg/executor"
)

// scripted is one call of a scripted round. Arguments are JSON text.
type scripted struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	CallID    string          `json:"call_id,omitempty"`
}

// script is the message that makes the simulator require rounds of calls. It is put
// together by hand, so that the arguments' bytes stay what they are.
func script(say string, rounds ...[]scripted) string {
	out := `{"rounds":[`
	for i, round := range rounds {
		if i > 0 {
			out += ","
		}
		out += "["
		for j, c := range round {
			if j > 0 {
				out += ","
			}
			out += `{"name":` + quote(c.Name)
			if c.CallID != "" {
				out += `,"call_id":` + quote(c.CallID)
			}
			if c.Arguments != nil {
				out += `,"arguments":` + string(c.Arguments)
			}
			out += "}"
		}
		out += "]"
	}
	return out + `],"say":` + quote(say) + "}"
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// echo answers every call with its id and counts the runs.
func echo(t *testing.T, runs *atomic.Int64) func(*executor.Executor) {
	return raw(t, "f", func(_ context.Context, c executor.Call) (any, error) {
		runs.Add(1)
		return c.Key.Call, nil
	})
}

func round(n int) []scripted {
	var out []scripted
	for i := range n {
		out = append(out, scripted{Name: "f", CallID: fmt.Sprintf("call_%03d", i)})
	}
	return out
}

// message is a message of the user to a session.
func message(text string) openai.AgentSessionInputParamUnion {
	return param.Override[openai.AgentSessionInputParamUnion](json.RawMessage(
		`{"type":"agent.session.input.message","input":[{"role":"user","content":[{"type":"input_text","text":` + quote(text) + `}]}]}`))
}
