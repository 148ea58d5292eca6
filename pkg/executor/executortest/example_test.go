package executortest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
	"github.com/callfan/callfan/pkg/executor/executortest"
)

type customerArguments struct {
	CustomerID string `json:"customer_id" jsonschema:"the customer's id"`
}

type customer struct {
	Name string `json:"name"`
	Plan string `json:"plan"`
}

// register is what the program under test calls before Run.
func register(ex *executor.Executor) error {
	return executor.Handle(ex, "get_customer", func(_ context.Context, in customerArguments) (customer, error) {
		if in.CustomerID != "123" {
			return customer{}, errors.New("customer " + in.CustomerID + " not found")
		}
		return customer{Name: "Example Customer", Plan: "pro"}, nil
	}, executor.WithDescription("Look up a customer by ID."), executor.WithEffects(call.EffectsNone))
}

// charge charges a card through a downstream that knows idempotency keys, so that a
// run which was cut off can be found there.
func charge(ex *executor.Executor, charged map[string]string) error {
	return executor.Handle(ex, "charge", func(ctx context.Context, _ customerArguments) (string, error) {
		c, _ := executor.FromContext(ctx)
		charged[c.IdempotencyKey] = "receipt 1"
		return "receipt 1", nil
	}, executor.WithTypedVerify(func(ctx context.Context, _ customerArguments) (executor.Verdict, error) {
		c, _ := executor.FromContext(ctx)
		if receipt, found := charged[c.IdempotencyKey]; found {
			return executor.Done(receipt), nil
		}
		return executor.NotDone(), nil
	}))
}

// A call whose executor was killed is verified before it is run again.
func TestUncertainCallsAreVerified(t *testing.T) {
	t.Parallel()
	charged := map[string]string{}
	ex := executortest.New(t)
	require.NoError(t, charge(ex, charged))
	key := call.Key{Session: "sess_test", Turn: "turn_test", Call: "call_test"}.IdempotencyKey()

	o := executortest.Call(t, ex, "charge", `{"customer_id":"123"}`, executortest.Uncertain())
	require.Equal(t, "receipt 1", executortest.Text(t, o), "it had not taken effect, so it ran")
	charged[key] = "receipt 0"
	o = executortest.Call(t, ex, "charge", `{"customer_id":"123"}`, executortest.Uncertain())
	require.Equal(t, "receipt 0", executortest.Text(t, o), "it had taken effect")

	o = executortest.Call(t, ex, "charge", `{"customer_id":5}`, executortest.Uncertain())
	require.Equal(t, call.Uncertain, o.Kind)
	require.Equal(t, "the arguments do not fit the verify handler: customer_id: a number does not fit", o.Reason)
	o = executortest.Call(t, ex, "charge", `{"customer_id":"123"}`, executortest.WithOnUncertain(call.UncertainFail))
	require.Equal(t, call.ReasonUnknownOutcome, o.Cause)
	require.Equal(t, map[string]string{key: "receipt 0"}, charged)
}

// A test of a function: register it as the program does, and call it.
func Example() {
	test := func(t *testing.T) {
		ex := executortest.New(t)
		require.NoError(t, register(ex))

		o := executortest.Call(t, ex, "get_customer", `{"customer_id":"123"}`)
		require.JSONEq(t, `{"name":"Example Customer","plan":"pro"}`, executortest.Text(t, o))

		o = executortest.Call(t, ex, "get_customer", `{"customer_id":"456"}`)
		require.Equal(t, "customer 456 not found", o.Error)

		o = executortest.Call(t, ex, "get_customer", `{"customer_id":5}`)
		require.Equal(t, call.ReasonInvalidArguments, o.Cause)
	}
	_ = test // run by go test as func TestGetCustomer(t *testing.T)
}

// A call that nothing can tell about is left to an operator.
func TestUncertainCallsAreParked(t *testing.T) {
	t.Parallel()
	ex := executortest.New(t)
	send := func(context.Context, struct{}) (string, error) { return "sent", nil }
	cannotTell := func(context.Context, executor.Call) (executor.Verdict, error) {
		return executor.CannotTell("the carrier is away"), nil
	}
	require.NoError(t, executor.Handle(ex, "send", send, executor.WithOnUncertain(call.UncertainPark)))
	require.NoError(t, executor.Handle(ex, "asked", send, executor.WithOnUncertain(call.UncertainPark), executor.WithVerify(cannotTell)))

	require.Equal(t, "sent", executortest.Text(t, executortest.Call(t, ex, "send", `{}`)))
	o := executortest.Call(t, ex, "send", `{}`, executortest.Uncertain())
	require.Equal(t, call.Uncertain, o.Kind)
	require.Equal(t, "it may have run before, and this executor has no verify handler for the function", o.Reason)
	o = executortest.Call(t, ex, "asked", `{}`, executortest.Uncertain())
	require.Equal(t, call.Uncertain, o.Kind)
	require.Equal(t, "the carrier is away", o.Reason)
	o = executortest.Call(t, ex, "send", `{}`, executortest.WithOnUncertain(call.UncertainFail))
	require.Equal(t, call.ReasonUnknownOutcome, o.Cause)
}

func TestGetCustomer(t *testing.T) {
	t.Parallel()
	ex := executortest.New(t)
	require.NoError(t, register(ex))

	o := executortest.Call(t, ex, "get_customer", `{"customer_id":"123"}`)
	require.JSONEq(t, `{"name":"Example Customer","plan":"pro"}`, executortest.Text(t, o))

	o = executortest.Call(t, ex, "get_customer", `{"customer_id":"456"}`)
	require.Equal(t, call.Failure, o.Kind)
	require.Equal(t, "customer 456 not found", o.Error)
	require.Empty(t, o.Cause)

	o = executortest.Call(t, ex, "get_customer", `{"customer_id":5}`)
	require.Equal(t, call.ReasonInvalidArguments, o.Cause)
	require.Equal(t, `invalid arguments: customer_id: type: 5 has type "integer", want "string"`, o.Error)

	o = executortest.Call(t, ex, "get_customer", "")
	require.Equal(t, `invalid arguments: required: missing properties: ["customer_id"]`, o.Error)
}

func TestContextCarriesTheCall(t *testing.T) {
	t.Parallel()
	ex := executortest.New(t)
	var seen executor.Call
	require.NoError(t, executor.HandleRaw(ex, "any", func(ctx context.Context, c executor.Call) (executor.Output, error) {
		seen, _ = executor.FromContext(ctx)
		require.Equal(t, c, seen)
		return executor.Output{}, nil
	}))
	k := call.Key{Session: "s", Turn: "t", Call: "c"}
	o := executortest.Call(t, ex, "any", `{"n":9007199254740993}`, executortest.WithKey(k), executortest.WithAttempt(2), executortest.WithOnUncertain(call.UncertainRerun))
	require.Equal(t, "null", string(o.Output))
	require.Equal(t, k, o.Key)
	require.Equal(t, "1-test", o.Nonce)
	require.Equal(t, 2, seen.Attempt)
	require.True(t, seen.Uncertain)
	require.Equal(t, k.IdempotencyKey(), seen.IdempotencyKey)
	require.JSONEq(t, `{"n":9007199254740993}`, string(seen.Arguments))
}
