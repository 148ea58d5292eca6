package queue

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

// advised is a dispatcher that works on the server's notices until the test ends.
func (i *installation) advised(t *testing.T, c *Conn) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.ServeAdvisories(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	})
}

// exhaust makes the pool's consumer give a message up at its second delivery.
func (i *installation) exhaust(t *testing.T, pool string) {
	t.Helper()
	consumer, err := i.dispatcher.js.Consumer(testContext(t), "FN_CALLS", poolDurable(pool))
	require.NoError(t, err)
	cfg := consumer.CachedInfo().Config
	cfg.MaxDeliver = 2
	_, err = i.dispatcher.js.UpdateConsumer(testContext(t), "FN_CALLS", cfg)
	require.NoError(t, err)
}

// takeAndForget takes calls and never acks them, until the test ends.
func takeAndForget(t *testing.T, p *Puller) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		for ctx.Err() == nil {
			_ = p.Pull(ctx, 8, func(*Taken) {})
		}
	})
	t.Cleanup(func() { cancel(); group.Wait() })
}

// handled waits until no notice and no call is left.
func (i *installation) handled(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		consumer, err := i.dispatcher.js.Consumer(testContext(t), "FN_ADVISORY", advisoryDurable)
		if err != nil || i.messages(t, "FN_CALLS") != 0 {
			return false
		}
		info := consumer.CachedInfo()
		return info.NumPending == 0 && info.NumAckPending == 0
	}, patience, 20*time.Millisecond)
}

func TestACallThatNobodyFinishesIsAnsweredAndKept(t *testing.T) {
	t.Parallel()
	i := install(t, Config{AckWait: time.Second, Partitions: 2})
	ctx := testContext(t)
	collected := i.collect(t)
	_, puller := i.executor(t, "p", "f", "my function")
	i.exhaust(t, "p")
	i.advised(t, i.dispatcher)
	i.advised(t, connect(t, i.cfg)) // two replicas share the work
	harmful, harmless := i.dispatch("sess_1", "f", 1, `{"x": "<é>"}`), i.dispatch("sess_2", "my function", 2, `{}`)
	harmful.OnUncertain, harmless.OnUncertain = call.UncertainFail, call.UncertainRerun
	requireNoErrors(t, i.dispatcher.Publish(ctx, []call.Dispatch{harmful, harmless}))
	takeAndForget(t, puller)

	for d, text := range map[*call.Dispatch]string{&harmful: call.CrashedText + "; " + call.UnknownOutcomeText, &harmless: call.CrashedText} {
		require.Eventually(t, func() bool { return len(collected.of(d.Key)) == 1 }, patience, 10*time.Millisecond)
		got := collected.of(d.Key)[0]
		require.Equal(t, call.Outcome{Key: d.Key, Nonce: d.Nonce, Kind: call.Failure, Error: text, Cause: "crashed"}, got.Outcome)
		require.Equal(t, call.Token(d.Function), got.Token)
	}
	i.handled(t)
	letters, err := i.dispatcher.DeadLetters(ctx, "f", 10)
	require.NoError(t, err)
	require.Len(t, letters, 1)
	letter, err := i.dispatcher.DeadLetter(ctx, letters[0].Sequence)
	require.NoError(t, err)
	require.Equal(t, DeadMaxDeliveries, letter.Reason)
	require.Equal(t, "fn.call.f", letter.Subject)
	require.Equal(t, string(appendCall(nil, &harmful.Call)), string(letter.Body))
	require.Contains(t, letter.Detail, harmful.Key.String()+", attempt 1: handed out 2 times by pool_p")
	require.NotContains(t, letter.Detail, harmful.Nonce)

	// The same notice once more: the call is gone, and nothing happens.
	stream, err := i.dispatcher.js.Stream(ctx, "FN_ADVISORY")
	require.NoError(t, err)
	notice, err := stream.GetMsg(ctx, 1)
	require.NoError(t, err)
	require.NoError(t, i.dispatcher.workOff(ctx, notice.Data))
	require.EqualValues(t, 2, i.messages(t, "FN_DEAD"))
	require.Len(t, collected.of(harmful.Key), 1)
}

func TestWorkThatWasInterruptedIsRepeatedWithoutHarm(t *testing.T) {
	t.Parallel()
	i := install(t, Config{Partitions: 1})
	ctx := testContext(t)
	d := i.dispatch("sess_1", "f", 1, `{}`)
	requireNoErrors(t, i.dispatcher.Publish(ctx, []call.Dispatch{d}))
	notice := []byte(`{"type":"io.nats.jetstream.advisory.v1.max_deliver","stream":"FN_CALLS","consumer":"pool_p","stream_seq":1,"deliveries":20}`)
	g, err := i.dispatcher.readGivenUp(notice)
	require.NoError(t, err)
	stream, err := i.dispatcher.js.Stream(ctx, "FN_CALLS")
	require.NoError(t, err)
	m, err := stream.GetMsg(ctx, 1)
	require.NoError(t, err)
	g.found(m)
	require.NoError(t, i.dispatcher.Bury(ctx, g.letter()))
	answered, err := i.dispatcher.answerGivenUp(ctx, g)
	require.NoError(t, err)
	require.True(t, answered)
	// Here the first dispatcher was killed.
	require.NoError(t, i.dispatcher.workOff(ctx, notice))
	require.EqualValues(t, 1, i.messages(t, "FN_DEAD"))
	require.EqualValues(t, 1, i.messages(t, "FN_RESULTS"))
	require.Zero(t, i.messages(t, "FN_CALLS"))
}

func TestATerminatedCallIsAnsweredAndKept(t *testing.T) {
	t.Parallel()
	i := install(t, Config{Partitions: 2})
	ctx := testContext(t)
	collected := i.collect(t)
	_, puller := i.executor(t, "p", "f")
	i.advised(t, i.dispatcher)
	d := i.dispatch("sess_1", "f", 1, `{}`)
	requireNoErrors(t, i.dispatcher.Publish(ctx, []call.Dispatch{d}))
	require.NoError(t, puller.Pull(ctx, 1, func(taken *Taken) { require.NoError(t, taken.Term("no\r\nuse")) }))
	require.Eventually(t, func() bool { return len(collected.of(d.Key)) == 1 }, patience, 10*time.Millisecond)
	got := collected.of(d.Key)[0].Outcome
	require.Equal(t, d.Nonce, got.Nonce)
	require.Equal(t, call.Failure, got.Kind)
	require.Equal(t, "crashed", got.Cause)
	require.Equal(t, terminatedText+"; "+call.UnknownOutcomeText, got.Error)
	i.handled(t)
	letters, err := i.dispatcher.DeadLetters(ctx, "f", 10)
	require.NoError(t, err)
	require.Len(t, letters, 1)
	require.Equal(t, DeadTerminated, letters[0].Reason)
	require.Equal(t, "call "+d.Key.String()+", attempt 1: ended as unusable at delivery 1 of pool_p: no  use", letters[0].Detail)
}

// Programs without this package terminate calls with a text of their own, and messages
// that are no calls name nothing: both are kept, and neither is answered.
func TestATerminatedMessageThatNamesNoCallIsKept(t *testing.T) {
	t.Parallel()
	i := install(t, Config{Partitions: 2})
	ctx := testContext(t)
	_, puller := i.executor(t, "p", "f")
	i.advised(t, i.dispatcher)
	d := i.dispatch("sess_1", "f", 1, `{}`)
	requireNoErrors(t, i.dispatcher.Publish(ctx, []call.Dispatch{d}))
	_, err := i.dispatcher.js.Publish(ctx, "fn.call.f", []byte("not a call"))
	require.NoError(t, err)
	require.NoError(t, puller.Pull(ctx, 2, func(taken *Taken) {
		if taken.Invalid != nil {
			require.NoError(t, taken.Term("not a call"))
			return
		}
		require.NoError(t, taken.nc.Publish(taken.reply, []byte("+TERM my own reason")))
	}))
	require.Eventually(t, func() bool { return i.messages(t, "FN_DEAD") == 2 }, patience, 10*time.Millisecond)
	i.handled(t)
	require.Zero(t, i.messages(t, "FN_RESULTS"))
	letters, err := i.dispatcher.DeadLetters(ctx, "", 10)
	require.NoError(t, err)
	details := letters[0].Detail + letters[1].Detail
	require.Contains(t, details, "my own reason")
	require.Contains(t, details, "not a call")
}

func TestNoticesAboutOthersAreRefused(t *testing.T) {
	t.Parallel()
	c := &Conn{names: names{"fn"}}
	for _, notice := range []string{
		`{`, `{}`, `{"type":"io.nats.jetstream.advisory.v1.nak","stream":"FN_CALLS","stream_seq":1}`,
		`{"type":"` + advisoryMaxDeliver + `","stream":"OTHER","stream_seq":1}`, `{"type":"` + advisoryMaxDeliver + `","stream":"FN_CALLS"}`,
	} {
		_, err := c.readGivenUp([]byte(notice))
		require.Error(t, err, notice)
	}
}

func TestAnExecutorCannotNameAnotherFunctionsResult(t *testing.T) {
	t.Parallel()
	i := install(t, Config{Partitions: 2})
	ctx := testContext(t)
	for name, subject := range map[string]string{
		"another partition count": "fn.result.f.p07", "a wildcard": "fn.result.*.p00", "no result": "fn.call.f", "deeper": "fn.result.f.p00.x",
	} {
		g := &givenUp{terminated: true, call: callID{key: call.Key{Session: "s", Turn: "t", Call: "c"}, nonce: "1-x", resultSubject: subject}}
		answered, err := i.dispatcher.answerGivenUp(ctx, g)
		require.NoError(t, err, name)
		require.False(t, answered, name)
	}
}

func TestServingNoticesOutlivesTheirConsumer(t *testing.T) {
	t.Parallel()
	i := install(t, Config{Partitions: 1})
	ctx := testContext(t)
	collected := i.collect(t)
	_, puller := i.executor(t, "p", "f")
	i.advised(t, i.dispatcher)
	exists := func() bool {
		_, err := i.dispatcher.js.Consumer(ctx, "FN_ADVISORY", advisoryDurable)
		return err == nil
	}
	require.Eventually(t, exists, patience, 10*time.Millisecond)
	require.NoError(t, i.dispatcher.js.DeleteConsumer(ctx, "FN_ADVISORY", advisoryDurable))
	require.Eventually(t, exists, patience, 10*time.Millisecond)
	d := i.dispatch("sess_1", "f", 1, `{}`)
	requireNoErrors(t, i.dispatcher.Publish(ctx, []call.Dispatch{d}))
	require.NoError(t, puller.Pull(ctx, 1, func(taken *Taken) { require.NoError(t, taken.Term("x")) }))
	require.Eventually(t, func() bool { return len(collected.of(d.Key)) == 1 }, patience, 10*time.Millisecond)
}

func TestACallThatWasGivenUpIsParkedWhereItsFunctionWantsThat(t *testing.T) {
	t.Parallel()
	i := install(t, Config{Partitions: 2})
	ctx := testContext(t)
	collected := i.collect(t)
	_, puller := i.executor(t, "p", "f")
	i.advised(t, i.dispatcher)
	d := i.dispatch("sess_1", "f", 1, `{}`)
	d.OnUncertain = call.UncertainPark
	requireNoErrors(t, i.dispatcher.Publish(ctx, []call.Dispatch{d}))
	require.NoError(t, puller.Pull(ctx, 1, func(taken *Taken) { require.NoError(t, taken.Term("x")) }))
	require.Eventually(t, func() bool { return len(collected.of(d.Key)) == 1 }, patience, 10*time.Millisecond)
	require.Equal(t, call.Outcome{Key: d.Key, Nonce: d.Nonce, Kind: call.Uncertain, Reason: terminatedText + "; " + call.UnknownOutcomeText},
		collected.of(d.Key)[0].Outcome)
}
