package config_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/config"
)

// Environment variables belong to the process, so nothing here runs in parallel
// with a test that sets them: each test clears what a developer's shell may hold.
func clearEnvironment(t *testing.T) {
	t.Helper()
	model, err := config.Model(config.Program{Name: "dispatcher", Stdout: &bytes.Buffer{}}, &config.Dispatcher{})
	require.NoError(t, err)
	for _, flag := range model.Flags {
		for _, name := range append(flag.Envs, flag.Tag.Get("secret")) {
			if value, ok := os.LookupEnv(name); ok {
				t.Setenv(name, value) // which brings it back
				require.NoError(t, os.Unsetenv(name))
			}
		}
	}
}

// parse reads the settings of a dispatcher from args and, when it is not empty, the
// text of a file, whose name is "settings.yaml" in errors.
func parse(t *testing.T, file string, args ...string) (config.Dispatcher, error) {
	t.Helper()
	if file != "" {
		t.Chdir(t.TempDir())
		require.NoError(t, os.WriteFile("settings.yaml", []byte(file), 0o600))
		args = append([]string{"--config=settings.yaml"}, args...)
	}
	var settings config.Dispatcher
	_, err := config.Parse(config.Program{Name: "dispatcher", Version: "v1.2.3", Stdout: &bytes.Buffer{}}, &settings, args)
	return settings, err
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}
