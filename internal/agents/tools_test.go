package agents_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/agents"
	"github.com/callfan/callfan/internal/simulator"
	"github.com/callfan/callfan/pkg/call"
)

func TestToolsOfASession(t *testing.T) {
	t.Parallel()
	s := simulate(t, simulator.Config{})
	id := s.create(t, `[]`)
	tools, err := s.SessionTools(t.Context(), id)
	require.NoError(t, err)
	require.Len(t, tools, 1)
	got, err := s.Session(t.Context(), id)
	require.NoError(t, err)
	require.JSONEq(t, "["+string(tools[0])+"]", string(got.Tools))

	const exact = `{"type":"function","name":"g","description":"<g>","parameters":{ "type": "object", "maxProperties": 1.0e2 }}`
	tools, err = s.SetSessionTools(t.Context(), id, []json.RawMessage{[]byte(exact), []byte(`{"type":"tool_search"}`)})
	require.NoError(t, err)
	require.Len(t, tools, 1, "a session does not show tool search")
	require.Contains(t, string(tools[0]), `{ "type": "object", "maxProperties": 1.0e2 }`)

	tools, err = s.SetSessionTools(t.Context(), id, nil)
	require.NoError(t, err)
	require.Empty(t, tools)

	var refused *call.Refusal
	_, err = s.SessionTools(t.Context(), "sess_gone")
	require.ErrorAs(t, err, &refused)
	require.Equal(t, call.RefusedGone, refused.Class)
	_, err = s.SetSessionTools(t.Context(), id, []json.RawMessage{[]byte(exact), []byte(exact)})
	require.ErrorContains(t, err, "duplicate")
	_, err = s.SetSessionTools(t.Context(), id, []json.RawMessage{[]byte(`"` + strings.Repeat("x", agents.MaxTools) + `"`)})
	require.ErrorIs(t, err, agents.ErrToolsTooLarge)
	_, err = s.AgentTools(t.Context(), "agent_gone")
	require.ErrorAs(t, err, &refused)
}
