package executor

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

// verifying makes a bundle whose function f has this verify handler and a handler
// that counts its runs. start it, then deliver a call again.
func verifying(t *testing.T, verify VerifyHandler, opts ...Option) (*bundle, *atomic.Int64) {
	t.Helper()
	b := newBundle(t, Config{})
	runs := new(atomic.Int64)
	if verify != nil {
		opts = append(opts, WithVerify(verify))
	}
	b.on("f", func(context.Context) error { runs.Add(1); return nil }, opts...)
	return b, runs
}

func (b *bundle) deliverAgain(d call.Dispatch, before int) {
	b.q.add(&fakeMessage{d: d, deliveries: before})
	synctest.Wait()
}

func TestVerdictDecides(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		verify VerifyHandler
		want   call.Outcome
		reason string
		runs   int64
	}{
		"done":          {gives(Done(map[string]int{"a": 1}), nil), call.Outcome{Kind: call.Success, Output: []byte(`"{\"a\":1}"`)}, "verified", 0},
		"done, text":    {gives(Done("receipt 7"), nil), call.Outcome{Kind: call.Success, Output: []byte(`"receipt 7"`)}, "verified", 0},
		"done, nothing": {gives(Done(nil), nil), call.Outcome{Kind: call.Success, Output: []byte(`null`)}, "verified", 0},
		"done, bad output": {gives(Done(math.NaN()), nil), call.Outcome{
			Kind: call.Failure, Cause: call.ReasonInvalidOutput, Error: "the function's output cannot be written as JSON: json: unsupported value: NaN",
		}, call.ReasonInvalidOutput, 0},
		"not done":         {gives(NotDone(), nil), call.Outcome{Kind: call.Success, Output: []byte(`"done"`)}, "handler", 1},
		"cannot tell":      {gives(CannotTell("the bank is away"), nil), call.Outcome{Kind: call.Uncertain, Reason: "the bank is away"}, "uncertain", 0},
		"cannot tell, why": {gives(CannotTell(""), nil), call.Outcome{Kind: call.Uncertain, Reason: "the verify handler could not tell"}, "uncertain", 0},
		"no verdict":       {gives(Verdict{}, nil), call.Outcome{Kind: call.Uncertain, Reason: "the verify handler could not tell"}, "uncertain", 0},
		"error":            {gives(NotDone(), errors.New("dial: refused")), call.Outcome{Kind: call.Uncertain, Reason: "the verify handler failed: dial: refused"}, "uncertain", 0},
		"retry":            {gives(NotDone(), Retry(errors.New("busy"), time.Second)), call.Outcome{Kind: call.Uncertain, Reason: "the verify handler failed: busy"}, "uncertain", 0},
		"panic":            {func(context.Context, Call) (Verdict, error) { panic("oops") }, call.Outcome{Kind: call.Uncertain, Reason: "the verify handler crashed"}, "uncertain", 0},
		"goexit":           {func(context.Context, Call) (Verdict, error) { runtime.Goexit(); return NotDone(), nil }, call.Outcome{Kind: call.Uncertain, Reason: "the verify handler crashed"}, "uncertain", 0},
		"timeout":          {func(ctx context.Context, _ Call) (Verdict, error) { <-ctx.Done(); return Verdict{}, ctx.Err() }, call.Outcome{Kind: call.Uncertain, Reason: "the verify handler did not answer within 30s"}, "uncertain", 0},
		"timeout, not done": {func(ctx context.Context, _ Call) (Verdict, error) {
			<-time.After(30500 * time.Millisecond)
			return NotDone(), nil
		}, call.Outcome{Kind: call.Uncertain, Reason: "the verify handler did not answer within 30s"}, "uncertain", 0},
		"slow, but not late": {func(context.Context, Call) (Verdict, error) { <-time.After(29 * time.Second); return NotDone(), nil }, call.Outcome{Kind: call.Success, Output: []byte(`"done"`)}, "handler", 1},
	} {
		verdictDecides := func(t *testing.T, choice call.OnUncertain) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b, runs := verifying(t, tt.verify)
				b.q.ackWait = time.Second
				b.start()
				d := dispatch("f", 1)
				d.OnUncertain = choice
				b.deliverAgain(d, 1)
				pass(35 * time.Second)
				want := outcome(d, tt.want)
				want.Executor = b.ex.cfg.ID
				require.Equal(t, want, b.outcome())
				require.Equal(t, []string{tt.reason}, b.seen.reasons())
				require.Equal(t, tt.runs, runs.Load())
				require.Equal(t, tt.runs == 1, b.seen.finished[0].Ran)
				require.EqualValues(t, tt.runs, b.seen.started)
				require.Equal(t, 0, b.q.left())
				require.Equal(t, 2, b.q.first().deliveries, "the lease was kept")
				require.NoError(t, b.end())

				d.Uncertain, want.Executor = true, "" // the same without a queue
				require.Equal(t, want, b.ex.Invoke(context.Background(), d))
			})
		}
		t.Run(name, func(t *testing.T) { verdictDecides(t, "") })
		t.Run(name+", park", func(t *testing.T) { verdictDecides(t, call.UncertainPark) })
	}
}

func gives(v Verdict, err error) VerifyHandler {
	return func(context.Context, Call) (Verdict, error) { return v, err }
}

func TestWhatIsDoneWithAnUncertainCall(t *testing.T) {
	t.Parallel()
	const verify, rerun, fail, park = call.UncertainVerify, call.UncertainRerun, call.UncertainFail, call.UncertainPark
	for name, tt := range map[string]struct {
		opts      []Option
		verifies  bool
		dispatch  call.OnUncertain
		standing  call.Standing
		before    int
		uncertain bool

		verified, runs int64
		reason         string
		text           string
	}{
		"first delivery":                       {verifies: true, runs: 1, reason: "handler"},
		"redelivered":                          {verifies: true, before: 1, verified: 1, runs: 1, reason: "handler"},
		"marked uncertain":                     {verifies: true, uncertain: true, verified: 1, runs: 1, reason: "handler"},
		"answered is not verified":             {verifies: true, before: 1, standing: call.StandingAnswered, reason: "answered"},
		"cancelled is not verified":            {verifies: true, before: 1, standing: call.StandingCancelled, reason: "cancelled"},
		"no record is verified":                {verifies: true, before: 1, standing: call.StandingUnknown, verified: 1, runs: 1, reason: "handler"},
		"idempotent reruns by default":         {verifies: true, opts: []Option{WithEffects(call.EffectsIdempotent)}, before: 1, runs: 1, reason: "handler"},
		"idempotent declares verify":           {verifies: true, opts: []Option{WithEffects(call.EffectsIdempotent), WithOnUncertain(verify)}, before: 1, verified: 1, runs: 1, reason: "handler"},
		"declares fail":                        {verifies: true, opts: []Option{WithOnUncertain(fail)}, before: 1, reason: call.ReasonUnknownOutcome},
		"declares rerun":                       {opts: []Option{WithOnUncertain(rerun)}, before: 1, runs: 1, reason: "handler"},
		"the dispatcher says fail":             {verifies: true, dispatch: fail, before: 1, reason: call.ReasonUnknownOutcome},
		"the dispatcher says rerun":            {verifies: true, dispatch: rerun, before: 1, runs: 1, reason: "handler"},
		"the dispatcher says verify":           {verifies: true, opts: []Option{WithOnUncertain(rerun)}, dispatch: verify, before: 1, verified: 1, runs: 1, reason: "handler"},
		"verify without a handler":             {dispatch: verify, before: 1, reason: "uncertain", text: noVerifyText},
		"declares park":                        {opts: []Option{WithOnUncertain(park)}, before: 1, reason: "uncertain", text: mayHaveRunText},
		"park, first delivery":                 {opts: []Option{WithOnUncertain(park)}, runs: 1, reason: "handler"},
		"park, marked uncertain":               {opts: []Option{WithOnUncertain(park)}, uncertain: true, reason: "uncertain", text: mayHaveRunText},
		"park, answered":                       {opts: []Option{WithOnUncertain(park)}, before: 1, standing: call.StandingAnswered, reason: "answered"},
		"park, cancelled":                      {opts: []Option{WithOnUncertain(park)}, before: 1, standing: call.StandingCancelled, reason: "cancelled"},
		"park, no record":                      {opts: []Option{WithOnUncertain(park)}, before: 1, standing: call.StandingUnknown, reason: "uncertain", text: mayHaveRunText},
		"park asks a verify handler":           {verifies: true, opts: []Option{WithOnUncertain(park)}, before: 1, verified: 1, runs: 1, reason: "handler"},
		"park, answered is not verified":       {verifies: true, opts: []Option{WithOnUncertain(park)}, before: 1, standing: call.StandingAnswered, reason: "answered"},
		"idempotent declares park":             {opts: []Option{WithEffects(call.EffectsIdempotent), WithOnUncertain(park)}, before: 1, reason: "uncertain", text: mayHaveRunText},
		"the dispatcher says park":             {opts: []Option{WithOnUncertain(rerun)}, dispatch: park, before: 1, reason: "uncertain", text: mayHaveRunText},
		"the dispatcher says park, verified":   {verifies: true, dispatch: park, before: 1, verified: 1, runs: 1, reason: "handler"},
		"the dispatcher says fail, not park":   {opts: []Option{WithOnUncertain(park)}, dispatch: fail, before: 1, reason: call.ReasonUnknownOutcome},
		"park, crashed too often":              {opts: []Option{WithOnUncertain(park)}, before: 3, reason: "uncertain", text: "it crashed its executor, or its executor was lost, 3 times in a row"},
		"park, crashed too often to verify":    {verifies: true, dispatch: park, before: 4, reason: "uncertain", text: "it crashed its executor, or its executor was lost, 4 times in a row"},
		"park, crashed too often but answered": {dispatch: park, before: 9, standing: call.StandingAnswered, reason: "answered"},
		"crashed too often":                    {verifies: true, before: 3, reason: "crashed"},
		"the last delivery before that":        {verifies: true, before: 2, verified: 1, runs: 1, reason: "handler"},
		"crashed too often, dispatcher reruns": {verifies: true, dispatch: rerun, before: 3, reason: "crashed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var verified atomic.Int64
				var handler VerifyHandler
				if tt.verifies {
					handler = func(context.Context, Call) (Verdict, error) { verified.Add(1); return NotDone(), nil }
				}
				b, runs := verifying(t, handler, tt.opts...)
				if tt.standing != "" {
					b.q.lookup = func(call.Dispatch) (call.Standing, error) { return tt.standing, nil }
				}
				b.start()
				d := dispatch("f", 1)
				d.Uncertain, d.OnUncertain = tt.uncertain, tt.dispatch
				b.deliverAgain(d, tt.before)
				require.Equal(t, []string{tt.reason}, b.seen.reasons())
				require.Equal(t, tt.verified, verified.Load())
				require.Equal(t, tt.runs, runs.Load())
				require.Equal(t, 0, b.q.left())
				if tt.reason == "uncertain" {
					require.Equal(t, call.Uncertain, b.outcome().Kind)
					require.Equal(t, tt.text, b.outcome().Reason)
				}
				require.NoError(t, b.end())
			})
		})
	}
}

func TestWhatCrashedTooOftenMayHaveTakenEffect(t *testing.T) {
	t.Parallel()
	for effects, text := range map[call.Effects]string{
		call.EffectsNone:        crashedText,
		call.EffectsIdempotent:  crashedText + "; " + unknownOutcomeText, // the same once more would be another call, under another key
		call.EffectsSideEffects: crashedText + "; " + unknownOutcomeText,
	} {
		t.Run(string(effects), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b, _ := verifying(t, nil, WithEffects(effects))
				b.start()
				b.deliverAgain(dispatch("f", 1), crashLimit)
				require.Equal(t, text, b.outcome().Error)
				require.NoError(t, b.end())
			})
		})
	}
}

func TestVerifyHandlerGetsTheCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got, fromContext Call
		b, _ := verifying(t, func(ctx context.Context, c Call) (Verdict, error) {
			got = c
			fromContext, _ = FromContext(ctx)
			return NotDone(), nil
		})
		b.start()
		d := dispatch("f", 1)
		b.deliverAgain(d, 1)
		require.Equal(t, Call{
			Key: d.Key, Function: "f", Arguments: d.Arguments, Attempt: 1, IdempotencyKey: d.IdempotencyKey(),
			Deadline: time.Now().Add(30 * time.Second), Uncertain: true,
		}, got)
		require.Equal(t, got, fromContext)
		require.NoError(t, b.end())
	})
}

func TestVerificationIsCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var cause error
		b, runs := verifying(t, func(ctx context.Context, _ Call) (Verdict, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return NotDone(), nil
		})
		b.start()
		d := dispatch("f", 1)
		b.deliverAgain(d, 1)
		b.q.cancel(d.Key)
		synctest.Wait()
		require.ErrorIs(t, cause, ErrCancelled)
		require.Equal(t, []string{"cancelled"}, b.seen.reasons())
		require.Zero(t, runs.Load())
		require.Empty(t, b.q.reported())
		require.Equal(t, 0, b.q.left())
		require.NoError(t, b.end())
	})
}

func TestVerificationEndsAtTheCallsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, runs := verifying(t, func(ctx context.Context, _ Call) (Verdict, error) { <-ctx.Done(); return Verdict{}, ctx.Err() })
		b.start()
		d := dispatch("f", 1)
		d.Deadline = time.Now().Add(5 * time.Second)
		b.deliverAgain(d, 1)
		pass(6 * time.Second)
		require.Equal(t, "the verify handler did not answer within 5s", b.outcome().Reason)
		expired := dispatch("f", 2)
		expired.Deadline = time.Now().Add(-time.Second)
		b.deliverAgain(expired, 1)
		require.Equal(t, call.ReasonUnknownOutcome, b.q.reported()[1].Cause)
		expired.Call.Call, expired.OnUncertain = "call_3", call.UncertainPark
		b.deliverAgain(expired, 1)
		require.Equal(t, call.Uncertain, b.q.reported()[2].Kind)
		require.Equal(t, notVerifiedText, b.q.reported()[2].Reason)
		require.Zero(t, runs.Load())
		require.NoError(t, b.end())
	})
}

func TestVerifyHandlerThatDoesNotReturnIsAbandoned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		b, _ := verifying(t, func(context.Context, Call) (Verdict, error) { <-block; return NotDone(), nil })
		b.start()
		b.deliverAgain(dispatch("f", 1), 1)
		pass(30 * time.Second)
		require.Equal(t, call.Uncertain, b.outcome().Kind, "reported before the handler is given up")
		pass(2 * time.Second)
		require.Equal(t, 1, b.seen.abandoned)
		close(block)
		require.ErrorIs(t, b.end(), ErrHandlersLeft)
		synctest.Wait()
		require.Contains(t, b.logs.String(), "abandoned handler returned")
	})
}

// A release would make a call that may have run look fresh, so what can be verified
// is left to its lease at every stage of a stop.
func TestStopLeavesAnUncertainCallToTheNextExecutor(t *testing.T) {
	t.Parallel()
	hangs := func(ctx context.Context, _ Call) (Verdict, error) { <-ctx.Done(); return Verdict{}, ctx.Err() }
	for name, tt := range map[string]struct {
		verify  VerifyHandler
		lookup  error // while looking up
		running bool  // in the handler, at the first delivery
		park    bool
		kind    call.Kind
		reason  string
		text    string
	}{
		"while looking up":           {verify: gives(NotDone(), nil), lookup: errors.New("no dispatcher answered"), reason: "left"},
		"while verifying":            {verify: hangs, reason: "left"},
		"while the handler runs":     {verify: gives(NotDone(), nil), running: true, reason: "left"},
		"verified done just in time": {verify: func(ctx context.Context, _ Call) (Verdict, error) { <-ctx.Done(); return Done("x"), nil }, kind: call.Success, reason: "verified"},
		"park, while looking up":     {verify: gives(NotDone(), nil), park: true, lookup: errors.New("no dispatcher answered"), reason: "left"},
		"park, while verifying":      {verify: hangs, park: true, reason: "left"},
		"park, while it runs":        {verify: gives(NotDone(), nil), park: true, running: true, reason: "left"},
		// Nobody would find out more: an operator is asked at once.
		"park, no verify handler":          {park: true, lookup: errors.New("no dispatcher answered"), kind: call.Uncertain, reason: "uncertain", text: notLookedUpText},
		"park, no verify handler, it runs": {park: true, running: true, kind: call.Uncertain, reason: "uncertain", text: interruptedText},
		"not done just in time":            {verify: func(ctx context.Context, _ Call) (Verdict, error) { <-ctx.Done(); return NotDone(), nil }, kind: call.Released, reason: "released"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBundle(t, Config{StopTimeout: time.Second})
				var opts []Option
				if tt.verify != nil {
					opts = append(opts, WithVerify(tt.verify))
				}
				if tt.park {
					opts = append(opts, WithOnUncertain(call.UncertainPark))
				}
				b.on("f", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, opts...)
				b.q.lookup = func(call.Dispatch) (call.Standing, error) { return call.StandingPending, tt.lookup }
				if tt.lookup != nil {
					b.q.lookup = func(call.Dispatch) (call.Standing, error) { return "", tt.lookup }
				}
				b.start()
				before := 1
				if tt.running {
					before = 0
				}
				b.deliverAgain(dispatch("f", 1), before)
				require.NoError(t, b.end())
				require.Equal(t, []string{tt.reason}, b.seen.reasons())
				if tt.kind == "" {
					require.Empty(t, b.q.reported())
					require.Equal(t, 1, b.q.left())
					return
				}
				require.Equal(t, tt.kind, b.outcome().Kind)
				require.Equal(t, tt.text, b.outcome().Reason)
				require.Equal(t, 0, b.q.left())
			})
		})
	}
}

func TestStopBeforeTheVerificationLeavesTheCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, runs := verifying(t, func(context.Context, Call) (Verdict, error) { panic("asked") })
		b.q.lookup = func(call.Dispatch) (call.Standing, error) { b.stop(); return call.StandingPending, nil }
		b.start()
		b.deliverAgain(dispatch("f", 1), 1)
		require.NoError(t, <-b.err)
		require.Equal(t, []string{"left"}, b.seen.reasons())
		require.Zero(t, runs.Load())
		require.Equal(t, 1, b.q.left())
	})
}

func TestCancelBeforeTheVerification(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := verifying(t, func(context.Context, Call) (Verdict, error) { panic("asked") })
		b.q.lookup = func(d call.Dispatch) (call.Standing, error) { b.q.cancel(d.Key); return call.StandingPending, nil }
		b.start()
		b.deliverAgain(dispatch("f", 1), 1)
		require.Equal(t, []string{"cancelled"}, b.seen.reasons())
		require.NoError(t, b.end())
	})
}

func TestTypedVerify(t *testing.T) {
	t.Parallel()
	type in struct{ N int }
	ex, err := New(Config{Pool: "p"})
	require.NoError(t, err)
	handler := func(_ context.Context, in in) (string, error) { return "ran", nil }
	require.NoError(t, Handle(ex, "typed", handler, WithTypedVerify(func(_ context.Context, in in) (Verdict, error) { return Done(in), nil })))
	require.NoError(t, Handle(ex, "raw", handler, WithTypedVerify(func(_ context.Context, in json.RawMessage) (Verdict, error) { return Done(in), nil })))
	invoke := func(name, arguments string) call.Outcome {
		d := dispatch(name, 1)
		d.Arguments, d.Uncertain = json.RawMessage(arguments), true
		return ex.Invoke(t.Context(), d)
	}
	require.Equal(t, `{"N":5}`, textOf(t, invoke("typed", `{"N":5}`)))
	require.Equal(t, `{"N":0}`, textOf(t, invoke("typed", ``)))
	require.Equal(t, `{"N": 1e400}`, textOf(t, invoke("raw", `{"N": 1e400}`)))
	o := invoke("typed", `{"N":"x"}`)
	require.Equal(t, call.Uncertain, o.Kind)
	require.Equal(t, "the arguments do not fit the verify handler: N: a string does not fit", o.Reason)
}

func TestPolicyOptions(t *testing.T) {
	t.Parallel()
	ex, err := New(Config{Pool: "p"})
	require.NoError(t, err)
	backoff := call.Backoff{Initial: call.Duration(time.Second), Max: call.Duration(time.Minute), Multiplier: 1.5, Jitter: 1}
	require.NoError(t, HandleRaw(ex, "f", nothing, WithAttempts(5), WithBackoff(backoff), WithTotalDeadline(time.Hour),
		WithOnUncertain(call.UncertainVerify), WithVerify(gives(NotDone(), nil))))
	require.Equal(t, []call.Function{{Name: "f", Verifies: true, Policy: call.Policy{
		Attempts: 5, Backoff: backoff, TotalDeadline: call.Duration(time.Hour), OnUncertain: call.UncertainVerify,
	}}}, ex.Functions())
	require.ErrorIs(t, HandleRaw(ex, "g", nothing, WithOnUncertain(call.UncertainVerify)), call.ErrInvalidFunction)
	for name, o := range map[string]Option{
		"attempts 0":        WithAttempts(0),
		"attempts 1001":     WithAttempts(1001),
		"total deadline":    WithTotalDeadline(0),
		"on uncertain":      WithOnUncertain("pray"),
		"no choice":         WithOnUncertain(""),
		"nil verify":        WithVerify(nil),
		"nil typed verify":  WithTypedVerify[struct{}](nil),
		"negative initial":  WithBackoff(call.Backoff{Initial: -1}),
		"negative max":      WithBackoff(call.Backoff{Max: -1}),
		"max below initial": WithBackoff(call.Backoff{Initial: 2, Max: 1}),
		"multiplier":        WithBackoff(call.Backoff{Multiplier: 0.5}),
		"multiplier NaN":    WithBackoff(call.Backoff{Multiplier: math.NaN()}),
		"multiplier Inf":    WithBackoff(call.Backoff{Multiplier: math.Inf(1)}),
		"jitter":            WithBackoff(call.Backoff{Jitter: 1.1}),
		"jitter NaN":        WithBackoff(call.Backoff{Jitter: math.NaN()}),
	} {
		require.ErrorIs(t, HandleRaw(ex, "g", nothing, o), ErrInvalidOption, name)
	}
}

func TestVerdictsAreLoggedWithoutTheirOutput(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := verifying(t, gives(Done("secret"), nil))
		b.start()
		b.deliverAgain(dispatch("f", 1), 1)
		require.Contains(t, b.logs.String(), "verdict=done")
		require.NotContains(t, b.logs.String(), "secret")
		require.NoError(t, b.end())
	})
}
