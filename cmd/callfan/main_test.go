package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/programtest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	programtest.Remove()
	os.Exit(code)
}

// command is callfan with these arguments.
func command(t *testing.T, args ...string) programtest.Command {
	t.Helper()
	return programtest.Command{Path: programtest.Build(t, "cmd/callfan"), Args: args}
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"":                                         `expected one of "demo", "dev", "simulate"`,
		"nonsense":                                 "unexpected argument nonsense",
		"demo --sesions 3":                         `unknown flag --sesions, did you mean "--sessions"?`,
		"demo --sessions many":                     "--sessions",
		"demo --sessions=-1":                       "--sessions: must not be negative",
		"demo --calls 3":                           "say how large by --sessions",
		"demo --languages go --responses":          "leave out --responses",
		"demo --profile other":                     `must be one of "openai","openagentcore"`,
		"demo --redis nonsense":                    "want redis://",
		"demo --faults missing.json":               "missing.json",
		"demo --json extra":                        "unexpected argument extra",
		"simulate --switch BatchAtomic":            "use NAME=VALUE",
		"simulate --switch Nonsense=1":             "there are CreateStatus, EventsStatus",
		"simulate --switch BatchAtomic=maybe":      "BatchAtomic",
		"simulate --switch CreateStatus=999":       "CreateStatus",
		"simulate --faults missing.json":           "missing.json",
		"ask":                                      `expected "<text>"`,
		"sessions":                                 `expected one of "watch", "unwatch", "list"`,
		"sessions watch":                           `expected "<id> ..."`,
		"dev --linger=-1s":                         "linger",
		"dev --log-format xml":                     "log-format",
		"sessions list --admin-token-file gone":    "--admin-token-file: there is no such file",
		"calls list":                               "give either a session's id or --state",
		"calls list sess_1 --state parked":         "give either a session's id or --state",
		"calls list --state gone":                  `--state is "gone"; use open, or one of seen`,
		"calls list --state parked --limit 1001":   "--limit is 1001; use 1 to 1000",
		"calls rerun no-key":                       `invalid call key "no-key"`,
		"calls answer s/t/c":                       "give exactly one of --output, --output-file, --output-json and --error",
		"calls answer s/t/c --output=a --error=b":  "give exactly one of",
		"calls answer s/t/c --output-json gone":    "gone",
		"calls answer s/t/c --output-json main.go": "neither a JSON string nor an array of content parts",
		"calls answer s/t/c --error a --by " + strings.Repeat("n", 101): `"by" is no name`,
		"nats permissions":                                        `expected "<pool=functions> ..."`,
		"nats permissions weather":                                `"weather": say POOL=FUNCTION,FUNCTION`,
		"nats permissions a.b=f":                                  `the pool name "a.b"`,
		"nats permissions p=f q=f":                                `function "f" is in the pools p and q`,
		"nats permissions p=f P=g":                                "pool P cannot be told from p",
		"nats permissions dispatcher=f":                           "cannot be told from dispatcher",
		"nats permissions --nats-inbox-prefix=i p=f q=g":          "one inbox prefix for 2 pools",
		"nats permissions --accounts --nats-api-prefix=*.API p=f": `subject "*.API"`,
		"--config gone.yaml demo":                                 "gone.yaml",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			code, p := programtest.Run(t, command(t, strings.Fields(line)...))
			require.Equal(t, exitInvalid, code, p.Stderr)
			require.Empty(t, p.Stdout.String())
			first, rest, _ := strings.Cut(p.Stderr.String(), "\n")
			require.True(t, strings.HasPrefix(first, "callfan: "), first)
			require.Contains(t, first, want)
			if rest != "" {
				require.Equal(t, "\nRun callfan --help to see the commands, callfan COMMAND --help for one of them.\n", rest)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]string{
		"":                 {"demo", "dev", "simulate", "ask", "sessions", "--config", "--log-level"},
		"demo":             {"--sessions", "--calls", "--rounds", "--handler-ms", "--nats", "--redis", "--faults", "--stall", "--json"},
		"dev":              {"--dir", "--nats-listen", "--simulate-listen", "--openai-api-key-file", "--listen", "CALLFAN_DEV_DIR"},
		"simulate":         {"--listen", "--profile", "--switch", "--faults", "--fixtures"},
		"ask":              {"--model", "--dispatcher", "--openai-base-url"},
		"sessions":         {"watch", "unwatch", "list", "--dispatcher"},
		"sessions watch":   {"<id>"},
		"sessions unwatch": {"<id>"},
		"sessions list":    {"--json"},
		"calls":            {"list", "show", "rerun", "answer", "--dispatcher"},
		"calls answer":     {"<key>", "--output=TEXT", "--output-file", "--output-json", "--error", "--by"},
	} {
		t.Run("callfan "+line, func(t *testing.T) {
			t.Parallel()
			code, p := programtest.Run(t, command(t, append(strings.Fields(line), "--help")...))
			require.Equal(t, exitOK, code)
			require.Empty(t, p.Stderr.String())
			for _, text := range want {
				require.Contains(t, p.Stdout.String(), text)
			}
			require.NotContains(t, p.Stdout.String(), "demo-worker", "the hidden command")
		})
	}
	code, p := programtest.Run(t, command(t, "--version"))
	require.Equal(t, exitOK, code)
	require.NotEmpty(t, strings.TrimSpace(p.Stdout.String()))
}
