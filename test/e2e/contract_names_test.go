package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/executor"
)

func TestContract_FunctionNamesAreFreeText(t *testing.T) {
	t.Parallel()
	names := []string{
		strings.Repeat("n", 65), strings.Repeat("long ", 100), "two words", "a.b.c", "a_b_c", "a-b-c", "*", ">", "fn.>", "get weather",
		"get_weather", "line\r\nbreak", "PUB x 1", "🌦️", "=YS5i", "../../etc", `"quoted"`, "GET_WEATHER",
	}
	s := start(t, options{handlers: func(ex *executor.Executor) {
		for _, name := range names {
			raw(t, name, func(_ context.Context, c executor.Call) (any, error) { return "from " + c.Function, nil })(ex)
		}
	}})
	var round []scripted
	for i, name := range names {
		round = append(round, scripted{Name: name, CallID: fmt.Sprint("call_", i), Arguments: []byte(`{}`)})
	}
	id := s.session(script("ok", round), names...)
	s.idle(id)
	got := s.answers(id)
	for i, name := range names {
		require.Equal(t, string(text("from "+name)), canonical(t, got[fmt.Sprint("call_", i)].Output), "%q", name)
	}
	s.settled(id)
	s.clean()
}

func TestContract_ImpossibleName(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	s := start(t, options{handlers: echo(t, &runs)})
	id := s.session(script("ok", []scripted{{Name: "", CallID: "a"}, {Name: "f", CallID: "b"}}), "", "f")
	s.idle(id)
	s.settled(id)
	require.Equal(t, "the function has no name", said(t, s.answers(id)["a"]))
	require.True(t, s.answers(id)["b"].Success)
	require.EqualValues(t, 1, runs.Load())
	s.clean()
}
