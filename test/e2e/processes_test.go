package e2e

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/programtest"
)

const mixed = `{"rounds":[
	[{"name":"count","arguments":{"n": 9007199254740993},"call_id":"a"},{"name":"double","arguments":{"n":21},"call_id":"b"}],
	[{"name":"double","arguments":{"n":-1},"call_id":"c"},{"name":"count","call_id":"d"}]
],"say":"done"}`

// TestOfficialClientSeesATurnComplete is the product as it is run: three programs, two servers, and the official client
// that creates a session and watches it.
func TestOfficialClientSeesATurnComplete(t *testing.T) {
	t.Parallel()
	i := install(t)
	dispatcher := i.dispatch("fn", "--select", "metadata.dispatch=nats")
	executor := i.execute("fn")
	executor.Await(executor.Stderr, "executor serves")

	stream := i.api.Beta.Agents.Sessions.NewStreaming(t.Context(), params(mixed, map[string]string{"dispatch": "nats"}))
	defer stream.Close()
	var session, said string
	var kinds []string
	for stream.Next() {
		event := stream.Current()
		kinds = append(kinds, event.Type)
		switch event.Type {
		case "agent.session.created":
			session = event.AsAgentSessionCreated().Session.ID
		case "agent.session.turn.output_text.done":
			said = event.AsAgentSessionTurnOutputTextDone().Text
		}
	}
	require.NoError(t, stream.Err())
	require.Equal(t, "done", said)
	require.Equal(t, "agent.session.idle", kinds[len(kinds)-1])
	require.Equal(t, 2, count(kinds, "agent.session.requires_action"), kinds)
	require.Equal(t, 1, count(kinds, "agent.session.turn.completed"), kinds)
	require.Equal(t, map[string]string{
		"a": `{"n": 9007199254740993}`, "b": "{\"n\":42}\n", "c": "n must be a number that is not negative", "d": `{}`,
	}, i.outputs(session))
	stats := i.stats()
	require.EqualValues(t, 4, stats.ResultsAccepted)
	require.Zero(t, stats.DuplicateSubmissions)

	require.Equal(t, 0, executor.Stop())
	require.Equal(t, 0, dispatcher.Stop())
	require.Equal(t, 0, i.simulator.Stop())
	require.Contains(t, dispatcher.Stderr.String(), "msg=stopped")
	i.awaitEmptyStreams()
}

func count(list []string, what string) int {
	n := 0
	for _, s := range list {
		if s == what {
			n++
		}
	}
	return n
}

func TestWaysToHaveASessionWatched(t *testing.T) {
	t.Parallel()
	i := install(t)
	for name, watch := range map[string]func(t *testing.T, prefix, session string) *daemon{
		"flag": func(_ *testing.T, prefix, session string) *daemon { return i.dispatch(prefix, "--session", session) },
		"file": func(t *testing.T, prefix, session string) *daemon {
			path := filepath.Join(t.TempDir(), "sessions.txt")
			write(t, path, "", 0o600)
			d := i.dispatch(prefix, "--sessions-file", path)
			d.awaitReady(t)
			write(t, path, session+"\n", 0o600)
			return d
		},
		"command": func(t *testing.T, prefix, session string) *daemon {
			d := i.dispatch(prefix)
			d.awaitReady(t)
			code, p := programtest.Run(t, programtest.Command{
				Path: programtest.Build(t, "cmd/callfan"), Args: []string{"sessions", "watch", session},
				Env: []string{"CALLFAN_DISPATCHER=" + d.admin},
			})
			require.Equal(t, 0, code, p.Stderr)
			return d
		},
		"selector": func(t *testing.T, prefix, session string) *daemon {
			got, err := i.api.Beta.Agents.Sessions.Get(t.Context(), session)
			require.NoError(t, err)
			return i.dispatch(prefix, "--select", "agent="+got.Agent.ID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			executor := i.execute(name)
			session := i.create(`{"rounds":[[{"name":"double","arguments":{"n":1},"call_id":"a"}]],"say":"done"}`)
			d := watch(t, name, session)
			i.awaitIdle(session)
			require.Equal(t, map[string]string{"a": "{\"n\":2}\n"}, i.outputs(session))
			require.Equal(t, 0, executor.Stop())
			require.Equal(t, 0, d.Stop())
		})
	}
}

func TestProgramsStartBeforeTheirServers(t *testing.T) {
	t.Parallel()
	i := install(t)
	i.nats.Stop()
	i.redis.Stop()
	session := i.create(`{"rounds":[[{"name":"count","arguments":{},"call_id":"a"}]],"say":"done"}`)
	dispatcher, executor := i.dispatch("fn", "--session", session), i.execute("fn")
	status, body := dispatcher.readiness(t)
	require.Equal(t, 503, status)
	require.Contains(t, body, `"ready":false`)
	dispatcher.Await(dispatcher.Stderr, "cannot connect to NATS; trying until it works")
	executor.Await(executor.Stderr, "cannot connect to NATS; trying until it works")

	i.nats.Start()
	dispatcher.Await(dispatcher.Stderr, "connected to NATS")
	status, _ = dispatcher.readiness(t)
	require.Equal(t, 503, status, "Redis is still missing")
	i.redis.Start()
	dispatcher.awaitReady(t)
	i.awaitIdle(session)
	require.Equal(t, map[string]string{"a": `{}`}, i.outputs(session))
	require.Equal(t, 0, executor.Stop())
	require.Equal(t, 0, dispatcher.Stop())
	i.awaitEmptyStreams()
}
