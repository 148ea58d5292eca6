package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/programtest"
)

var (
	fenced = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")
	goRun  = regexp.MustCompile(`\bgo run \./(\S+)`)
)

// readmeBlocks are the code blocks of README.md in one language.
func readmeBlocks(t *testing.T, language string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(programtest.Root(), "README.md"))
	require.NoError(t, err)
	var blocks []string
	for _, match := range fenced.FindAllStringSubmatch(string(text), -1) {
		if match[1] == language {
			blocks = append(blocks, match[2])
		}
	}
	require.NotEmpty(t, blocks)
	return blocks
}

// readme finds the block of shell commands that has a text.
func readme(t *testing.T, text string) string {
	t.Helper()
	for _, block := range readmeBlocks(t, "sh") {
		if strings.Contains(block, text) {
			return block
		}
	}
	t.Fatalf("README.md has no commands with %q", text)
	return ""
}

// shell runs commands of the README from the root of the repository. `go run PATH` becomes the program that it would
// build; the pairs replace addresses, which are fixed in the README and free ones here.
func shell(t *testing.T, commands string, env []string, replace ...string) *programtest.Process {
	t.Helper()
	for i := 0; i < len(replace); i += 2 {
		require.Contains(t, commands, replace[i])
	}
	commands = strings.NewReplacer(replace...).Replace(commands)
	require.Regexp(t, goRun, commands)
	last := strings.LastIndex(commands, "go run ")
	commands = commands[:last] + "exec " + commands[last:] // signals go to the program
	commands = goRun.ReplaceAllStringFunc(commands, func(command string) string {
		return programtest.Build(t, strings.TrimPrefix(command, "go run ./"))
	})
	return programtest.Start(t, programtest.Command{
		Path: "/bin/sh", Args: []string{"-euc", commands}, Env: env, Dir: programtest.Root(),
	})
}

func TestReadmeCommandsAreAllRun(t *testing.T) {
	t.Parallel()
	run := []string{
		"./cmd/callfan demo\n", "./cmd/callfan dev\n", "./examples/first\n", "./cmd/executor examples/executor-exec/functions.yaml\n",
		"./cmd/callfan ask \"Look", "./cmd/dispatcher --select ", // by the tests below
		"make test\n",                      // it runs them
		"./cmd/callfan demo --languages\n", // by make test-languages
	}
	blocks := readmeBlocks(t, "sh")
	for _, block := range blocks {
		found := 0
		for _, command := range run {
			found += strings.Count(block, command)
		}
		require.Equal(t, 1, found, "no test runs this block as a whole:\n%s", block)
	}
	require.Len(t, blocks, len(run))
}

func TestReadmeDemo(t *testing.T) {
	t.Parallel()
	p := shell(t, readme(t, "callfan demo\n"), nil)
	require.Equal(t, 0, p.Wait())
	require.Contains(t, p.Stdout.String(), "0 lost, 0 doubled")
}

func TestReadmeFirstFunction(t *testing.T) {
	t.Parallel()
	dev := shell(t, readme(t, "callfan dev\n"), []string{
		"CALLFAN_DEV_DIR=" + t.TempDir(), "CALLFAN_DEV_NATS_LISTEN=127.0.0.1:0", "CALLFAN_DEV_SIMULATE_LISTEN=127.0.0.1:0", "CALLFAN_LISTEN=127.0.0.1:0",
	})
	dev.Await(dev.Stdout, "OPENAI_API_KEY=any\n")
	printed := func(pattern string) string {
		match := regexp.MustCompile(pattern).FindStringSubmatch(dev.Stdout.String())
		require.NotNil(t, match, pattern)
		return match[1]
	}
	natsURL, api, admin := printed(`NATS_URL=(\S+)`), printed(`OPENAI_BASE_URL=(\S+)`), printed(`health, admin +(\S+)`)
	var executors []*programtest.Process
	for _, command := range []string{"./examples/first", "./cmd/executor"} {
		executors = append(executors, shell(t, readme(t, command), []string{"NATS_URL=" + natsURL}))
	}
	for _, executor := range executors {
		executor.Await(executor.Stderr, "executor serves")
	}
	ask := shell(t, readme(t, "callfan ask"), []string{"CALLFAN_DISPATCHER=" + admin}, "http://127.0.0.1:8421/v1", api)
	require.Equal(t, 0, ask.Wait())
	require.Contains(t, ask.Stdout.String(), `get_customer({"customer_id":"123"}) = "{\"found\":true,\"name\":\"Example Customer\"}"`)
	require.Equal(t, 2, strings.Count(ask.Stdout.String(), "Customer 456 was not found."), "by a session, and by a run")
	require.Regexp(t, `It is \d{4}-\d\d-\d\dT`, ask.Stdout.String())
	for _, executor := range executors {
		require.Equal(t, 0, executor.Stop())
	}
	require.Equal(t, 0, dev.Stop())
}

func TestReadmeDispatcherWithOwnServers(t *testing.T) {
	t.Parallel()
	i := install(t)
	dispatcher := shell(t, readme(t, "./cmd/dispatcher"), []string{"OPENAI_BASE_URL=" + i.baseURL, "CALLFAN_LISTEN=127.0.0.1:0", "CALLFAN_POLL_INTERVAL=1s"},
		"nats://nats.internal:4222", i.nats.URL(), "redis://redis.internal:6379", i.redis.URL())
	executor := i.execute("fn")
	session, err := i.api.Beta.Agents.Sessions.New(t.Context(), params(mixed, map[string]string{"dispatch": "nats"}), option.WithMaxRetries(0))
	require.NoError(t, err)
	other, err := i.api.Beta.Agents.Sessions.New(t.Context(), params(mixed, nil))
	require.NoError(t, err)
	i.awaitIdle(session.ID)
	got, err := i.api.Beta.Agents.Sessions.Get(t.Context(), other.ID)
	require.NoError(t, err)
	require.Equal(t, openai.AgentSessionStatusRequiresAction, got.Status, "not selected")
	require.Equal(t, 0, executor.Stop())
	require.Equal(t, 0, dispatcher.Stop())
}
