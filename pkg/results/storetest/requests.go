package storetest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

func testRequests(t *testing.T, b backend) {
	b.run(t, map[string]func(*testing.T, results.Store){
		"empty batches are answered": func(t *testing.T, s results.Store) {
			ctx := deadline(t)
			records, err := s.Claim(ctx, 1, nil)
			require.NoError(t, err)
			require.Empty(t, records)
			completed, err := s.Complete(ctx, nil, nil)
			require.NoError(t, err)
			require.Empty(t, completed)
			moved, err := s.Move(ctx, 1, nil)
			require.NoError(t, err)
			require.Empty(t, moved)
			records, err = s.Get(ctx, nil)
			require.NoError(t, err)
			require.Empty(t, records)
			leases, err := s.Acquire(ctx, "a", nil, long)
			require.NoError(t, err)
			require.Empty(t, leases)
			require.NoError(t, s.Release(ctx, "a", nil))
		},
		"a cancelled context is an error of every method": func(t *testing.T, s results.Store) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			for name, request := range map[string]func() error{
				"Claim": func() error { _, err := s.Claim(ctx, 1, []results.Claim{seen("call_1")}); return err },
				"Complete": func() error {
					_, err := s.Complete(ctx, []uint64{1}, []results.Completion{completion("call_1", "o", success("1"))})
					return err
				},
				"Move": func() error {
					_, err := s.Move(ctx, 1, []results.Move{{Key: key("call_1"), To: call.Queued}})
					return err
				},
				"Get":     func() error { _, err := s.Get(ctx, []call.Key{key("call_1")}); return err },
				"Session": func() error { _, err := s.Session(ctx, session); return err },
				"Unfinished": func() error {
					return s.Unfinished(ctx, func(string) error { return nil })
				},
				"Attach":   func() error { return s.Attach(ctx, session) },
				"Detach":   func() error { return s.Detach(ctx, session) },
				"Attached": func() error { _, _, err := s.Attached(ctx, 1, ""); return err },
				"Join":     func() error { _, err := s.Join(ctx, "a", long); return err },
				"Leave":    func() error { return s.Leave(ctx, "a") },
				"Acquire":  func() error { _, err := s.Acquire(ctx, "a", []int{1}, long); return err },
				"Release":  func() error { return s.Release(ctx, "a", []int{1}) },
				"Ping":     func() error { return s.Ping(ctx) },
			} {
				require.ErrorIs(t, request(), context.Canceled, name)
			}
			require.Equal(t, call.Absent, get(t, s, key("call_1")).State)
		},
		"Ping finds a usable store": func(t *testing.T, s results.Store) {
			require.NoError(t, s.Ping(deadline(t)))
		},
	})
	t.Run("a closed store refuses", func(t *testing.T) {
		t.Parallel()
		s := b.open(t, Options{Namespace: namespace()})
		require.NoError(t, s.Close())
		_, err := s.Claim(deadline(t), 1, []results.Claim{seen("call_1")})
		require.Error(t, err)
	})
}
