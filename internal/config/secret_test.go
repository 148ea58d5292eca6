package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/config"
)

func TestSecretSources(t *testing.T) {
	clearEnvironment(t)
	fromFile := writeFile(t, " sk-of-the-file \n")
	other := writeFile(t, "sk-of-the-flag")

	got, err := parse(t, "openai-api-key-file: "+fromFile+"\n")
	require.NoError(t, err)
	require.Equal(t, "sk-of-the-file", got.OpenAIAPIKey.Reveal())

	t.Setenv("OPENAI_API_KEY", "sk-of-the-environment")
	got, err = parse(t, "openai-api-key-file: "+fromFile+"\n")
	require.NoError(t, err)
	require.Equal(t, "sk-of-the-environment", got.OpenAIAPIKey.Reveal())

	got, err = parse(t, "", "--openai-api-key-file="+other)
	require.NoError(t, err)
	require.Equal(t, "sk-of-the-flag", got.OpenAIAPIKey.Reveal())

	_, err = parse(t, "", "--openai-api-key-file="+writeFile(t, " \n"))
	require.ErrorContains(t, err, "is empty")
}

func TestSecretDoesNotShowItself(t *testing.T) {
	clearEnvironment(t)
	t.Setenv("OPENAI_API_KEY", "hunter2")
	t.Setenv("REDIS_URL", "redis://user:hunter2@host:6379/0")
	settings, err := parse(t, "")
	require.NoError(t, err)
	require.Equal(t, "redis://user:hunter2@host:6379/0", settings.RedisURL.Reveal(), "the environment may hold a password")
	require.NotContains(t, fmt.Sprintf("%v %+v", settings, settings), "hunter2")
	require.NotContains(t, fmt.Sprintf("%v %#v %s", settings.OpenAIAPIKey, settings.OpenAIAPIKey, settings.RedisURL), "hunter2")
	require.Equal(t, "redis://xxxxx@host:6379/0", settings.RedisURL.String())

	var out bytes.Buffer
	config.Logging{LogFormat: "json"}.Logger(&out).Info("settings", "key", settings.OpenAIAPIKey, "url", settings.RedisURL)
	require.NotContains(t, out.String(), "hunter2")
	require.True(t, json.Valid(out.Bytes()))
}
