package executor

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

func TestALostRunGoesByTheChoiceForUncertainCalls(t *testing.T) {
	t.Parallel()
	require.NoError(t, Uncertain(nil))
	unknown := call.Outcome{Kind: call.Failure, Cause: call.ReasonUnknownOutcome, Error: call.UnknownOutcomeText}
	verify := WithVerify(func(context.Context, Call) (Verdict, error) { return NotDone(), nil })
	for name, tt := range map[string]struct {
		opts []Option
		want call.Outcome
	}{
		"no effects":         {[]Option{WithEffects(call.EffectsNone)}, call.Outcome{Kind: call.Retry, Reason: "the bank hung up"}},
		"idempotent":         {[]Option{WithEffects(call.EffectsIdempotent)}, call.Outcome{Kind: call.Retry, Reason: "the bank hung up"}},
		"side effects":       {nil, unknown},
		"fail":               {[]Option{WithEffects(call.EffectsNone), WithOnUncertain(call.UncertainFail)}, unknown},
		"park":               {[]Option{WithOnUncertain(call.UncertainPark)}, call.Outcome{Kind: call.Uncertain, Reason: "the bank hung up"}},
		"verify: left":       {[]Option{verify}, call.Outcome{}},
		"park, verify: left": {[]Option{verify, WithOnUncertain(call.UncertainPark)}, call.Outcome{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ex, err := New(Config{Pool: "p"})
			require.NoError(t, err)
			cause := errors.New("the bank hung up")
			require.NoError(t, HandleRaw(ex, "f", func(context.Context, Call) (Output, error) { return Output{}, Uncertain(cause) }, tt.opts...))
			d := dispatch("f", 1)
			require.Equal(t, outcome(d, tt.want), ex.Invoke(t.Context(), d))
			require.ErrorIs(t, Uncertain(cause), cause)
		})
	}
}
