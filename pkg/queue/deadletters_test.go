package queue

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/call"
)

func sequences(letters []DeadLetter) []uint64 {
	list := make([]uint64, len(letters))
	for i, l := range letters {
		list[i] = l.Sequence
	}
	return list
}

func TestDeadLettersAreListedShownAndDropped(t *testing.T) {
	t.Parallel()
	i := install(t, Config{}, testservers.NATSMaxPayload(1<<20))
	ctx := testContext(t)
	c := i.dispatcher
	list, err := c.DeadLetters(ctx, "", 10)
	require.NoError(t, err)
	require.Empty(t, list)

	began := time.Now()
	for n := range 40 {
		function := "common"
		if n < 2 {
			function = "rare one"
		}
		letter := call.DeadLetter{
			Token: call.Token(function), Reason: "invalid_outcome", Detail: "why", Subject: c.names.result(call.Token(function), 0),
			Body: []byte(fmt.Sprintf("body %d", n)),
		}
		require.NoError(t, c.Bury(ctx, letter))
	}
	require.NoError(t, c.Bury(ctx, call.DeadLetter{Reason: DeadOrphan, Body: []byte(strings.Repeat("x", 1<<20))}))

	list, err = c.DeadLetters(ctx, "", 3)
	require.NoError(t, err)
	require.Equal(t, []uint64{41, 40, 39}, sequences(list))
	require.Empty(t, list[0].Token)
	require.Equal(t, 1<<20, list[0].Size)
	require.True(t, list[0].Truncated)
	require.Equal(t, 7, list[1].Size)
	require.Nil(t, list[1].Body, "a list has no bodies")
	require.WithinRange(t, list[1].Time, began.Add(-time.Minute), began.Add(time.Minute))
	list, err = c.DeadLetters(ctx, "rare one", 3)
	require.NoError(t, err)
	require.Equal(t, []uint64{2, 1}, sequences(list), "far from the end")
	list, err = c.DeadLetters(ctx, "", 1000)
	require.NoError(t, err)
	require.Len(t, list, 41)
	list, err = c.DeadLetters(ctx, "nobody", 10)
	require.NoError(t, err)
	require.Empty(t, list)

	letter, err := c.DeadLetter(ctx, 40)
	require.NoError(t, err)
	require.Equal(t, call.DeadLetter{
		Token: "common", Reason: "invalid_outcome", Detail: "why", Subject: "fn.result.common.p00", Body: []byte("body 39"),
	}, letter.DeadLetter)
	require.Equal(t, 7, letter.Size)

	require.NoError(t, c.DropDeadLetter(ctx, 40))
	require.ErrorIs(t, c.DropDeadLetter(ctx, 40), ErrNoDeadLetter)
	for _, gone := range []uint64{0, 40, 99} {
		require.ErrorIs(t, c.DropDeadLetter(ctx, gone), ErrNoDeadLetter)
		_, err = c.DeadLetter(ctx, gone)
		require.ErrorIs(t, err, ErrNoDeadLetter)
		require.ErrorIs(t, c.ReplayDeadLetter(ctx, gone), ErrNoDeadLetter)
	}
	list, err = c.DeadLetters(ctx, "common", 2)
	require.NoError(t, err)
	require.Equal(t, []uint64{39, 38}, sequences(list))
}

func TestARefusedOutcomeIsReplayedAsItWas(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	ctx := testContext(t)
	d := i.dispatch("sess_1", "f", 1, `{}`)
	body, err := appendOutcome(nil, &d, &call.Outcome{Kind: call.Success, Output: []byte(`"<é>"`)})
	require.NoError(t, err)
	subject := i.dispatcher.names.result("f", d.Partition)
	// The original of it, which the stream's duplicate window remembers.
	require.NoError(t, i.dispatcher.Report(ctx, d, call.Outcome{Kind: call.Success, Output: []byte(`"<é>"`)}))
	collected := i.collect(t)
	require.Eventually(t, func() bool { return len(collected.of(d.Key)) == 1 }, patience, 10*time.Millisecond)

	require.NoError(t, i.dispatcher.Bury(ctx, call.DeadLetter{Token: "f", Reason: "forged_outcome", Subject: subject, Body: body}))
	for n := range 2 {
		require.NoError(t, i.dispatcher.ReplayDeadLetter(ctx, 1))
		require.Eventually(t, func() bool { return len(collected.of(d.Key)) == n+2 }, patience, 10*time.Millisecond)
	}
	replayed := collected.of(d.Key)
	require.Equal(t, body, replayed[1].Body)
	require.Equal(t, subject, replayed[1].Subject)
	require.NotEqual(t, replayed[1].ID, replayed[2].ID)
	_, err = i.dispatcher.DeadLetter(ctx, 1)
	require.NoError(t, err, "it stays until it is dropped")
}

func TestWhatCannotBeReplayedSaysWhy(t *testing.T) {
	t.Parallel()
	i := install(t, Config{Partitions: 2}, testservers.NATSMaxPayload(1<<20))
	ctx := testContext(t)
	for want, letter := range map[string]call.DeadLetter{
		"the call was answered with an error,":  {Reason: DeadMaxDeliveries, Subject: "fn.call.f"},
		"mend the executor":                     {Reason: DeadTerminated, Subject: "fn.call.f"},
		"the API refused this result":           {Reason: call.ReasonRefused},
		"no dispatcher reads fn.result.f.p99":   {Reason: DeadOrphan, Subject: "fn.result.f.p99"},
		"no dispatcher reads fn.call.f":         {Reason: "invalid_outcome", Subject: "fn.call.f"},
		"a result is never replaced":            {Reason: DeadLateResult, Subject: "fn.result.f.p00", Body: []byte(`{}`)},
		"nothing reads what it was":             {Reason: "made up"},
		"only the beginning of its 1048576 byt": {Reason: "invalid_outcome", Subject: "fn.result.f.p00", Body: make([]byte, 1<<20)},
	} {
		require.NoError(t, i.dispatcher.Bury(ctx, letter))
		list, err := i.dispatcher.DeadLetters(ctx, "", 1)
		require.NoError(t, err)
		err = i.dispatcher.ReplayDeadLetter(ctx, list[0].Sequence)
		require.ErrorIs(t, err, ErrNoReplay, want)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "drop it")
	}
	require.Zero(t, i.messages(t, "FN_RESULTS"))
	_, err := i.dispatcher.js.PublishMsg(ctx, &nats.Msg{Subject: "fn.dead.f"})
	require.NoError(t, err)
	require.ErrorIs(t, i.dispatcher.ReplayDeadLetter(ctx, 9), ErrNoReplay, "a letter without headers")
}
