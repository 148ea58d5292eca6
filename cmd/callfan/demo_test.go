package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/programtest"
	"github.com/callfan/callfan/internal/testservers"
)

// report takes stdout apart, which must be one JSON object with these counts.
func report(t *testing.T, stdout string) map[string]int {
	t.Helper()
	var counts map[string]int
	require.NoError(t, json.Unmarshal([]byte(stdout), &counts), stdout)
	for _, name := range []string{
		"sessions", "turns", "calls", "executed", "submitted", "lost", "doubled", "batches", "max_batch", "wall_ms",
	} {
		require.Contains(t, counts, name)
	}
	return counts
}

func TestDemoAnswersTheTwoQuestions(t *testing.T) {
	t.Parallel()
	code, p := programtest.Run(t, command(t, "demo"))
	require.Equal(t, exitOK, code)
	require.Empty(t, p.Stderr.String())
	for _, text := range []string{
		"get_customer", "get_weather", "calculate", "claimed, handed to the executors", "result saved", "settled: the session has it",
		"user:  Look up customers 123 and 456.",
		"agent: Customer 123 is Example Customer (plan pro). Customer 456 was not found.",
		"user:  北京和上海今天各是什么天气?两地温差多少度?",
		"agent: 北京今天晴、22 度,上海多云、25 度,两地温差 3 度。",
		"2 sessions, 2 turns, 5 calls: 5 executed, 5 submitted", "0 lost, 0 doubled",
	} {
		require.Contains(t, p.Stdout.String(), text)
	}
	require.NotContains(t, p.Stdout.String(), "\x1b", "no terminal, no escape sequences")
}

func TestDemoAsJSON(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{"openai", "openagentcore"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			code, p := programtest.Run(t, command(t, "demo", "--json", "--profile", profile))
			require.Equal(t, exitOK, code)
			counts := report(t, p.Stdout.String())
			require.Equal(t, []int{2, 2, 5, 5, 5, 0, 0}, []int{
				counts["sessions"], counts["turns"], counts["calls"], counts["executed"], counts["submitted"], counts["lost"], counts["doubled"],
			})
		})
	}
}

// TestDemoAsALoad also checks that real servers are left as they were.
func TestDemoAsALoad(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ nats, redis bool }{
		"embedded": {}, "nats": {nats: true}, "redis": {redis: true}, "nats and redis": {nats: true, redis: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := []string{"demo", "--sessions", "50", "--calls", "20", "--json"}
			if tc.nats {
				server := testservers.NATS(t)
				args = append(args, "--nats", server.URL())
				defer requireNoStreams(t, server.URL())
			}
			if tc.redis {
				server := testservers.Redis(t)
				args = append(args, "--redis", server.URL())
				defer requireNoKeys(t, server.URL())
			}
			code, p := programtest.Run(t, command(t, args...))
			require.Equal(t, exitOK, code)
			counts := report(t, p.Stdout.String())
			require.Equal(t, []int{50, 50, 1000, 1000, 1000, 0, 0}, []int{
				counts["sessions"], counts["turns"], counts["calls"], counts["executed"], counts["submitted"], counts["lost"], counts["doubled"],
			})
			require.LessOrEqual(t, counts["max_batch"], 20, "a batch is of one session")
			require.Less(t, counts["batches"], 1000)
		})
	}
}

func TestDemoWithResponses(t *testing.T) {
	t.Parallel()
	code, p := programtest.Run(t, command(t, "demo", "--responses"))
	require.Equal(t, exitOK, code)
	require.Empty(t, p.Stderr.String())
	for _, text := range []string{
		"agent: 北京今天晴、22 度,上海多云、25 度,两地温差 3 度。", "run:   北京今天晴、22 度,上海多云、25 度,两地温差 3 度。",
		"run:   Customer 123 is Example Customer (plan pro). Customer 456 was not found.", "settled: the run has it",
		"2 sessions, 2 turns, 5 calls: 5 submitted", "2 runs, 2 completed in 5 rounds, 5 calls: 5 outputs sent", "10 executed, 0 lost, 0 doubled",
	} {
		require.Contains(t, p.Stdout.String(), text)
	}
}

// TestDemoWithResponsesAsALoad has one executor process serve sessions and runs at once.
func TestDemoWithResponsesAsALoad(t *testing.T) {
	t.Parallel()
	for name, servers := range map[string]bool{"embedded": false, "nats and redis": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := []string{"demo", "--responses", "--sessions", "20", "--calls", "10", "--rounds", "2", "--json"}
			if servers {
				nats, redis := testservers.NATS(t), testservers.Redis(t)
				args = append(args, "--nats", nats.URL(), "--redis", redis.URL())
				defer requireNoStreams(t, nats.URL())
				defer requireNoKeys(t, redis.URL())
			}
			code, p := programtest.Run(t, command(t, args...))
			require.Equal(t, exitOK, code)
			counts := report(t, p.Stdout.String())
			require.Equal(t, []int{20, 20, 400, 400}, []int{counts["sessions"], counts["turns"], counts["calls"], counts["submitted"]})
			require.Equal(t, []int{20, 20, 60, 400, 400}, []int{
				counts["runs"], counts["runs_completed"], counts["rounds"], counts["run_calls"], counts["run_outputs"],
			})
			require.Equal(t, []int{800, 0, 0}, []int{counts["executed"], counts["lost"], counts["doubled"]})
		})
	}
}

func TestDemoFailsWhenRunsAreLost(t *testing.T) {
	t.Parallel()
	faults := filepath.Join(t.TempDir(), "faults.json")
	require.NoError(t, os.WriteFile(faults, []byte(`{"rules":[{"kind":"unavailable","endpoint":"response_create","skip":2,"rate":1}]}`), 0o600))
	code, p := programtest.Run(t, command(t, "demo", "--responses", "--json", "--faults", faults, "--stall", "3s"))
	require.Equal(t, exitFailed, code)
	counts := report(t, p.Stdout.String())
	require.Equal(t, []int{5, 5, 4, 0}, []int{counts["calls"], counts["submitted"], counts["run_calls"], counts["run_outputs"]})
	require.Equal(t, 4, counts["lost"])
	require.Contains(t, p.Stderr.String(), "nothing has happened for 3s")
}

func requireNoStreams(t *testing.T, url string) {
	t.Helper()
	conn, err := nats.Connect(url)
	require.NoError(t, err)
	defer conn.Close()
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	var names []string
	list := js.StreamNames(t.Context())
	for name := range list.Name() {
		names = append(names, name)
	}
	require.NoError(t, list.Err())
	require.Empty(t, names)
}

func requireNoKeys(t *testing.T, url string) {
	t.Helper()
	options, err := redis.ParseURL(url)
	require.NoError(t, err)
	client := redis.NewClient(options)
	defer client.Close()
	keys, err := client.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.Empty(t, keys)
}

func TestDemoWithRoundsAndHandlersThatTakeTime(t *testing.T) {
	t.Parallel()
	code, p := programtest.Run(t, command(t, "demo", "--sessions", "2", "--calls", "32", "--rounds", "2", "--handler-ms", "100"))
	require.Equal(t, exitOK, code)
	require.Contains(t, p.Stdout.String(), "2 sessions, 2 turns, 128 calls: 128 executed, 128 submitted")
	require.Contains(t, p.Stdout.String(), "[##############################] 128 calls: 128 claimed, 128 saved, 128 settled\n")
}

func TestDemoFailsWhenCallsAreLost(t *testing.T) {
	t.Parallel()
	faults := filepath.Join(t.TempDir(), "faults.json")
	require.NoError(t, os.WriteFile(faults, []byte(`{"rules":[{"kind":"unavailable","endpoint":"events_post","rate":1}]}`), 0o600))
	code, p := programtest.Run(t, command(t, "demo", "--json", "--faults", faults, "--stall", "2s"))
	require.Equal(t, exitFailed, code)
	counts := report(t, p.Stdout.String())
	require.Equal(t, counts["calls"], counts["lost"])
	require.Positive(t, counts["lost"])
	require.Contains(t, p.Stderr.String(), "nothing has happened for 2s")
	require.Contains(t, p.Stderr.String(), strconv.Itoa(counts["lost"])+" calls were lost")
	require.Less(t, counts["wall_ms"], 30_000)
}

func TestDemoStopsWhenAsked(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, command(t, "demo", "--sessions", "1", "--handler-ms", "60000"))
	p.Await(p.Stdout, "1 claimed")
	began := time.Now()
	require.NotEqual(t, exitOK, p.Stop())
	require.Less(t, time.Since(began), 30*time.Second)
}
