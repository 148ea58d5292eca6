package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor/executortest"
)

func TestFunctions(t *testing.T) {
	t.Parallel()
	ex := executortest.New(t)
	require.NoError(t, register(ex))
	text := func(name, arguments string) string {
		return executortest.Text(t, executortest.Call(t, ex, name, arguments))
	}
	require.Equal(t, `{"city":"北京","temperature":22,"sky":"晴"}`, text("get_weather", `{"city":"北京"}`))
	require.Equal(t, "3", text("calculate", `{"a":25,"b":22,"op":"sub"}`))
	require.Equal(t, `{"found":true,"customer":{"name":"Example Customer","plan":"pro"}}`, text("get_customer", `{"customer_id":"123"}`))
	require.Equal(t, `{"found":false,"customer":null}`, text("get_customer", `{"customer_id":"456"}`))
	_, err := time.Parse(time.RFC3339, text("get_time", `{}`))
	require.NoError(t, err)

	o := executortest.Call(t, ex, "calculate", `{"a":1,"b":0,"op":"div"}`)
	require.Equal(t, call.Failure, o.Kind)
	require.Equal(t, "division by zero", o.Error)
}
