package app_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/ops"
	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/queue"
)

// TestATerminatedCallIsAnswered: the session goes on at once, long before the call's
// deadline.
func TestATerminatedCallIsAnswered(t *testing.T) {
	t.Parallel()
	server, api := testservers.NATS(t), startService(t)
	o := options(t, api, server.URL())
	o.Sessions = []string{api.create(t, oneCall, nil)}
	d := run(t, o)
	conn, err := queue.Connect(t.Context(), queue.Config{URL: server.URL(), Logger: logger(t)})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	binding, err := conn.Register(t.Context(), queue.Registration{Pool: "greeters", Functions: []call.Function{{Name: "greet"}}})
	require.NoError(t, err)
	puller, err := conn.Bind(t.Context(), binding)
	require.NoError(t, err)
	defer puller.Close()
	require.NoError(t, puller.Pull(t.Context(), 1, func(taken *queue.Taken) { require.NoError(t, taken.Term("of no use")) }))
	api.awaitTurns(t, 1)

	_, metrics := get(t, "http://"+d.Addr()+"/metrics")
	require.Contains(t, metrics, `callfan_calls_answered_total{function="greet",outcome="failed",reason="crashed"} 1`)
	door := d.door(t)
	letters, err := door.DeadLetters(t.Context(), "greet", 0)
	require.NoError(t, err)
	require.Len(t, letters, 1)
	require.Equal(t, "terminated", letters[0].Reason)
	require.Contains(t, letters[0].Detail, "of no use")
	require.ErrorContains(t, door.ReplayDeadLetter(t.Context(), letters[0].Sequence), "ask again in the session")
	require.NoError(t, d.stop(t))
}

func TestDeadLettersOverTheAdminAPI(t *testing.T) {
	t.Parallel()
	server, api := testservers.NATS(t), startService(t)
	d := run(t, options(t, api, server.URL()))
	d.awaitReady(t)
	door := d.door(t)
	nc, err := nats.Connect(server.URL())
	require.NoError(t, err)
	defer nc.Close()
	name := "look up"
	subject := "fn.result." + call.Token(name) + ".p00"
	require.NoError(t, nc.Publish(subject, []byte("no outcome")))
	var letters []ops.DeadLetter
	require.Eventually(t, func() bool {
		letters, err = door.DeadLetters(t.Context(), name, 0)
		return err == nil && len(letters) == 1
	}, patience, 20*time.Millisecond)
	number := letters[0].Sequence
	letter, err := door.DeadLetter(t.Context(), number)
	require.NoError(t, err)
	require.Equal(t, name, letter.Function, "the name, not the token")
	require.Equal(t, subject, letter.Subject)
	require.Equal(t, "no outcome", string(letter.Bytes()))
	require.NoError(t, door.ReplayDeadLetter(t.Context(), number))
	require.Eventually(t, func() bool {
		_, metrics := get(t, "http://"+d.Addr()+"/metrics")
		return strings.Contains(metrics, `callfan_events_total{event="invalid_outcome"} 2`)
	}, patience, 20*time.Millisecond, "it is checked again")
	require.NoError(t, door.DropDeadLetter(t.Context(), number))
	_, err = door.DeadLetter(t.Context(), number)
	require.ErrorContains(t, err, "no such dead letter")
	require.NoError(t, d.stop(t))
}
