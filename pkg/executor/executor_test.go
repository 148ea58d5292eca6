package executor

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

func nothing(context.Context, Call) (Output, error) { return Output{}, nil }

func TestInvalidConfigIsRefused(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{
		"no pool":        {},
		"bad pool":       {Pool: "my pool"},
		"concurrency":    {Pool: "p", Concurrency: -1},
		"long id":        {Pool: "p", ID: strings.Repeat("x", 129)},
		"id with a line": {Pool: "p", ID: "a\nb"},
		"id not UTF-8":   {Pool: "p", ID: "a\xff"},
		"nil middleware": {Pool: "p", Middleware: []Middleware{nil}},
	} {
		_, err := New(cfg)
		require.ErrorIs(t, err, ErrInvalidConfig, name)
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	ex, err := New(Config{Pool: "p"})
	require.NoError(t, err)
	require.Equal(t, 32, ex.cfg.Concurrency)
	require.Equal(t, 25*time.Second, ex.cfg.StopTimeout)
	require.NotEmpty(t, ex.cfg.ID)
	require.True(t, printable(ex.cfg.ID))
	require.Len(t, defaultID(strings.Repeat("h", 200)), maxID)
	require.Regexp(t, `^h_st_-\d+-[0-9a-f]{4}$`, defaultID("hßst\x00"))
	ex, err = New(Config{Pool: "p", StopTimeout: -1})
	require.NoError(t, err)
	require.Zero(t, ex.cfg.StopTimeout)
}

func TestInvalidFunctionsAreRefused(t *testing.T) {
	t.Parallel()
	ex, err := New(Config{Pool: "p"})
	require.NoError(t, err)
	typed := func(context.Context, struct{}) (string, error) { return "", nil }
	require.ErrorIs(t, HandleRaw(ex, "", nothing), call.ErrInvalidFunction)
	require.ErrorIs(t, HandleRaw(ex, "f", nil), ErrInvalidOption)
	require.ErrorIs(t, Handle[struct{}, string](ex, "f", nil), ErrInvalidOption)
	require.ErrorIs(t, HandleRaw(ex, "f", nothing, WithTimeout(0)), ErrInvalidOption)
	require.ErrorIs(t, HandleRaw(ex, "f", nothing, WithQueueTimeout(-1)), ErrInvalidOption)
	require.ErrorIs(t, HandleRaw(ex, "f", nothing, WithEffects("some")), ErrInvalidOption)
	require.ErrorIs(t, HandleRaw(ex, "f", nothing, WithParameters(json.RawMessage(`{`))), ErrInvalidOption)
	require.ErrorIs(t, HandleRaw(ex, "f", nothing, WithParameters(json.RawMessage(`{"type":"array"}`))), call.ErrInvalidFunction)
	require.ErrorIs(t, Handle(ex, "f", typed, WithParameters(json.RawMessage(`{"type":5}`))), ErrInvalidOption)
	require.ErrorIs(t, Handle(ex, "f", func(context.Context, []string) (string, error) { return "", nil }), ErrInvalidOption)
	require.ErrorIs(t, Handle(ex, "f", func(context.Context, struct{ C chan int }) (string, error) { return "", nil }), ErrInvalidOption)
	require.Empty(t, ex.Functions())
	require.NoError(t, HandleRaw(ex, "wetter, heute *>\r\n🌧", nothing))
	require.NoError(t, HandleRaw(ex, "f", nothing))
	require.ErrorIs(t, Handle(ex, "f", typed), ErrDuplicateFunction)
	require.Len(t, ex.Functions(), 2)
}

func TestMiddlewareOrder(t *testing.T) {
	t.Parallel()
	var order []string
	named := func(name string) Middleware {
		return func(next Handler) Handler {
			return func(ctx context.Context, c Call) (Output, error) {
				order = append(order, name)
				if name == "inner" && string(c.Arguments) == `{"stop":true}` {
					return Text("stopped"), nil
				}
				return next(ctx, c)
			}
		}
	}
	ex, err := New(Config{Pool: "p", Middleware: []Middleware{named("outer"), named("inner")}})
	require.NoError(t, err)
	require.NoError(t, HandleRaw(ex, "f", func(context.Context, Call) (Output, error) { order = append(order, "handler"); return Output{}, nil }))
	ex.Invoke(t.Context(), dispatch("f", 1))
	require.Equal(t, []string{"outer", "inner", "handler"}, order)
	d := dispatch("f", 1)
	d.Arguments = json.RawMessage(`{"stop":true}`)
	require.Equal(t, "stopped", textOf(t, ex.Invoke(t.Context(), d)))
}
