//go:build unix

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/openai/openai-go/v3"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/programtest"
)

// Cases from the field that need executor processes to die.

// calls is a session of one round, each call as function and id.
func (i *installation) calls(list ...[2]string) string {
	i.t.Helper()
	round := make([]string, len(list))
	for n, c := range list {
		round[n] = fmt.Sprintf(`{"name":%q,"arguments":{},"call_id":%q}`, c[0], c[1])
	}
	p := params(`{"say":"done","rounds":[[`+strings.Join(round, ",")+`]]}`, map[string]string{"dispatch": "nats"})
	p.Agent.Tools = nil
	seen := map[string]bool{}
	for _, c := range list {
		if !seen[c[0]] {
			seen[c[0]] = true
			p.Agent.Tools = append(p.Agent.Tools, openai.AgentToolParamUnion{OfParamFunction: &openai.AgentToolParamFunction{
				Name: c[0], Description: c[0], Parameters: map[string]any{"type": "object"},
			}})
		}
	}
	session, err := i.api.Beta.Agents.Sessions.New(i.t.Context(), p)
	require.NoError(i.t, err)
	return session.ID
}

func (i *installation) executeAs(name, file string, flags ...string) *programtest.Process {
	i.t.Helper()
	return programtest.Start(i.t, programtest.Command{
		Path: programtest.Build(i.t, "cmd/executor"), Args: append(flags, "--name", name, file),
		Env: []string{"NATS_URL=" + i.nats.URL(), "CALLFAN_PREFIX=fn", "WHO=" + name},
	})
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return strings.Fields(string(text))
}

// An executor process exits on one poison call, and is started again each time: the other
// calls are served, and the poison one is answered after the limit. One with side effects
// is not run a second time.
func TestField_ExecutorExitsOnOnePoisonCall(t *testing.T) {
	t.Parallel()
	i := install(t)
	file := filepath.Join(t.TempDir(), "functions.yaml")
	write(t, file, `pool: things
functions:
  fine: {effects: none, exec: {command: [cat]}}
  poison: {effects: none, exec: {command: [sh, -c, "echo run >> poison.txt; kill -KILL $PPID"]}}
  charge: {exec: {command: [sh, -c, "echo run >> charge.txt; kill -KILL $PPID"]}}
`, 0o600)
	dispatcher := i.dispatch("fn", "--select", "metadata.dispatch=nats", "--ack-wait", "2s")
	dispatcher.awaitReady(t)
	// One call at a time: what runs beside a poison call dies with it, and is redelivered.
	start := func() *programtest.Process { return i.executeAs("mortal", file, "--concurrency", "1") }
	executors := []*programtest.Process{start(), start()}
	for _, e := range executors {
		e.Await(e.Stderr, "executor serves")
	}
	list := [][2]string{{"poison", "poison"}, {"charge", "charge"}}
	for n := range 20 {
		list = append(list, [2]string{"fine", fmt.Sprintf("fine_%d", n)})
	}
	session := i.calls(list...)
	exits := 0
	require.Eventually(t, func() bool {
		for n, e := range executors {
			if !e.Running() { // as a supervisor would
				exits++
				executors[n] = start()
			}
		}
		got, err := i.api.Beta.Agents.Sessions.Get(t.Context(), session)
		return err == nil && got.Status == openai.AgentSessionStatusIdle
	}, patience, 20*time.Millisecond, "the turn did not end")
	outputs := i.outputs(session)
	require.Len(t, outputs, 22)
	require.Contains(t, outputs["poison"], "function crashed or its executors were lost")
	require.Contains(t, outputs["charge"], "the outcome of this call is unknown")
	for n := range 20 {
		require.Equal(t, "{}", outputs[fmt.Sprintf("fine_%d", n)])
	}
	require.Len(t, lines(t, filepath.Join(filepath.Dir(file), "poison.txt")), 3, "runs up to the limit")
	require.Len(t, lines(t, filepath.Join(filepath.Dir(file), "charge.txt")), 1, "never a second time")
	require.Equal(t, 4, exits)
	i.awaitEmptyStreams()
}

// An executor has calls that it did not start when SIGTERM comes: they lie in its socket,
// since it stood still. Another one does them at once, without waiting for their leases of
// 30 s.
func TestField_UnstartedCallsAreTakenOver(t *testing.T) {
	t.Parallel()
	i := install(t)
	file := filepath.Join(t.TempDir(), "functions.yaml")
	write(t, file, `pool: things
functions:
  note: {exec: {command: [sh, -c, "echo $WHO.$FN_CALL_ID >> runs.txt; cat"], env: {WHO: "${WHO}"}}}
`, 0o600)
	dispatcher := i.dispatch("fn", "--select", "metadata.dispatch=nats", "--ack-wait", "30s")
	dispatcher.awaitReady(t)
	conn, err := nats.Connect(i.nats.URL())
	require.NoError(t, err)
	defer conn.Close()
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	consumer := func() jetstream.ConsumerInfo {
		c, err := js.Consumer(t.Context(), "FN_CALLS", "pool_things")
		if err != nil {
			return jetstream.ConsumerInfo{}
		}
		return *c.CachedInfo()
	}
	const calls = 10
	leaving := i.executeAs("leaving", file)
	require.Eventually(t, func() bool { return consumer().NumWaiting > 0 }, patience, 10*time.Millisecond, "it does not pull")
	leaving.Freeze()
	var list [][2]string
	for n := range calls {
		list = append(list, [2]string{"note", fmt.Sprintf("call_%d", n)})
	}
	session := i.calls(list...)
	require.Eventually(t, func() bool { return consumer().NumAckPending == calls }, patience, 10*time.Millisecond, "it was not sent the calls")
	staying := i.executeAs("staying", file)
	staying.Await(staying.Stderr, "executor serves")

	began := time.Now()
	leaving.Signal(syscall.SIGTERM)
	leaving.Signal(syscall.SIGCONT)
	i.awaitIdle(session)
	took := time.Since(began)
	byOther := 0
	runs := lines(t, filepath.Join(filepath.Dir(file), "runs.txt"))
	once := map[string]bool{}
	for _, run := range runs {
		who, id, _ := strings.Cut(run, ".")
		require.False(t, once[id], "%s ran twice", id)
		once[id] = true
		if who == "staying" {
			byOther++
		}
	}
	t.Logf("the turn ended %s after the signal; the other executor ran %d of %d calls", took.Round(time.Millisecond), byOther, calls)
	require.Less(t, took, 15*time.Second, "no call waits for its lease")
	require.Len(t, once, calls)
	require.Len(t, i.outputs(session), calls)
	require.Equal(t, 0, leaving.Wait())
	require.Equal(t, 0, staying.Stop())
	i.awaitEmptyStreams()
}
