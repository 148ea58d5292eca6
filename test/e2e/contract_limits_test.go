package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/executor"
)

func TestContract_ResultsAtTheLimits(t *testing.T) {
	t.Parallel()
	const limit = 4 << 20
	sizes := []int{1 << 20, limit - 8<<10, limit - 1<<10, limit, limit + 1<<10, 6 << 20, 9 << 20}
	s := start(t, options{handlers: raw(t, "f", func(_ context.Context, c executor.Call) (any, error) {
		var in struct{ N int }
		if err := json.Unmarshal(c.Arguments, &in); err != nil {
			return nil, err
		}
		return strings.Repeat("x", in.N), nil
	})})
	var round []scripted
	for i, n := range sizes {
		round = append(round, scripted{Name: "f", CallID: fmt.Sprint("call_", i), Arguments: fmt.Appendf(nil, `{"N":%d}`, n)})
	}
	id := s.session(script("ok", round), "f")
	s.idle(id)
	got := s.answers(id)
	for i, n := range sizes {
		answer := got[fmt.Sprint("call_", i)]
		if n <= limit-8<<10 {
			require.True(t, answer.Success, "%d: %s", n, answer.Error)
			require.Len(t, answer.Output, n+2)
			continue
		}
		require.Contains(t, string(answer.Error), "result too large", "%d bytes", n)
	}
}
