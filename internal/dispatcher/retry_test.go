package dispatcher

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

// failsFirst fails the first n attempts of each call for a technical reason.
func failsFirst(n int) func(call.Dispatch) (call.Outcome, bool) {
	return func(d call.Dispatch) (call.Outcome, bool) {
		if d.Attempt <= n {
			return call.Outcome{Kind: call.Retry, Reason: "the third party is down"}, true
		}
		return succeed(d)
	}
}

var persistent = call.Policy{
	Attempts: 4,
	Backoff:  call.Backoff{Initial: call.Duration(10 * time.Second), Max: call.Duration(time.Hour), Multiplier: 2, Jitter: 0.1},
}

func TestTechnicalFailureIsRetriedAfterABackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(failsFirst(2)), store: newMemory("s")}
		b.function.Policy = persistent
		key := listedCalls(1)[0].Key
		b.run(t, Config{}, func() {
			wait(time.Second)
			require.Equal(t, call.Retrying, b.store.state(key))
			wait(6 * time.Second)
			require.Len(t, b.queue.dispatches(), 1, "it waits")
			wait(6 * time.Second)
			require.Len(t, b.queue.dispatches(), 2)
			wait(30 * time.Second)
			ds := b.queue.dispatches()
			require.Len(t, ds, 3)
			for i, d := range ds {
				require.Equal(t, i+1, d.Attempt)
				require.Equal(t, 1, d.Handover)
				require.False(t, d.Uncertain)
			}
			require.NotEqual(t, ds[0].Nonce, ds[1].Nonce)
			require.Equal(t, ds[0].IdempotencyKey(), ds[2].IdempotencyKey())
			require.Equal(t, call.Settled, b.store.state(key))
			require.Equal(t, 3, b.queue.acks)
		})
	})
}

func TestAttemptsAreCountedOverAChangeOfOwner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newMemory("s")
		key := listedCalls(1)[0].Key
		first := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(failsFirst(9)), store: store}
		first.function.Policy = persistent
		first.run(t, Config{}, func() { wait(time.Second) })
		require.Equal(t, call.Retrying, store.state(key))
		wait(5 * time.Second) // nobody is there

		second := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(failsFirst(9)), store: store}
		second.function.Policy = persistent
		second.run(t, Config{}, func() {
			wait(time.Second)
			require.Empty(t, second.queue.dispatches(), "the wait goes on")
			wait(8 * time.Second)
			ds := second.queue.dispatches()
			require.Len(t, ds, 1)
			require.Equal(t, 2, ds[0].Attempt)
			wait(3 * time.Minute)
			require.Len(t, second.queue.dispatches(), 3, "four attempts in all")
			_, batches := second.api.seen()
			require.Len(t, batches, 1)
			result := batches[0].Answers[0].Result
			require.Equal(t, call.ReasonGaveUp, result.Reason)
			require.Equal(t, "f failed for a technical reason, attempt 4 of 4: the third party is down", result.Error)
		})
	})
}

func TestTotalDeadlineEndsTheRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(failsFirst(9)), store: newMemory("s")}
		b.function.Policy = persistent
		b.run(t, Config{Policies: map[string]call.Policy{"f": {TotalDeadline: call.Duration(25 * time.Second)}}}, func() {
			wait(time.Minute)
			require.Len(t, b.queue.dispatches(), 2, "a third attempt would come too late")
			_, batches := b.api.seen()
			require.Len(t, batches, 1)
			require.Contains(t, batches[0].Answers[0].Result.Error, "attempt 2 of 4")
		})
	})
}

func TestHealthyCallsDoNotWaitForPoisonOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(101)}, store: newMemory("s")}
		b.queue = newFakeQueue(func(d call.Dispatch) (call.Outcome, bool) {
			if d.Key.Call != "c100" {
				return call.Outcome{Kind: call.Retry, Reason: "poison"}, true
			}
			return succeed(d)
		})
		b.function.Policy = persistent
		b.run(t, Config{}, func() {
			wait(time.Second)
			require.Equal(t, call.Settled, b.store.state(call.Key{Session: "s", Turn: "t", Call: "c100"}))
		})
	})
}

func TestCancelledWhileItWaitsForItsNextAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(failsFirst(9)), store: newMemory("s")}
		b.function.Policy = persistent
		b.run(t, Config{}, func() {
			wait(time.Second)
			b.api.mu.Lock()
			b.api.calls = nil
			b.api.mu.Unlock()
			b.d.Nudge("s", "test")
			wait(2 * time.Second)
			require.Equal(t, call.Cancelled, b.store.state(listedCalls(1)[0].Key))
			wait(time.Hour)
			require.Len(t, b.queue.dispatches(), 1, "never tried again")
		})
	})
}

func TestUncertainOutcomeIsAnHonestAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(1)}, store: newMemory("s")}
		b.queue = newFakeQueue(func(call.Dispatch) (call.Outcome, bool) {
			return call.Outcome{Kind: call.Uncertain, Reason: "the bank does not answer"}, true
		})
		b.function = call.Function{Verifies: true}
		b.run(t, Config{}, func() {
			wait(time.Second)
			require.Equal(t, call.UncertainVerify, b.queue.dispatches()[0].OnUncertain)
			_, batches := b.api.seen()
			require.Len(t, batches, 1)
			result := batches[0].Answers[0].Result
			require.False(t, result.Success)
			require.Contains(t, result.Error, "may have taken effect")
			require.Contains(t, result.Error, "the bank does not answer")
		})
	})
}

func TestLateResultOfAnEarlierAttemptWins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(1)}, store: newMemory("s")}
		b.queue = newFakeQueue(func(d call.Dispatch) (call.Outcome, bool) {
			return call.Outcome{Kind: call.Retry, Reason: "no"}, d.Attempt == 1
		})
		b.function.Policy = persistent
		b.run(t, Config{}, func() {
			wait(15 * time.Second)
			ds := b.queue.dispatches()
			require.Len(t, ds, 2, "attempt 2 is at work")
			late, _ := succeed(ds[0])
			late.Key, late.Nonce = ds[0].Key, ds[0].Nonce
			b.queue.deliver(ds[0], late)
			wait(time.Second)
			_, batches := b.api.seen()
			require.Len(t, batches, 1)
			require.True(t, batches[0].Answers[0].Result.Success)
			require.Equal(t, []call.Key{ds[0].Key}, b.queue.cancelled, "attempt 2 is told")
			own := call.Outcome{Key: ds[1].Key, Nonce: ds[1].Nonce, Kind: call.Failure, Error: "other"}
			b.queue.deliver(ds[1], own)
			wait(time.Second)
			_, batches = b.api.seen()
			require.Len(t, batches, 1, "one result is kept, and one is sent")
		})
	})
}

// Where a verify handler can tell, an attempt after a technical failure is verified too: a delivery that came
// again may be running beside the one that failed.
func TestAttemptAfterAFailureIsVerifiedWhereItCanBe(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		function  call.Function
		uncertain bool
	}{
		"verify":                 {call.Function{Verifies: true}, true},
		"park, verify handler":   {call.Function{Verifies: true, Policy: call.Policy{OnUncertain: call.UncertainPark}}, true},
		"park":                   {call.Function{Policy: call.Policy{OnUncertain: call.UncertainPark}}, false},
		"fail":                   {call.Function{}, false},
		"rerun, verify handler":  {call.Function{Verifies: true, Policy: call.Policy{OnUncertain: call.UncertainRerun}}, false},
		"idempotent with verify": {call.Function{Verifies: true, Policy: call.Policy{Effects: call.EffectsIdempotent}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(failsFirst(1)), store: newMemory("s")}
				b.function = tt.function
				b.function.Policy.Attempts = 2
				b.run(t, Config{}, func() {
					wait(time.Minute)
					ds := b.queue.dispatches()
					require.Len(t, ds, 2)
					require.False(t, ds[0].Uncertain)
					require.Equal(t, tt.uncertain, ds[1].Uncertain)
				})
			})
		})
	}
}
