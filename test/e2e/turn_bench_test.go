package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/simulator"
	"github.com/callfan/callfan/pkg/executor"
)

// BenchmarkTurn measures a turn of 32 parallel calls of 100 ms each, from the user's
// message to the end of the turn, beside the runner of the official SDK in the same
// run: in process, one call at a time, one POST for each result. The API answers at
// once, or takes 50 ms for each request.
func BenchmarkTurn(b *testing.B) {
	const calls, handler = 32, 100 * time.Millisecond
	for _, latency := range []int{0, 50} {
		b.Run(fmt.Sprintf("api=%dms", latency), func(b *testing.B) {
			s := start(b, options{
				sim: simulator.Config{Faults: simulator.Faults{Latency: simulator.Span{MinMS: latency, MaxMS: latency}}},
				handlers: raw(b, "f", func(context.Context, executor.Call) (any, error) {
					<-time.After(handler)
					return "ok", nil
				}),
			})
			id := s.session("hello", "f")
			s.idle(id)
			turns, before := 0, s.sim.Stats()
			var ours time.Duration
			for b.Loop() {
				turns++
				ours += s.turn(b, id, script("ok", uniqueRound(turns, calls)))
			}
			after := s.sim.Stats()
			sdk := s.sdkTurn(b, s.session("hello", "f"), script("ok", uniqueRound(0, calls)), handler)
			turn := ours / time.Duration(turns)
			b.ReportMetric(float64(turn.Milliseconds()), "ms/turn")
			b.ReportMetric(float64(after.Batches-before.Batches)/float64(turns), "batches/turn")
			b.ReportMetric(float64(sdk.Milliseconds()), "sdk-ms/turn")
			b.ReportMetric(float64(sdk)/float64(turn), "x-faster-than-sdk")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func uniqueRound(turn, n int) []scripted {
	var out []scripted
	for i := range n {
		out = append(out, scripted{Name: "f", CallID: fmt.Sprintf("call_%d_%d", turn, i), Arguments: []byte(`{}`)})
	}
	return out
}

// turn posts a message and waits for the end of its turn.
func (s *stack) turn(b *testing.B, id, text string) time.Duration {
	b.Helper()
	done := s.sim.Stats().TurnsCompleted + 1
	began := time.Now()
	require.NoError(b, s.api.Beta.Agents.Sessions.Events.New(b.Context(), id, openai.BetaAgentSessionEventNewParams{
		Events: []openai.AgentSessionInputParamUnion{message(text)},
	}))
	require.Eventually(b, func() bool { return s.sim.Stats().TurnsCompleted >= done }, patience, time.Millisecond)
	return time.Since(began)
}

// sdkTurn has the official SDK's own runner do the same. The session is not watched.
func (s *stack) sdkTurn(b *testing.B, id, text string, handler time.Duration) time.Duration {
	b.Helper()
	s.idle(id)
	require.NoError(b, s.disp.Detach(b.Context(), id))
	began := time.Now()
	stream := s.api.Beta.Agents.Sessions.Stream(b.Context(), id, openai.AgentSessionStreamParams{
		Input: text,
		ToolHandlers: map[string]openai.AgentToolHandler{"f": func(context.Context, map[string]any) (any, error) {
			<-time.After(handler)
			return "ok", nil
		}},
	})
	for stream.Next() {
	}
	require.NoError(b, stream.Err())
	return time.Since(began)
}
