package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	good := filepath.Join("..", "..", "examples", "executor-exec", "functions.yaml")
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	require.NoError(t, os.WriteFile(bad, []byte("pool: a\nfunctions:\n  f: {exec: {comand: [x]}}\n"), 0o600))
	for name, tt := range map[string]struct {
		args []string
		code int
		out  string
		err  string
	}{
		"help":         {[]string{"--help"}, 0, "--metrics-listen", ""},
		"version":      {[]string{"--version"}, 0, "devel", ""},
		"no file":      {nil, 2, "", "<file>"},
		"unknown flag": {[]string{"--chek", good}, 2, "", "--chek"},
		"bad number":   {[]string{"--concurrency", "0", good}, 2, "", "--concurrency: must be more than zero"},
		"password":     {[]string{"--nats", "nats://u:hidden@h:1", good}, 2, "", "by the environment variable NATS_URL only"},
		"bad file":     {[]string{bad}, 2, "", bad + `:3:14: function "f": exec has no key "comand"; did you mean "command"?`},
		"check":        {[]string{"--check", good}, 0, "", ""},
		"check http":   {[]string{"--check", filepath.Join("..", "..", "examples", "executor-http", "functions.yaml")}, 0, "", ""},
		"check mcp":    {[]string{"--check", filepath.Join("..", "..", "examples", "executor-mcp", "functions.yaml")}, 0, "", ""},
		"nats setting": {[]string{"--nats-creds", "gone.creds", good}, 2, "", "gone.creds"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			require.Equal(t, tt.code, run(tt.args, &stdout, &stderr), stderr.String())
			require.Contains(t, stdout.String(), tt.out)
			require.Contains(t, stderr.String(), tt.err)
			require.NotContains(t, stderr.String(), "hidden")
		})
	}
}
