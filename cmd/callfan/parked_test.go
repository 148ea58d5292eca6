package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/ops"
	"github.com/callfan/callfan/internal/programtest"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/queue"
)

// unsureExecutor serves get_customer and can never tell whether a first attempt took
// effect; further ones succeed.
func unsureExecutor(t *testing.T, natsURL string) {
	t.Helper()
	conn, err := queue.Connect(t.Context(), queue.Config{URL: natsURL})
	require.NoError(t, err)
	binding, err := conn.Register(t.Context(), queue.Registration{
		Pool: "customers", Functions: []call.Function{{Name: "get_customer", Policy: call.Policy{OnUncertain: call.UncertainPark}}},
	})
	require.NoError(t, err)
	puller, err := conn.Bind(t.Context(), binding)
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for t.Context().Err() == nil {
			_ = puller.Pull(t.Context(), 10, func(taken *queue.Taken) {
				outcome := call.Outcome{Kind: call.Uncertain, Reason: "the ledger \x1b is closed", Executor: "unsure-1"}
				if taken.Dispatch.Attempt > 1 {
					outcome = call.Outcome{Kind: call.Success, Output: []byte(`"known"`), Executor: "unsure-1"}
				}
				if conn.Report(t.Context(), taken.Dispatch, outcome) == nil {
					_ = taken.Ack()
				}
			})
		}
	}()
	t.Cleanup(func() {
		<-done
		puller.Close()
		conn.Close()
	})
}

// parkedPage is the lines of commands of docs/parked.md that have a text.
func parkedPage(t *testing.T, text string) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(programtest.Root(), "docs", "parked.md"))
	require.NoError(t, err)
	var lines []string
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) {
		for line := range strings.Lines(block[1]) {
			require.Regexp(t, `^callfan calls (list|show|rerun|answer) `, line, "this test runs them all")
			if strings.Contains(line, text) {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
	}
	require.NotEmpty(t, lines, text)
	return lines
}

// TestParkedCallsAreShownAndDecided runs the commands of docs/parked.md.
func TestParkedCallsAreShownAndDecided(t *testing.T) {
	t.Parallel()
	d := startDev(t, t.TempDir(), nil)
	first, second := pendingSession(t, d), pendingSession(t, d)
	unsureExecutor(t, d.nats)
	calls := func(code int, args ...string) *programtest.Process {
		t.Helper()
		got, p := programtest.Run(t, d.callfan(t, append([]string{"calls"}, args...)...))
		require.Equal(t, code, got, p.Stderr)
		return p
	}
	var parked []ops.Call
	require.Eventually(t, func() bool {
		return json.Unmarshal([]byte(calls(exitOK, "list", "--state", "parked", "--json").Stdout.String()), &parked) == nil && len(parked) == 4
	}, time.Minute, 50*time.Millisecond)
	documented := func(line string, c ops.Call) string {
		t.Helper()
		code, p := programtest.Run(t, programtest.Command{
			Path: "/bin/sh", Args: []string{"-euc", strings.ReplaceAll(line, "sess_1/turn_1/call_1", c.Key.String())}, Env: append(d.environment(),
				"PATH="+filepath.Dir(programtest.Build(t, "cmd/callfan"))+":"+os.Getenv("PATH"), "USER=mary"),
		})
		require.Equal(t, exitOK, code, p.Stderr)
		return p.Stdout.String()
	}
	for _, line := range parkedPage(t, "calls list") {
		table := documented(line, parked[0])
		for _, c := range parked {
			require.Regexp(t, `(?m)^`+regexp.QuoteMeta(c.Key.String())+` +get_customer +parked +1 `, table)
		}
	}
	some := calls(exitOK, "list", "--state", "open", "--limit", "3")
	require.Equal(t, 4, strings.Count(some.Stdout.String(), "\n"))
	require.Equal(t, "there are more; these are the oldest 3 (--limit)\n", some.Stderr.String())
	for _, line := range parkedPage(t, "calls show") {
		shown := documented(line, parked[0])
		require.Contains(t, shown, parked[0].IdempotencyKey())
		require.Regexp(t, `(?m)^20\S+Z +\S+ +parked +1 +.*"?the ledger .*unsure-1`, shown)
		require.Contains(t, shown, "callfan calls rerun "+parked[0].Key.String())
		require.NotContains(t, shown, "\x1b")
	}

	decisions := parkedPage(t, "calls answer")
	decisions = append(decisions, parkedPage(t, "calls rerun")...)
	require.Len(t, decisions, 3)
	for i, line := range decisions {
		require.Contains(t, documented(line, parked[i]), "decided; callfan calls show "+parked[i].Key.String())
	}
	output := filepath.Join(t.TempDir(), "output.json")
	require.NoError(t, os.WriteFile(output, []byte(`[{"type":"input_text","text":"<found> by hand"}]`), 0o600))
	calls(exitOK, "answer", parked[3].Key.String(), "--output-json", output, "--by", "john")

	api := client(d.api)
	said := ""
	for _, id := range []string{first, second} {
		require.Eventually(t, func() bool {
			session, err := api.Beta.Agents.Sessions.Get(t.Context(), id)
			return err == nil && session.Status == openai.AgentSessionStatusIdle
		}, time.Minute, 50*time.Millisecond)
		items, err := api.Beta.Agents.Sessions.Items.List(t.Context(), id, openai.BetaAgentSessionItemListParams{})
		require.NoError(t, err)
		said += items.RawJSON()
	}
	for _, text := range []string{"refunded, reference 4711", "a colleague looks into it", `"known"`, "by hand"} {
		require.Contains(t, said, text)
	}
	for i, by := range map[int]string{0: "mary", 1: "mary", 2: "mary", 3: "john"} {
		require.Contains(t, calls(exitOK, "show", parked[i].Key.String()).Stdout.String(), "operator "+by)
	}

	again := calls(exitFailed, "answer", parked[0].Key.String(), "--error", "too late").Stderr.String()
	require.Contains(t, again, "nothing is left to decide")
	require.Contains(t, calls(exitFailed, "rerun", parked[0].Key.String()).Stderr.String(), "nothing is left to decide")
	require.Contains(t, calls(exitFailed, "rerun", "no/such/call").Stderr.String(), "no record")
	require.NotContains(t, calls(exitOK, "list", "--state", "parked").Stdout.String(), "get_customer")
	require.Equal(t, exitOK, d.Stop())
}
