package dispatcher

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

// doubtful says at the first attempt that it may have run, and succeeds at later ones.
func doubtful(d call.Dispatch) (call.Outcome, bool) {
	if d.Attempt == 1 {
		return call.Outcome{Kind: call.Uncertain, Reason: "the bank is closed"}, true
	}
	return succeed(d)
}

// parkedBench has one call of a function that parks what nobody can tell.
func parkedBench() (*bench, call.Key) {
	b := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(doubtful), store: newMemory("s")}
	b.function.Policy = call.Policy{OnUncertain: call.UncertainPark}
	return b, listedCalls(1)[0].Key
}

func TestParkedCallWaitsForAnOperator(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		decision Decision
		answer   call.Result
		runs     int
	}{
		"answer": {
			decision: Decision{Result: call.Result{Success: true, Output: []byte(`"paid"`)}, By: "ann"},
			answer:   call.Result{Success: true, Output: []byte(`"paid"`), Reason: call.ReasonOperator}, runs: 1,
		},
		"error": {
			decision: Decision{Result: call.Result{Error: "not paid"}},
			answer:   call.Result{Error: "not paid", Reason: call.ReasonOperator}, runs: 1,
		},
		"rerun": {
			decision: Decision{Rerun: true, By: "ann"},
			answer:   call.Result{Success: true, Output: []byte(`"ok"`), Reason: call.ReasonHandler}, runs: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b, key := parkedBench()
				b.run(t, Config{}, func() {
					wait(24 * time.Hour)
					require.Equal(t, call.Parked, b.store.state(key), "nothing but a decision ends it")
					require.Equal(t, 1, b.d.Parked())
					require.Equal(t, 1, b.d.Sessions()[0].Parked)
					require.Zero(t, b.queue.acked(), "what parked it stays in the queue, should the store forget")
					_, batches := b.api.seen()
					require.Empty(t, batches)

					require.NoError(t, b.d.Decide(context.Background(), key, tt.decision))
					wait(time.Second)
					_, batches = b.api.seen()
					require.Len(t, batches, 1)
					require.Equal(t, tt.answer, batches[0].Answers[0].Result)
					ds := b.queue.dispatches()
					require.Len(t, ds, tt.runs)
					require.False(t, ds[tt.runs-1].Uncertain, "an operator knows")
					require.Equal(t, call.Settled, b.store.state(key))
					require.Equal(t, 1+tt.runs, b.queue.acked())
					require.Zero(t, b.d.Parked())
					require.ErrorIs(t, b.d.Decide(context.Background(), key, tt.decision), ErrAnswered)
				})
			})
		})
	}
}

func TestParkedCallOutlivesItsDispatcher(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, key := parkedBench()
		b.run(t, Config{}, func() { wait(time.Hour) })
		require.Zero(t, b.d.Parked(), "who does not serve it does not count it")
		b.run(t, Config{}, func() {
			wait(time.Hour)
			require.Equal(t, call.Parked, b.store.state(key))
			require.Equal(t, 1, b.d.Parked())
			require.Len(t, b.queue.dispatches(), 1)
			require.NoError(t, b.d.Decide(context.Background(), key, Decision{Rerun: true}))
			wait(time.Second)
			require.Len(t, b.queue.dispatches(), 2, "the total deadline counts from the decision")
			require.Equal(t, call.Settled, b.store.state(key))
		})
	})
}

func TestDecisionsThatDoNotApply(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{api: &fakeAPI{calls: listedCalls(1)}, queue: newFakeQueue(nil), store: newMemory("s")}
		b.queue.taken = func(call.Dispatch) bool { return true }
		key := listedCalls(1)[0].Key
		b.run(t, Config{}, func() {
			wait(time.Second)
			require.ErrorIs(t, b.d.Decide(context.Background(), call.Key{Session: "s", Turn: "t", Call: "x"}, Decision{}), ErrNoCall)
			require.ErrorIs(t, b.d.Decide(context.Background(), key, Decision{Rerun: true}), ErrNotParked, "it may be running")

			// What executors hold does not decide.
			d := b.queue.dispatches()[0]
			b.queue.deliver(d, call.Outcome{Key: d.Key, Nonce: d.Nonce, Kind: call.Rerun})
			wait(time.Second)
			require.Len(t, b.queue.dispatches(), 1)
			require.Len(t, b.queue.buried, 1)

			for _, output := range []string{`{"an":"object"}`, `[]`, `[{"type":"text","text":"x"}]`, `[{"type":"input_text","text":"a","text":"b"}]`} {
				err := b.d.Decide(context.Background(), key, Decision{Result: call.Result{Success: true, Output: []byte(output)}})
				require.ErrorIs(t, err, ErrUnusable, output)
			}
			require.NoError(t, b.d.Decide(context.Background(), key, Decision{Result: call.Result{Error: "enough"}}))
			wait(time.Second)
			_, batches := b.api.seen()
			require.Equal(t, "enough", batches[0].Answers[0].Result.Error, "any call without a result can be answered")
			require.Equal(t, []call.Key{key}, b.queue.cancelled, "who works on it is told")
		})
	})
}

func TestSilenceParksToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, key := parkedBench()
		b.queue.run = nil
		b.queue.taken = func(call.Dispatch) bool { return true }
		b.run(t, Config{}, func() {
			wait(2 * time.Minute)
			require.Equal(t, call.Parked, b.store.state(key))
			require.Contains(t, b.store.notes[key][len(b.store.notes[key])-1], "it is unknown whether it took effect")
			// A late outcome ends the doubt.
			b.queue.deliver(b.queue.dispatches()[0], withIDs(b.queue.dispatches()[0], call.Outcome{Kind: call.Success, Output: []byte(`"late"`)}))
			wait(time.Second)
			require.Equal(t, call.Settled, b.store.state(key))
		})
	})
}

func TestParkedCallOfACancelledTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, key := parkedBench()
		b.run(t, Config{}, func() {
			wait(time.Minute)
			b.api.mu.Lock()
			b.api.calls = nil
			b.api.mu.Unlock()
			wait(2 * time.Minute)
			require.Equal(t, call.Cancelled, b.store.state(key))
			require.Zero(t, b.d.Parked())
		})
	})
}

func TestAnotherRunsOutcomeDoesNotEndTheDoubt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, key := parkedBench()
		b.function.Policy.Attempts = 3
		b.run(t, Config{}, func() {
			wait(time.Minute)
			require.Equal(t, call.Parked, b.store.state(key))
			d := b.queue.dispatches()[0]
			for _, kind := range []call.Kind{call.Retry, call.Released, call.Uncertain, call.Deferred} {
				b.queue.deliver(d, withIDs(d, call.Outcome{Kind: kind, Reason: "another run of this attempt"}))
			}
			wait(time.Minute)
			require.Equal(t, call.Parked, b.store.state(key))
			require.Len(t, b.queue.dispatches(), 1)
		})
	})
}

func TestResultThatIsFasterThanAMoveIsSent(t *testing.T) {
	t.Parallel()
	for _, kind := range []call.Kind{call.Uncertain, call.Retry} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b, key := parkedBench()
				b.function.Policy.Attempts = 3
				b.queue.run = nil
				b.store.slowMoves = 100 * time.Millisecond
				b.run(t, Config{}, func() {
					wait(10 * time.Second)
					d := b.queue.dispatches()[0]
					b.queue.deliver(d, withIDs(d, call.Outcome{Kind: kind, Reason: "one run of two"}))
					wait(50 * time.Millisecond)
					b.queue.deliver(d, withIDs(d, call.Outcome{Kind: call.Success, Output: []byte(`"the other run"`)}))
					wait(time.Second)
					require.Equal(t, call.Settled, b.store.state(key))
				})
			})
		})
	}
}

// withIDs is the outcome of a dispatch.
func withIDs(d call.Dispatch, o call.Outcome) call.Outcome {
	o.Key, o.Nonce = d.Key, d.Nonce
	return o
}
