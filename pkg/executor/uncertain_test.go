package executor

import (
	"context"
	"encoding/json"
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

// protocol/fixtures/lost-runs.json is what every SDK makes of a lost run.
func TestFixturesOfLostRuns(t *testing.T) {
	t.Parallel()
	var index struct {
		Cases []struct {
			Name     string                               `json:"name"`
			Choice   call.OnUncertain                     `json:"on_uncertain"`
			Verifies bool                                 `json:"verifies"`
			Expect   struct{ Kind, Cause, Reason string } `json:"expect"`
		} `json:"cases"`
	}
	require.NoError(t, json.Unmarshal(fixture(t, "lost-runs.json"), &index))
	require.NotEmpty(t, index.Cases)
	for _, c := range index.Cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			ex, err := New(Config{Pool: "p"})
			require.NoError(t, err)
			var opts []Option
			if c.Verifies {
				opts = append(opts, WithVerify(func(context.Context, Call) (Verdict, error) { return NotDone(), nil }))
			}
			lost := func(context.Context, Call) (Output, error) {
				return Output{}, Uncertain(errors.New("the bank hung up"))
			}
			require.NoError(t, HandleRaw(ex, "f", lost, opts...))
			d := dispatch("f", 1)
			d.OnUncertain = c.Choice
			got := ex.Invoke(t.Context(), d)
			require.Equal(t, c.Expect.Kind, string(got.Kind))
			require.Equal(t, c.Expect.Cause, got.Cause)
			require.Equal(t, c.Expect.Reason, got.Reason)
		})
	}
}
