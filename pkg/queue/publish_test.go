package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/call"
)

func (i *installation) messages(t testing.TB, stream string) uint64 {
	t.Helper()
	s, err := i.dispatcher.js.Stream(testContext(t), stream)
	require.NoError(t, err)
	return s.CachedInfo().State.Msgs
}

func TestHostileCallsReachTheHandlerUntouched(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	ctx := testContext(t)
	functions := []string{"f"}
	for _, name := range hostileNames {
		functions = append(functions, name)
	}
	_, puller := i.executor(t, "hostile", functions...)
	want := map[call.Key]call.Dispatch{}
	var dispatches []call.Dispatch
	add := func(function, arguments string) {
		d := i.dispatch("sess", function, len(dispatches), arguments)
		d.Deadline = d.Deadline.Truncate(time.Millisecond)
		dispatches = append(dispatches, d)
		want[d.Key] = d
	}
	for _, name := range hostileNames {
		add(name, `{}`)
	}
	for _, arguments := range hostileArguments {
		add("f", arguments)
	}
	requireNoErrors(t, i.dispatcher.Publish(ctx, dispatches))
	for len(want) > 0 {
		err := puller.Pull(ctx, len(want), func(taken *Taken) {
			require.NoError(t, taken.Invalid)
			d := want[taken.Dispatch.Key]
			require.True(t, d.Deadline.Equal(taken.Dispatch.Deadline))
			taken.Dispatch.Deadline = d.Deadline
			require.Equal(t, d, taken.Dispatch)
			delete(want, d.Key)
			require.NoError(t, taken.Ack())
		})
		require.NoError(t, err)
	}
}

func TestOneBadCallFailsAlone(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	good, noName, broken := i.dispatch("s", "f", 1, `{}`), i.dispatch("s", "", 2, `{}`), i.dispatch("s", "f", 3, `{`)
	large := i.dispatch("s", "f", 4, `{"a":"`+strings.Repeat("x", testservers.DefaultNATSMaxPayload)+`"}`)
	errs := i.dispatcher.Publish(testContext(t), []call.Dispatch{good, noName, broken, large, i.dispatch("s", "f", 5, `{}`)})
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[1], ErrInvalidFunction)
	require.ErrorIs(t, errs[2], ErrInvalidCall)
	require.ErrorIs(t, errs[3], ErrTooLarge)
	require.True(t, i.dispatcher.TooLarge(errs[3]))
	require.NoError(t, errs[4])
	require.EqualValues(t, 2, i.messages(t, "FN_CALLS"))
}

func TestDuplicatesAreStoredOnce(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	ctx := testContext(t)
	d := i.dispatch("s", "f", 1, `{}`)
	requireNoErrors(t, i.dispatcher.Publish(ctx, []call.Dispatch{d, d}))
	requireNoErrors(t, i.dispatcher.Publish(ctx, []call.Dispatch{d}))
	require.EqualValues(t, 1, i.messages(t, "FN_CALLS"))
	d.Handover++ // a wanted second hand-over is not a duplicate
	requireNoErrors(t, i.dispatcher.Publish(ctx, []call.Dispatch{d}))
	require.EqualValues(t, 2, i.messages(t, "FN_CALLS"))

	for range 2 {
		require.NoError(t, i.dispatcher.Report(ctx, d, call.Outcome{Kind: call.Deferred}))
		require.NoError(t, i.dispatcher.Report(ctx, d, call.Outcome{Kind: call.Released}))
		require.NoError(t, i.dispatcher.Report(ctx, d, call.Outcome{Kind: call.Success, Output: []byte(`"x"`)}))
	}
	require.EqualValues(t, 3, i.messages(t, "FN_RESULTS"))
	d.Handover++
	require.NoError(t, i.dispatcher.Report(ctx, d, call.Outcome{Kind: call.Released}))
	require.EqualValues(t, 4, i.messages(t, "FN_RESULTS"))
}

func TestAFullBacklogRefusesOnlyItsFunction(t *testing.T) {
	t.Parallel()
	i := install(t, Config{Backlog: 3})
	ctx := testContext(t)
	var dispatches []call.Dispatch
	for n := range 5 {
		dispatches = append(dispatches, i.dispatch("s", "busy", n, `{}`))
	}
	dispatches = append(dispatches, i.dispatch("s", "idle", 9, `{}`))
	start := time.Now()
	errs := i.dispatcher.Publish(ctx, dispatches)
	require.Less(t, time.Since(start), 5*time.Second, "a full backlog is answered at once")
	requireNoErrors(t, errs[:3])
	require.ErrorIs(t, errs[3], ErrBacklogFull)
	require.ErrorIs(t, errs[4], ErrBacklogFull)
	require.NoError(t, errs[5])

	// Once there is room the same hand-over goes through.
	_, puller := i.executor(t, "p", "busy")
	require.NoError(t, puller.Pull(ctx, 1, func(taken *Taken) { require.NoError(t, taken.Ack()) }))
	require.Eventually(t, func() bool { return i.dispatcher.Publish(ctx, dispatches[3:4])[0] == nil }, patience, 10*time.Millisecond)
}

func TestPayloadsAroundTheLimit(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{1 << 20, 5 << 20} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			i := install(t, Config{}, testservers.NATSMaxPayload(limit))
			executor, puller := i.executor(t, "p", "f")
			collected := i.collect(t)
			ctx := testContext(t)
			base := i.dispatch("s", "f", 100, `""`)
			m, err := i.dispatcher.names.encodeCall(&base)
			require.NoError(t, err)
			room := limit - int(envelopeSize(m))
			for n, over := range []int{-1024, -1, 0, 1, 1024} {
				arguments := `"` + strings.Repeat("x", room+over) + `"`
				d := i.dispatch("s", "f", 101+n, arguments)
				err := i.dispatcher.Publish(ctx, []call.Dispatch{d})[0]
				if over > 0 {
					var large *TooLargeError
					require.ErrorAs(t, err, &large)
					require.EqualValues(t, limit, large.Limit)
					require.EqualValues(t, limit+over, large.Size)
					continue
				}
				require.NoError(t, err)
				require.NoError(t, puller.Pull(ctx, 1, func(taken *Taken) {
					requireSame(t, arguments, taken.Dispatch.Arguments)
					require.NoError(t, taken.Ack())
				}))
			}
			om, err := executor.names.encodeOutcome(&base, &call.Outcome{Kind: call.Success, Output: []byte(`""`)})
			require.NoError(t, err)
			room = limit - int(envelopeSize(om))
			for n, over := range []int{-1024, 0, 1, 1024} {
				d := i.dispatch("s", "f", 200+n, `{}`)
				output := `"` + strings.Repeat("y", room+over) + `"`
				err := executor.Report(ctx, d, call.Outcome{Kind: call.Success, Output: []byte(output)})
				if over > 0 {
					require.ErrorIs(t, err, ErrTooLarge)
					continue
				}
				require.NoError(t, err)
				require.Eventually(t, func() bool { return len(collected.of(d.Key)) == 1 }, patience, 10*time.Millisecond)
				requireSame(t, output, collected.of(d.Key)[0].Outcome.Output)
			}
		})
	}
}

func TestPublishOutlastsARestart(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	ctx := testContext(t)
	i.server.Kill()
	done := make(chan []error, 1)
	var dispatches []call.Dispatch
	for n := range 300 {
		dispatches = append(dispatches, i.dispatch("s", "f", n, `{}`))
	}
	go func() { done <- i.dispatcher.Publish(ctx, dispatches) }()
	select {
	case errs := <-done:
		t.Fatalf("Publish returned while the server was down: %v", errors.Join(errs...))
	case <-time.After(300 * time.Millisecond): // the outage itself
	}
	i.server.Start()
	requireNoErrors(t, <-done)
	require.EqualValues(t, len(dispatches), i.messages(t, "FN_CALLS"), "stored once each")
}

func TestPublishGivesUpInTime(t *testing.T) {
	t.Parallel()
	i := install(t, Config{RetryFor: time.Second})
	i.server.Kill()
	errs := i.dispatcher.Publish(testContext(t), []call.Dispatch{i.dispatch("s", "f", 1, `{}`)})
	require.ErrorIs(t, errs[0], ErrUnavailable)

	ctx, cancel := context.WithCancelCause(testContext(t))
	stopped := errors.New("stopped")
	cancel(stopped)
	errs = i.dispatcher.Publish(ctx, []call.Dispatch{i.dispatch("s", "f", 1, `{}`)})
	require.ErrorIs(t, errs[0], stopped)
}

// What is sent late may be stored as a second call, when the server does not recognise it any more.
func TestPublishSendsNothingOnceItsTimeIsOver(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	over, cancel := context.WithDeadline(testContext(t), time.Now().Add(-time.Second))
	defer cancel()
	errs := i.dispatcher.Publish(over, []call.Dispatch{i.dispatch("s", "f", 1, `{}`), i.dispatch("s", "f", 2, `{}`)})
	for _, err := range errs {
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, ErrUnavailable)
	}
	requireNoErrors(t, i.dispatcher.Publish(testContext(t), []call.Dispatch{i.dispatch("s", "f", 3, `{}`)}))
	require.EqualValues(t, 1, i.messages(t, "FN_CALLS"))
}

func TestPublishAfterClose(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	i.dispatcher.Close()
	errs := i.dispatcher.Publish(testContext(t), []call.Dispatch{i.dispatch("s", "f", 1, `{}`)})
	require.ErrorIs(t, errs[0], ErrClosed)
}

func TestDeadLettersAreKept(t *testing.T) {
	t.Parallel()
	i := install(t, Config{}, testservers.NATSMaxPayload(1<<20))
	ctx := testContext(t)
	letter := call.DeadLetter{Token: "f", Reason: "forged", Detail: "line\r\nbreak", Subject: "fn.result.f.p00", Body: []byte("\x00\xffnot JSON")}
	require.NoError(t, i.dispatcher.Bury(ctx, letter))
	require.NoError(t, i.dispatcher.Bury(ctx, letter))
	require.NoError(t, i.dispatcher.Bury(ctx, call.DeadLetter{Token: "a.*", Reason: "x", Body: make([]byte, 1<<20)}))
	stream, err := i.dispatcher.js.Stream(ctx, "FN_DEAD")
	require.NoError(t, err)
	require.EqualValues(t, 2, stream.CachedInfo().State.Msgs)
	m, err := stream.GetMsg(ctx, 1)
	require.NoError(t, err)
	require.Equal(t, "fn.dead.f", m.Subject)
	require.Equal(t, letter.Body, m.Data)
	require.Equal(t, "line  break", m.Header.Get(headerDetail))
	m, err = stream.GetMsg(ctx, 2)
	require.NoError(t, err)
	require.Equal(t, "fn.dead.=", m.Subject)
	require.Equal(t, "1048576", m.Header.Get(headerTruncated))
}

func TestPoisonOnTheResultSubjectIsReported(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	ctx := testContext(t)
	collected := i.collect(t)
	session := "sess_1"
	home := call.Partition(session, i.cfg.Partitions)
	for _, body := range []string{`{`, `{"stream":"FN_CALLS","seq":1}`, ``} {
		_, err := i.dispatcher.js.PublishMsg(ctx, &nats.Msg{Subject: i.dispatcher.names.result("f", home), Data: []byte(body)})
		require.NoError(t, err)
	}
	// An outcome that was sent to a partition where its session is not at home.
	d := i.dispatch(session, "f", 1, `{}`)
	d.Partition = (home + 1) % i.cfg.Partitions
	require.NoError(t, i.dispatcher.Report(ctx, d, call.Outcome{Kind: call.Released}))
	require.Eventually(t, func() bool {
		collected.mu.Lock()
		defer collected.mu.Unlock()
		return len(collected.invalid) == 4
	}, patience, 10*time.Millisecond)
	require.Zero(t, collected.count())
	require.Eventually(t, func() bool { return i.messages(t, "FN_RESULTS") == 0 }, patience, 10*time.Millisecond)
}
