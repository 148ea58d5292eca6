package executor

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

// A cancel notice ends what is done with a call within 2 s, whatever that is, and nothing
// is reported. No time passes in the bubble meanwhile.
func TestCancelNoticeReachesEveryState(t *testing.T) {
	t.Parallel()
	hangs := func(ctx context.Context, _ Call) (Verdict, error) { <-ctx.Done(); return NotDone(), nil }
	nobody := func(call.Dispatch) (call.Standing, error) { return "", errors.New("no dispatcher answered") }
	for name, tt := range map[string]struct {
		opts   []Option
		lookup func(call.Dispatch) (call.Standing, error)
		before int
		runs   int
	}{
		"running":                {runs: 1},
		"running again":          {before: 1, opts: []Option{WithEffects(call.EffectsNone)}, runs: 1},
		"verifying":              {before: 1, opts: []Option{WithVerify(hangs)}},
		"verifying, then park":   {before: 1, opts: []Option{WithVerify(hangs), WithOnUncertain(call.UncertainPark)}},
		"looked up":              {before: 1, lookup: nobody},
		"looked up, rerun":       {before: 1, lookup: nobody, opts: []Option{WithEffects(call.EffectsNone)}},
		"looked up, verify":      {before: 1, lookup: nobody, opts: []Option{WithVerify(hangs)}},
		"looked up, park":        {before: 1, lookup: nobody, opts: []Option{WithOnUncertain(call.UncertainPark)}},
		"looked up, crash limit": {before: 5, lookup: nobody},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBundle(t, Config{})
				runs := 0
				b.on("f", func(ctx context.Context) error { runs++; <-ctx.Done(); return nil }, tt.opts...)
				if tt.lookup != nil {
					b.q.lookup = tt.lookup
				}
				b.start()
				d := dispatch("f", 1)
				b.deliverAgain(d, tt.before)
				pass(7 * time.Second) // the delays between lookups are long by now
				require.Empty(t, b.seen.reasons())
				b.q.cancel(d.Key)
				pass(2 * time.Second)
				require.Equal(t, []string{"cancelled"}, b.seen.reasons())
				require.Equal(t, tt.runs, runs)
				require.Empty(t, b.q.reported())
				require.Equal(t, 0, b.q.left())
				require.NoError(t, b.end())
			})
		})
	}
}

// A notice can be read before its call, which lies in the process already.
func TestCancelNoticeOvertakesItsCall(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		standing call.Standing
		err      error
		reason   string
	}{
		"cancelled":           {standing: call.StandingCancelled, reason: "cancelled"},
		"answered":            {standing: call.StandingAnswered, reason: "answered"},
		"wanted after all":    {standing: call.StandingPending, reason: "handler"},
		"no record":           {standing: call.StandingUnknown, reason: "handler"},
		"nobody says":         {err: errors.New("no dispatcher answered"), reason: call.ReasonDeadline},
		"noticed while asked": {err: errors.New("cancel"), reason: "cancelled"},
		"stopped while asked": {err: errors.New("stop"), reason: "released"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBundle(t, Config{})
				b.on("f", func(context.Context) error { return nil })
				b.q.lookup = func(d call.Dispatch) (call.Standing, error) {
					if d.Call.Call == "call_2" {
						t.Error("a call without a notice is not looked up")
					}
					switch {
					case tt.err == nil:
					case tt.err.Error() == "cancel":
						b.q.cancel(d.Key)
					case tt.err.Error() == "stop":
						b.stop()
					}
					return tt.standing, tt.err
				}
				b.start()
				noticed, other := dispatch("f", 1), dispatch("f", 2)
				b.q.cancel(noticed.Key)
				b.q.publish(other)
				synctest.Wait()
				b.q.publish(noticed)
				pass(91 * time.Second)
				require.Equal(t, []string{"handler", tt.reason}, b.seen.reasons())
				require.Equal(t, 0, b.q.left())
				require.NoError(t, b.end())
			})
		})
	}
}

func TestCancelNoticesAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n notices
		key := func(i int) call.Key { return dispatch("f", i).Key }
		require.False(t, n.about(key(0)))
		n.note(key(0))
		<-time.After(noticesFor)
		n.note(key(1))
		require.True(t, n.about(key(0)))
		for i := range 2 {
			<-time.After(noticesFor + time.Second)
			n.note(key(2 + i))
		}
		require.False(t, n.about(key(0)))
		for i := range 3 * noticesMost {
			n.note(key(i))
		}
		require.LessOrEqual(t, len(n.recent)+len(n.older), 2*noticesMost)
		require.True(t, n.about(key(3*noticesMost-1)))
	})
}
