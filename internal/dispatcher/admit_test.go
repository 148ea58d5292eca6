package dispatcher

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

func TestAdmit(t *testing.T) {
	t.Parallel()
	deep := `{"a":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`
	for name, tc := range map[string]struct{ args, want, refusal string }{
		"object":                   {args: `{"a": 1}`},
		"the very bytes":           {args: `{"n":9007199254740993,"e":1e400,"d":1,"d":2,"h":"<a&b>"}`},
		"deep":                     {args: deep},
		"encoded object":           {args: `"{\"city\": \"Bern\"}"`, want: `{"city": "Bern"}`},
		"encoded, unwrapped once":  {args: `"\"{}\""`, refusal: "must be a JSON object, not a string"},
		"missing":                  {args: ``, want: `{}`},
		"null":                     {args: `null`, want: `{}`},
		"empty string":             {args: `""`, want: `{}`},
		"encoded null":             {args: `"null"`, want: `{}`},
		"array":                    {args: `[]`, refusal: "must be a JSON object, not an array"},
		"number":                   {args: `7`, refusal: "not a number"},
		"boolean":                  {args: `true`, refusal: "not a boolean"},
		"encoded array":            {args: `"[]"`, refusal: "not an array"},
		"string that is not JSON":  {args: `"{city: Bern}"`, refusal: "does not hold valid JSON"},
		"string cut in the middle": {args: `"{\"city\":"`, refusal: "does not hold valid JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, refused := admit(call.Call{Function: "f", Arguments: []byte(tc.args)})
			if tc.refusal != "" {
				require.NotNil(t, refused)
				require.Equal(t, call.ReasonInvalidArguments, refused.reason)
				require.Contains(t, refused.text, tc.refusal)
				return
			}
			require.Nil(t, refused)
			if tc.want == "" {
				tc.want = tc.args
			}
			require.Equal(t, tc.want, string(got))
		})
	}
}

// refuses is a check that lets nothing pass and counts.
type refuses struct{ asked int }

func (r *refuses) Check(call.Function, json.RawMessage) error {
	r.asked++
	return errors.New("/city: required and missing")
}

func TestArgumentsThatDoNotFitAreAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		check := new(refuses)
		b := &bench{api: &fakeAPI{calls: listedCalls(2)}, queue: newFakeQueue(succeed), store: newMemory("s"), arguments: check}
		b.run(t, Config{}, func() {
			wait(time.Second)
			require.Empty(t, b.queue.dispatches())
			_, batches := b.api.seen()
			require.Len(t, batches, 1)
			require.Len(t, batches[0].Answers, 2)
			require.Equal(t, call.Result{
				Reason: call.ReasonInvalidArguments, Error: "the arguments do not fit the parameters of f:\n/city: required and missing",
			}, batches[0].Answers[0].Result)
			require.Equal(t, 2, check.asked)
		})
	})
}

func TestCallsThatMayHaveBeenPublishedAreNotCheckedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newMemory("s")
		first := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(nil), store: store}
		first.run(t, Config{}, func() { wait(time.Second) })
		require.Len(t, first.queue.dispatches(), 1)

		check := new(refuses)
		second := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(failsFirst(2)), store: store, arguments: check}
		second.function.Policy = persistent
		second.run(t, Config{}, func() {
			wait(2 * time.Minute)
			require.Len(t, second.queue.dispatches(), 3, "the takeover, and two retries")
			require.Equal(t, call.Settled, store.state(listedCalls(1)[0].Key))
			require.Zero(t, check.asked)
		})
	})
}
