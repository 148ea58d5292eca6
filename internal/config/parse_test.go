package config_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/config"
)

func TestDefaults(t *testing.T) {
	clearEnvironment(t)
	got, err := parse(t, "")
	require.NoError(t, err)
	require.Equal(t, 64, got.Partitions)
	require.Equal(t, 10*time.Millisecond, got.Linger)
	require.Equal(t, config.Size(900<<10), got.BatchBytes)
	require.Equal(t, config.Size(4<<20-4<<10), got.MaxResultBytes)
	require.Equal(t, "127.0.0.1:8420", got.Listen)
	require.Equal(t, config.Address("nats://127.0.0.1:4222"), got.NATSURL)
	require.True(t, got.Stream)
	require.Equal(t, slog.LevelInfo, got.LogLevel)
}

func TestPrecedence(t *testing.T) {
	const file = "linger: 30ms\nsession: [a, b]\nstream: false\nlog-level: warn\n"
	clearEnvironment(t)
	got, err := parse(t, file)
	require.NoError(t, err)
	require.Equal(t, 30*time.Millisecond, got.Linger, "the file beats the default")
	require.Equal(t, []string{"a", "b"}, got.Session)
	require.False(t, got.Stream)
	require.Equal(t, slog.LevelWarn, got.LogLevel)

	t.Setenv("CALLFAN_LINGER", "20ms")
	t.Setenv("CALLFAN_SESSIONS", "c,d")
	t.Setenv("CALLFAN_STREAM", "true")
	got, err = parse(t, file)
	require.NoError(t, err)
	require.Equal(t, 20*time.Millisecond, got.Linger, "the environment beats the file")
	require.Equal(t, []string{"c", "d"}, got.Session, "lists are replaced")
	require.True(t, got.Stream)

	got, err = parse(t, file, "--linger=5ms", "--session=e", "--session=f,g", "--no-stream")
	require.NoError(t, err)
	require.Equal(t, 5*time.Millisecond, got.Linger, "the flag beats the environment")
	require.Equal(t, []string{"e", "f", "g"}, got.Session)
	require.False(t, got.Stream)
}

func TestFileNamedByTheEnvironment(t *testing.T) {
	clearEnvironment(t)
	t.Setenv("CALLFAN_CONFIG", writeFile(t, "partitions: 8\n"))
	got, err := parse(t, "")
	require.NoError(t, err)
	require.Equal(t, 8, got.Partitions)
}

func TestFileForms(t *testing.T) {
	clearEnvironment(t)
	got, err := parse(t, `# comment
nats: "nats://a:4222,nats://b:4222"
batch-bytes: 1MiB
batch-count: 16
session:
  - sess_1
  - "2"
select:
  - agent=agent_1,metadata.team=billing
  - metadata.env=prod
invalid-text: error
`)
	require.NoError(t, err)
	require.Equal(t, "nats://a:4222,nats://b:4222", got.NATSURL.Reveal())
	require.Equal(t, config.Size(1<<20), got.BatchBytes)
	require.Equal(t, 16, got.BatchCount)
	require.Equal(t, []string{"sess_1", "2"}, got.Session)
	require.Equal(t, []config.Selector{
		{AgentID: "agent_1", Metadata: map[string]string{"team": "billing"}},
		{Metadata: map[string]string{"env": "prod"}},
	}, got.Select)
	require.Equal(t, "error", got.InvalidText)

	got, err = parse(t, "# nothing but a comment\n")
	require.NoError(t, err)
	require.Equal(t, 64, got.Partitions)
}

func TestSelectOnTheCommandLine(t *testing.T) {
	clearEnvironment(t)
	got, err := parse(t, "", "--select=agent=A,metadata.k=v", "--select=metadata.x=y=z")
	require.NoError(t, err)
	require.Equal(t, []config.Selector{
		{AgentID: "A", Metadata: map[string]string{"k": "v"}},
		{Metadata: map[string]string{"x": "y=z"}},
	}, got.Select)
}

// TestErrors is a table to be read: what a user types, and what a user is told.
func TestErrors(t *testing.T) {
	tests := map[string]struct {
		file string
		args []string
		env  map[string]string
		want string
	}{
		"unknown key":        {file: "nats: x\n\npartitons: 8\n", want: `settings.yaml:3: unknown key "partitons"; did you mean "partitions"?`},
		"unknown, not close": {file: "zzzzzzzz: 8\n", want: `settings.yaml:1: unknown key "zzzzzzzz"`},
		"all unknown keys": {
			file: "lingr: 1s\nnat: x\n",
			want: "settings.yaml:1: unknown key \"lingr\"; did you mean \"linger\"?\nsettings.yaml:2: unknown key \"nat\"; did you mean \"nats\"?",
		},
		"key in the wrong spelling": {file: "batch_count: 1\n", want: `settings.yaml:1: unknown key "batch_count"; did you mean "batch-count"?`},
		"wrong type":                {file: "partitions: 8\nlinger: soon\n", want: `--linger: settings.yaml:2: expected duration but got "soon": time: invalid duration "soon"`},
		"unknown choice":            {file: "storage: disk\n", want: `--storage must be one of "file","memory" but got "disk"`},
		"list for a value":          {file: "linger: [1s, 2s]\n", want: `--linger: settings.yaml:1: takes one value, not a list`},
		"map for a value":           {file: "linger:\n  a: 1s\n", want: `settings.yaml:1: linger: want a single value or a list of values`},
		"no value":                  {file: "linger:\n", want: `settings.yaml:1: linger: the value is missing; remove the key to use the default`},
		"twice":                     {file: "linger: 1s\nlinger: 2s\n", want: `settings.yaml:2: mapping key "linger" already defined at [1:1]`},
		"not a map":                 {file: "- a\n", want: `settings.yaml:1: want settings of the form "key: value"`},
		"two documents":             {file: "linger: 1s\n---\nlinger: 2s\n", want: `settings.yaml:3: a second document; keep one`},
		"bad selector":              {file: "select: [\"team=a\"]\n", want: `--select: settings.yaml:1: "team=a": unknown condition "team"; want agent=ID or metadata.KEY=VALUE`},
		"no file":                   {args: []string{"--config=missing.yaml"}, want: `the configuration file cannot be read: open missing.yaml: no such file or directory`},

		"secret in the file": {
			file: "openai-api-key: sk-123\n",
			want: `settings.yaml:1: openai-api-key is a secret and does not belong in this file; set OPENAI_API_KEY, or name a file that holds it by openai-api-key-file`,
		},
		"secret as a flag":     {args: []string{"--redis-password=hunter2"}, want: `unknown flag --redis-password, did you mean "--redis-password-file"?`},
		"no secret file":       {args: []string{"--openai-api-key-file=sk-123"}, want: `--openai-api-key-file: there is no such file; it takes the name of a file that holds the secret`},
		"secret twice":         {env: map[string]string{"OPENAI_API_KEY": "sk-1", "OPENAI_API_KEY_FILE": "f"}, want: `both OPENAI_API_KEY and OPENAI_API_KEY_FILE are set; keep one`},
		"password in a flag":   {args: []string{"--redis=redis://u:hunter2@h:1"}, want: `--redis: the address holds a password; give such an address by the environment variable REDIS_URL only, or the password on its own (see --help)`},
		"password in the file": {file: "nats: nats://u:hunter2@h:1\n", want: `--nats: the address holds a password; give such an address by the environment variable NATS_URL only, or the password on its own (see --help)`},
		"token in the file":    {file: "nats: nats://hunter2@h:1\n", want: `--nats: the address holds a password; give such an address by the environment variable NATS_URL only, or the password on its own (see --help)`},
		"unreadable address":   {env: map[string]string{"REDIS_URL": "redis://u:hun%ter2@h:1"}, want: `--redis: the address cannot be read; want scheme://host:port, with special characters of a password percent-encoded`},

		"unknown flag":          {args: []string{"--partition=1"}, want: `unknown flag --partition, did you mean "--partitions"?`},
		"flag of a wrong type":  {args: []string{"--linger=1"}, want: `--linger: expected duration but got "1": time: missing unit in duration "1"`},
		"bad size":              {args: []string{"--batch-bytes=1MB"}, want: `--batch-bytes: "1MB" is no size; want something like 900KiB, 4MiB or 1GiB`},
		"negative":              {args: []string{"--linger=-1s"}, want: `--linger: must not be negative`},
		"zero means no default": {args: []string{"--batch-count=0"}, want: `--batch-count: must be more than zero`},
		"variable of a wrong type": {
			env: map[string]string{"CALLFAN_LINGER": "soon"}, file: "linger: 1s\n",
			want: `--linger: expected duration but got "soon": time: invalid duration "soon" (from envar CALLFAN_LINGER="soon")`,
		},
		"surplus argument": {args: []string{"run"}, want: `unexpected argument run`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			clearEnvironment(t)
			for key, value := range tt.env {
				t.Setenv(key, value)
			}
			_, err := parse(t, tt.file, tt.args...)
			require.EqualError(t, err, tt.want)
			require.NotContains(t, err.Error(), "hunter2")
			require.NotContains(t, err.Error(), "sk-1")
		})
	}
}

func TestHelpNamesEverySetting(t *testing.T) {
	clearEnvironment(t)
	program := config.Program{Name: "dispatcher", Description: "What it is.", Stdout: &bytes.Buffer{}}
	var out bytes.Buffer
	model, err := config.Model(program, &config.Dispatcher{})
	require.NoError(t, err)
	program.Stdout = &out
	_, err = config.Parse(program, &config.Dispatcher{}, []string{"--help"})
	require.ErrorIs(t, err, config.ErrDone)
	for _, flag := range model.Flags {
		name := "--" + flag.Name
		if flag.Tag.Negatable != "" {
			name = "--[no-]" + flag.Name
		}
		require.Contains(t, out.String(), name)
		require.NotEmpty(t, flag.Help, flag.Name)
		for _, variable := range flag.Envs {
			require.Contains(t, strings.Join(strings.Fields(out.String()), " "), "$"+variable)
		}
	}
}

func TestVersion(t *testing.T) {
	clearEnvironment(t)
	var out bytes.Buffer
	_, err := config.Parse(config.Program{Name: "dispatcher", Version: "v1.2.3", Stdout: &out}, &config.Dispatcher{}, []string{"--version"})
	require.ErrorIs(t, err, config.ErrDone)
	require.Equal(t, "v1.2.3\n", out.String())
}

func TestSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]config.Size{"0": 0, "17": 17, "3B": 3, "2KiB": 2048, "900KiB": 900 << 10, "4 MiB": 4 << 20, "2GiB": 2 << 30} {
		var got config.Size
		require.NoError(t, got.UnmarshalText([]byte(text)))
		require.Equal(t, want, got)
		var again config.Size
		require.NoError(t, again.UnmarshalText([]byte(got.String())))
		require.Equal(t, got, again)
	}
	for _, text := range []string{"", "KiB", "-1", "1.5MiB", "9999999999GiB", "1kb"} {
		require.Error(t, new(config.Size).UnmarshalText([]byte(text)), text)
	}
}
