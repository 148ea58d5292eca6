package executor

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

func TestRedeliveredCallIsLookedUpFirst(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		effects    call.Effects
		deliveries int // before this one
		uncertain  bool
		standing   call.Standing
		runs       bool
		kind       call.Kind
		cause      string
		reason     string
	}{
		"first delivery is not looked up":         {standing: call.StandingAnswered, runs: true, kind: call.Success, reason: "handler"},
		"answered":                                {deliveries: 1, standing: call.StandingAnswered, reason: "answered"},
		"cancelled":                               {deliveries: 1, standing: call.StandingCancelled, reason: "cancelled"},
		"pending and only reads":                  {effects: call.EffectsNone, deliveries: 1, standing: call.StandingPending, runs: true, kind: call.Success, reason: "handler"},
		"pending and idempotent":                  {effects: call.EffectsIdempotent, deliveries: 2, standing: call.StandingPending, runs: true, kind: call.Success, reason: "handler"},
		"pending and has side effects":            {effects: call.EffectsSideEffects, deliveries: 1, standing: call.StandingPending, kind: call.Failure, cause: call.ReasonUnknownOutcome, reason: call.ReasonUnknownOutcome},
		"undeclared effects":                      {deliveries: 1, standing: call.StandingPending, kind: call.Failure, cause: call.ReasonUnknownOutcome, reason: call.ReasonUnknownOutcome},
		"uncertain with side effects":             {uncertain: true, standing: call.StandingPending, kind: call.Failure, cause: call.ReasonUnknownOutcome, reason: call.ReasonUnknownOutcome},
		"uncertain and only reads":                {uncertain: true, effects: call.EffectsNone, standing: call.StandingPending, runs: true, kind: call.Success, reason: "handler"},
		"no record and side effects":              {deliveries: 1, standing: call.StandingUnknown, kind: call.Failure, cause: call.ReasonUnknownOutcome, reason: call.ReasonUnknownOutcome},
		"no record and only reads":                {effects: call.EffectsNone, deliveries: 1, standing: call.StandingUnknown, runs: true, kind: call.Success, reason: "handler"},
		"crashed too often":                       {effects: call.EffectsNone, deliveries: 3, standing: call.StandingPending, kind: call.Failure, cause: "crashed", reason: "crashed"},
		"crashed too often but answered meantime": {effects: call.EffectsNone, deliveries: 9, standing: call.StandingAnswered, reason: "answered"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBundle(t, Config{})
				var runs atomic.Int64
				var uncertain atomic.Bool
				var opts []Option
				if tt.effects != "" {
					opts = append(opts, WithEffects(tt.effects))
				}
				b.on("f", func(ctx context.Context) error {
					c, _ := FromContext(ctx)
					uncertain.Store(c.Uncertain)
					runs.Add(1)
					return nil
				}, opts...)
				b.q.lookup = func(call.Dispatch) (call.Standing, error) { return tt.standing, nil }
				b.start()
				d := dispatch("f", 1)
				d.Uncertain = tt.uncertain
				b.q.add(&fakeMessage{d: d, deliveries: tt.deliveries})
				synctest.Wait()
				require.Equal(t, []string{tt.reason}, b.seen.reasons())
				require.Equal(t, tt.runs, runs.Load() == 1)
				require.Equal(t, tt.runs && (tt.deliveries > 0 || tt.uncertain), uncertain.Load())
				require.Equal(t, 0, b.q.left())
				if tt.kind == "" {
					require.Empty(t, b.q.reported())
				} else {
					require.Equal(t, tt.kind, b.outcome().Kind)
					require.Equal(t, tt.cause, b.outcome().Cause)
				}
				require.NoError(t, b.end())
			})
		})
	}
}

func TestLookupIsRepeatedUntilADispatcherAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBundle(t, Config{})
		b.q.ackWait = time.Second
		var asked atomic.Int64
		b.q.lookup = func(call.Dispatch) (call.Standing, error) {
			if asked.Add(1) < 5 {
				return "", errors.New("no dispatcher answered")
			}
			return call.StandingPending, nil
		}
		b.on("f", func(context.Context) error { return nil }, WithEffects(call.EffectsNone))
		b.start()
		b.q.add(&fakeMessage{d: dispatch("f", 1), deliveries: 1})
		pass(10 * time.Second)
		require.Equal(t, "done", textOf(t, b.outcome()))
		require.Equal(t, 2, b.q.first().deliveries, "the lease was kept")
		require.NoError(t, b.end())
	})
}

func TestUnansweredLookupEndsAtTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBundle(t, Config{})
		b.q.lookup = func(call.Dispatch) (call.Standing, error) { return "", errors.New("no dispatcher answered") }
		b.on("reads", func(context.Context) error { return nil }, WithEffects(call.EffectsNone))
		b.on("writes", func(context.Context) error { return nil })
		b.on("parks", func(context.Context) error { return nil }, WithOnUncertain(call.UncertainPark), WithVerify(gives(NotDone(), nil)))
		b.start()
		b.q.add(&fakeMessage{d: dispatch("reads", 1), deliveries: 1})
		b.q.add(&fakeMessage{d: dispatch("writes", 2), deliveries: 1})
		b.q.add(&fakeMessage{d: dispatch("parks", 3), deliveries: 1})
		pass(91 * time.Second)
		causes := map[string]string{}
		for _, o := range b.q.reported() {
			causes[o.Key.Call] = reason(o)
		}
		require.Equal(t, map[string]string{"call_1": call.ReasonDeadline, "call_2": call.ReasonUnknownOutcome, "call_3": "uncertain"}, causes)
		require.NoError(t, b.end())
	})
}

// What was delivered before the process stood still may be with another executor by now.
func TestLateReaderDoesNotStartACall(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		choice call.OnUncertain
		verify bool
		runs   int64
		reason string
		left   int
	}{
		"rerun":                 {choice: call.UncertainRerun, runs: 1, reason: "handler"},
		"fail":                  {choice: call.UncertainFail, reason: call.ReasonUnknownOutcome},
		"verify":                {choice: call.UncertainVerify, verify: true, reason: "left", left: 1},
		"park":                  {choice: call.UncertainPark, reason: "left", left: 1},
		"park, verify handler":  {choice: call.UncertainPark, verify: true, reason: "left", left: 1},
		"by default, it cannot": {reason: call.ReasonUnknownOutcome},
	} {
		read := func(t *testing.T, transit, stood time.Duration) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var verify VerifyHandler
				if tt.verify {
					verify = gives(NotDone(), nil)
				}
				b, runs := verifying(t, verify)
				w := &worker{
					ex: b.ex, link: fakeLink{b.q}, log: b.ex.cfg.Logger, leases: newLeases(b.ex.cfg.Logger), inflight: newInflight(),
					soft: t.Context(), hard: t.Context(), reporting: t.Context(),
				}
				d := dispatch("f", 1)
				d.OnUncertain = tt.choice
				b.q.publish(d)
				got, _, _ := b.q.take(1)
				w.leases.beat()
				<-time.After(stood)
				got[0].transit = transit
				w.handle(got[0])
				require.Equal(t, []string{tt.reason}, b.seen.reasons())
				require.Equal(t, tt.runs, runs.Load())
				require.Equal(t, tt.left, b.q.left())
			})
		}
		t.Run(name+", the process stood still", func(t *testing.T) { read(t, 0, defaultAckWait) }) // without a beat
		t.Run(name+", the network stood still", func(t *testing.T) { read(t, defaultAckWait, 0) })
	}
}

func TestExpiredCallIsNotStarted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBundle(t, Config{})
		b.on("f", func(context.Context) error { panic("started") })
		b.start()
		d := dispatch("f", 1)
		d.Deadline = time.Now().Add(-time.Second)
		b.q.publish(d)
		synctest.Wait()
		require.Equal(t, call.ReasonDeadline, b.outcome().Cause)
		require.Equal(t, 0, b.q.left())
		require.NoError(t, b.end())
	})
}

func TestHandlerEndsAtTheCallsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBundle(t, Config{})
		b.on("f", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		b.start()
		d := dispatch("f", 1)
		d.Deadline = time.Now().Add(12 * time.Second)
		b.q.publish(d)
		pass(13 * time.Second)
		require.Equal(t, call.ReasonDeadline, b.outcome().Cause)
		require.Equal(t, "timed out after 12s, at the call's deadline", b.outcome().Error)
		require.NoError(t, b.end())
	})
}

func TestUnservedFunctionIsReleasedCalmly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBundle(t, Config{})
		b.on("f", func(context.Context) error { return nil })
		b.start()
		began := time.Now()
		b.q.publish(dispatch("other", 1))
		b.q.add(&fakeMessage{d: dispatch("other", 2), deliveries: 1})
		pass(unservedDelay)
		synctest.Wait()
		require.GreaterOrEqual(t, time.Since(began), unservedDelay)
		require.Equal(t, call.Released, b.outcome().Kind)
		require.Equal(t, 1, b.q.left(), "a call that may have run is left to its lease")
		require.NoError(t, b.end())
	})
}

func TestRepeatedDeliveryOfARunningCallIsIgnored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBundle(t, Config{})
		var runs atomic.Int64
		b.on("f", func(context.Context) error { runs.Add(1); <-time.After(time.Second); return nil })
		b.start()
		b.q.publish(dispatch("f", 1))
		synctest.Wait()
		b.q.mu.Lock()
		b.q.messages[0].leased = time.Time{} // the server thinks that the lease ran out
		b.q.wake()
		b.q.mu.Unlock()
		pass(2 * time.Second)
		require.EqualValues(t, 1, runs.Load())
		require.Equal(t, 2, b.q.first().deliveries)
		require.Equal(t, "done", textOf(t, b.outcome()))
		require.Equal(t, 0, b.q.left())
		require.NoError(t, b.end())
	})
}

func TestMessageThatIsNoCallIsRemovedAfterTheCrashLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBundle(t, Config{})
		b.q.ackWait = time.Second
		b.on("f", func(context.Context) error { return nil })
		b.start()
		b.q.add(&fakeMessage{invalid: errors.New("protocol 9")})
		pass(2 * time.Second)
		require.Equal(t, 1, b.q.left())
		pass(5 * time.Second)
		require.Equal(t, 0, b.q.left())
		require.Equal(t, 4, b.q.first().deliveries)
		require.NoError(t, b.end())
	})
}

func TestOutcomeIsReportedUntilItIsStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBundle(t, Config{})
		b.q.ackWait = time.Second
		began := time.Now()
		b.q.reportErr = func(call.Outcome) error {
			if time.Since(began) < 20*time.Second {
				return errors.New("NATS did not answer")
			}
			return nil
		}
		var runs atomic.Int64
		b.on("f", func(context.Context) error { runs.Add(1); return nil })
		b.start()
		b.q.publish(dispatch("f", 1))
		pass(30 * time.Second)
		require.EqualValues(t, 1, runs.Load())
		require.Equal(t, 1, b.q.first().deliveries)
		require.Equal(t, "done", textOf(t, b.outcome()))
		require.NoError(t, b.end())
	})
}

func TestOutcomeThatIsTooLargeBecomesAFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBundle(t, Config{})
		b.q.reportErr = func(o call.Outcome) error {
			if o.Kind == call.Success {
				return &tooLargeError{size: 4100000, limit: 4000000}
			}
			return nil
		}
		b.on("f", func(context.Context) error { return nil })
		b.start()
		b.q.publish(dispatch("f", 1))
		synctest.Wait()
		require.Equal(t, "result too large (4100000 bytes, limit 4000000)", b.outcome().Error)
		require.Equal(t, call.ReasonTooLarge, b.outcome().Cause)
		require.NoError(t, b.end())
	})
}
