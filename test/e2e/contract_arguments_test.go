package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/simulator"
	"github.com/callfan/callfan/pkg/executor"
)

func TestContract_BadArguments(t *testing.T) {
	t.Parallel()
	parameters := json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"},"nights":{"type":"integer","minimum":1},
		"price":{"type":"number"}},"required":["city","nights"],"additionalProperties":false}`)
	cases := []struct{ sent, refused string }{
		{sent: `{"city":"Bern","nights":"2"}`, refused: "/nights: got string, want integer"},
		{sent: `{"city":"Bern","nights":0}`, refused: "/nights: must be at least 1"},
		{sent: `{"nights":2}`, refused: "/city: required and missing"},
		{sent: `{"city":"Bern","nights":2,"pets":["a dog"]}`, refused: "/pets: no such member is allowed"},
		{sent: `"{\"city\":5,\"nights\":2}"`, refused: "/city: got number, want string"},
		{sent: ``, refused: "/city: required and missing\n/nights: required and missing"},
		{sent: `null`, refused: "/city: required and missing\n/nights: required and missing"},
		{sent: `[]`, refused: "must be a JSON object, not an array"},
		{sent: `{"city":"Bern","nights":2}`},
		{sent: `{"city":"<Bern&\u0000\u2028>","nights":9007199254740993,"price":1e400}`},
		{sent: `{"city":"Bern", "city" : "Thun","nights":1e400,"price":-0}`},
		{sent: `{"city":"Bern","nights":2.0,"price":1e-999999999}`},
	}
	var mu sync.Mutex
	seen := map[string]string{}
	s := start(t, options{handlers: raw(t, "f", func(_ context.Context, c executor.Call) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		seen[c.Key.Call] = string(c.Arguments)
		return "ok", nil
	}, executor.WithParameters(parameters))})
	var round []scripted
	for i, c := range cases {
		sc := scripted{Name: "f", CallID: fmt.Sprint("call_", i)}
		if c.sent != "" {
			sc.Arguments = []byte(c.sent)
		}
		round = append(round, sc)
	}
	id := s.session(script("ok", round), "f")
	s.idle(id)
	s.settled(id)
	got := s.answers(id)
	for i, c := range cases {
		key := fmt.Sprint("call_", i)
		answer := got[key]
		if c.refused == "" {
			require.True(t, answer.Success, "%s: %s", c.sent, answer.Error)
			require.Equal(t, c.sent, seen[key], "the bytes of the API")
			continue
		}
		require.Contains(t, said(t, answer), c.refused)
		require.NotContains(t, seen, key, "no executor sees %s", c.sent)
	}
	s.clean()
}

// said is the error that the model was told.
func said(t *testing.T, answer simulator.Result) string {
	t.Helper()
	require.False(t, answer.Success, string(answer.Output))
	var text string
	require.NoError(t, json.Unmarshal(answer.Error, &text))
	return text
}
