package kvstore_test

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
	"github.com/callfan/callfan/pkg/results/kvstore"
)

// BenchmarkTurn claims and completes turns of 32 calls, each in one request.
func BenchmarkTurn(b *testing.B) {
	s := open(b, connect(b, testservers.NATS(b).URL()), kvstore.Config{})
	output := bytes.Repeat([]byte("x"), 512)
	ctx := context.Background()
	n := 0
	for b.Loop() {
		n++
		claims, completions := make([]results.Claim, 32), make([]results.Completion, 32)
		fences := make([]uint64, 32)
		for i := range claims {
			k := call.Key{Session: "sess", Turn: strconv.Itoa(n), Call: strconv.Itoa(i)}
			claims[i] = results.Claim{Key: k, Function: "f", State: call.Seen}
			completions[i] = results.Completion{Key: k, OutcomeID: "o", Result: call.Result{Success: true, Output: output}}
		}
		_, err := s.Claim(ctx, 0, claims)
		require.NoError(b, err)
		_, err = s.Complete(ctx, fences, completions)
		require.NoError(b, err)
	}
}

// BenchmarkPairs claims and completes single calls, 16 to a turn, by concurrent
// callers.
func BenchmarkPairs(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			s := open(b, connect(b, testservers.NATS(b).URL()), kvstore.Config{})
			output := bytes.Repeat([]byte("x"), 512)
			ctx := context.Background()
			var next atomic.Int64
			var wg sync.WaitGroup
			errs := make([]error, callers)
			for c := range callers {
				wg.Go(func() {
					for errs[c] == nil {
						i := int(next.Add(1))
						if i > b.N {
							return
						}
						k := call.Key{Session: "s" + strconv.Itoa(i/16), Turn: "t", Call: strconv.Itoa(i)}
						if _, errs[c] = s.Claim(ctx, 1, []results.Claim{{Key: k, State: call.Seen}}); errs[c] == nil {
							_, errs[c] = s.Complete(ctx, []uint64{1}, []results.Completion{{
								Key: k, OutcomeID: "o", Result: call.Result{Success: true, Output: output},
							}})
						}
					}
				})
			}
			wg.Wait()
			for _, err := range errs {
				require.NoError(b, err)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pairs/s")
		})
	}
}
