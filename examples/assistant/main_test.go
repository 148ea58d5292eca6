package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor/executortest"
)

func TestFunctions(t *testing.T) {
	t.Parallel()
	for lang, want := range map[string]struct{ city, weather, nowhere, zero string }{
		"zh": {"北京", `{"city":"北京","weather":"晴","temp_c":22}`, `{"city":"x","weather":"暂无数据","temp_c":null}`, "除数不能为 0"},
		"en": {"Beijing", `{"city":"Beijing","weather":"sunny","temp_c":22}`, `{"city":"x","weather":"no data","temp_c":null}`, "division by zero"},
	} {
		t.Run(lang, func(t *testing.T) {
			t.Parallel()
			ex := executortest.New(t)
			require.NoError(t, register(ex, lang))
			text := func(name, arguments string) string {
				return executortest.Text(t, executortest.Call(t, ex, name, arguments))
			}
			require.Equal(t, want.weather, text("get_weather", `{"city":"`+want.city+`"}`))
			require.Equal(t, want.nowhere, text("get_weather", `{"city":"x"}`))
			for op, result := range map[string]string{"add": "7.5", "sub": "2.5", "mul": "12.5", "div": "2"} {
				require.Equal(t, `{"result":`+result+`}`, text("calculate", `{"a":5,"b":2.5,"op":"`+op+`"}`))
			}
			require.Regexp(t, `^{"time":"\d\d:\d\d"}$`, text("get_time", `{}`))

			o := executortest.Call(t, ex, "calculate", `{"a":1,"b":0,"op":"div"}`)
			require.Equal(t, call.Failure, o.Kind)
			require.Equal(t, want.zero, o.Error)
			o = executortest.Call(t, ex, "calculate", `{"a":1,"b":0,"op":"pow"}`)
			require.Equal(t, call.Failure, o.Kind)
			require.Contains(t, o.Error, "op")
		})
	}
	require.ErrorContains(t, register(executortest.New(t), "fr"), "use zh or en")
}

func TestLanguageOfALocale(t *testing.T) {
	t.Parallel()
	for locale, want := range map[string]string{"zh_CN.UTF-8": "zh", "en_US.UTF-8": "en", "C": "en", "": "en"} {
		require.Equal(t, want, preferred(locale))
	}
}
