package redisstore

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
	"github.com/callfan/callfan/pkg/results/internal/body"
)

var benchOutput = bytes.Repeat([]byte("x"), 512)

func benchStore(b *testing.B, lanes int) *Store {
	b.Helper()
	server := testservers.Redis(b)
	s, err := New(context.Background(), Config{URL: server.URL(), Lanes: lanes})
	require.NoError(b, err)
	b.Cleanup(func() { _ = s.Close() })
	return s
}

// pair claims and completes one call with a result of 512 bytes.
func pair(s *Store, k call.Key) error {
	ctx := context.Background()
	if _, err := s.Claim(ctx, 1, []results.Claim{{Key: k, Function: "get_weather", State: call.Seen}}); err != nil {
		return err
	}
	_, err := s.Complete(ctx, []uint64{1}, []results.Completion{{
		Key: k, Function: "get_weather", OutcomeID: "1-AAAAAAAAAAAAAAAAAAAAAA.s", Attempt: 1,
		Result: call.Result{Success: true, Output: benchOutput, Reason: call.ReasonHandler},
	}})
	return err
}

// rawPairs runs the same scripts without the store: pipelines of depth claims,
// then of depth completions, back to back on each lane.
func rawPairs(s *Store, lanes, depth, n int, run string) error {
	stored := body.Append(nil, call.Result{Success: true, Output: benchOutput, Reason: call.ReasonHandler})
	var next atomic.Int64
	errs := make([]error, lanes)
	var wg sync.WaitGroup
	for lane := range lanes {
		wg.Go(func() {
			for errs[lane] == nil {
				first := int(next.Add(int64(depth))) - depth
				if first >= n {
					return
				}
				for _, sc := range []*script{claimScript, completeScript} {
					p := s.client.Pipeline()
					for i := first; i < min(first+depth, n); i++ {
						session, turn, id := run+strconv.Itoa(i/16), "turn_1", "call_"+strconv.Itoa(i)
						keys := []string{s.keys.turn(session, turn), s.keys.bodies(session, turn), s.keys.turns(session)}
						args := []any{"1", s.limits.active, s.limits.retention, turn, id, "get_weather"}
						if sc == claimScript {
							args = append(args, "s")
						} else {
							args = append(args, "S", "1-AAAAAAAAAAAAAAAAAAAAAA.s", "1", "", stored, "")
						}
						p.EvalSha(context.Background(), sc.hash, keys, args...)
					}
					if _, err := p.Exec(context.Background()); err != nil {
						errs[lane] = err
					}
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkPairs measures claim and complete of one call each, in one run: the
// raw pipeline of the same scripts, 256 concurrent callers of the store, and one
// caller. It reports pairs per second and the ratios to the raw pipeline.
func BenchmarkPairs(b *testing.B) {
	for _, lanes := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("lanes=%d", lanes), func(b *testing.B) {
			s := benchStore(b, lanes)
			rates := map[string]float64{}
			var runs int
			for b.Loop() {
				runs++
				measure := func(name string, n int, do func(run string) error) {
					start := time.Now()
					require.NoError(b, do(fmt.Sprintf("%s_%d_", name, runs)))
					rates[name] += float64(n) / time.Since(start).Seconds()
				}
				measure("raw", 20_000, func(run string) error { return rawPairs(s, lanes, 128, 20_000, run) })
				measure("batched", 20_000, func(run string) error { return storePairs(s, 256, 20_000, run) })
				measure("lone", 2_000, func(run string) error { return storePairs(s, 1, 2_000, run) })
				require.NoError(b, s.client.FlushDB(context.Background()).Err())
			}
			b.ReportMetric(rates["raw"]/float64(runs), "raw-pairs/s")
			b.ReportMetric(rates["batched"]/float64(runs), "batched-pairs/s")
			b.ReportMetric(rates["lone"]/float64(runs), "lone-pairs/s")
			b.ReportMetric(rates["batched"]/rates["raw"], "batched/raw")
			b.ReportMetric(rates["lone"]/rates["raw"], "lone/raw")
		})
	}
}

func storePairs(s *Store, callers, n int, run string) error {
	var next atomic.Int64
	errs := make([]error, callers)
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for errs[c] == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				errs[c] = pair(s, call.Key{Session: run + strconv.Itoa(i/16), Turn: "turn_1", Call: "call_" + strconv.Itoa(i)})
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkTurn claims and completes turns of 32 calls, each in one request.
func BenchmarkTurn(b *testing.B) {
	s := benchStore(b, DefaultLanes)
	n := 0
	for b.Loop() {
		n++
		claims, completions := make([]results.Claim, 32), make([]results.Completion, 32)
		fences := make([]uint64, 32)
		for i := range claims {
			fences[i] = 1
			k := call.Key{Session: "sess", Turn: strconv.Itoa(n), Call: strconv.Itoa(i)}
			claims[i] = results.Claim{Key: k, Function: "f", State: call.Seen}
			completions[i] = results.Completion{Key: k, OutcomeID: "o", Result: call.Result{Success: true, Output: benchOutput}}
		}
		_, err := s.Claim(context.Background(), 1, claims)
		require.NoError(b, err)
		_, err = s.Complete(context.Background(), fences, completions)
		require.NoError(b, err)
	}
}

// BenchmarkMemory reports the bytes that Redis needs per call: claimed, with a
// result of 512 bytes, and ended, in turns of 1 and of 16 calls.
func BenchmarkMemory(b *testing.B) {
	for _, size := range []int{1, 16} {
		b.Run(fmt.Sprintf("calls=%d", size), func(b *testing.B) {
			const calls = 16_000
			for b.Loop() {
				s := benchStore(b, DefaultLanes)
				used := func() float64 {
					info, err := s.client.Info(context.Background(), "memory").Result()
					require.NoError(b, err)
					_, rest, _ := strings.Cut(info, "used_memory:")
					value, _, _ := strings.Cut(rest, "\r\n")
					n, err := strconv.ParseFloat(value, 64)
					require.NoError(b, err)
					return n
				}
				turns := func(do func(keys []call.Key) error) {
					for turn := range calls / size {
						keys := make([]call.Key, size)
						for i := range keys {
							keys[i] = call.Key{
								Session: fmt.Sprintf("sess_%020d", turn), Turn: fmt.Sprintf("turn_%020d", turn),
								Call: fmt.Sprintf("call_%020d", i),
							}
						}
						require.NoError(b, do(keys))
					}
				}
				empty := used()
				report := func(name string) { b.ReportMetric((used()-empty)/calls, name+"-B/call") }
				turns(func(keys []call.Key) error {
					var claims []results.Claim
					for _, k := range keys {
						claims = append(claims, results.Claim{Key: k, Function: "get_weather", State: call.Seen})
					}
					_, err := s.Claim(context.Background(), 1_700_000_000_000, claims)
					return err
				})
				report("claimed")
				turns(func(keys []call.Key) error {
					var fences []uint64
					var completions []results.Completion
					for _, k := range keys {
						fences = append(fences, 1_700_000_000_000)
						completions = append(completions, results.Completion{
							Key: k, OutcomeID: "1-AAAAAAAAAAAAAAAAAAAAAA.s",
							Result: call.Result{Success: true, Output: benchOutput, Reason: call.ReasonHandler},
						})
					}
					_, err := s.Complete(context.Background(), fences, completions)
					return err
				})
				report("saved")
				turns(func(keys []call.Key) error {
					var moves []results.Move
					for _, k := range keys {
						moves = append(moves, results.Move{Key: k, To: call.Settled})
					}
					_, err := s.Move(context.Background(), 1_700_000_000_000, moves)
					return err
				})
				report("ended")
			}
		})
	}
}
