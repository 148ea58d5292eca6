package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
)

// raw serves a function with the call as it is.
func raw(t testing.TB, name string, f func(context.Context, executor.Call) (any, error), opts ...executor.Option) func(*executor.Executor) {
	return func(ex *executor.Executor) {
		require.NoError(t, executor.HandleRaw(ex, name, func(ctx context.Context, c executor.Call) (executor.Output, error) {
			out, err := f(ctx, c)
			if err != nil {
				return executor.Output{}, err
			}
			switch out := out.(type) {
			case nil:
				return executor.Output{}, nil
			case string:
				return executor.Text(out), nil
			case json.RawMessage:
				return executor.Text(string(out)), nil
			case executor.Content:
				return out.Output()
			}
			return executor.JSON(out)
		}, opts...))
	}
}

func text(s string) json.RawMessage { return json.RawMessage(quote(s)) }

// canonical spells a JSON string as encoding/json does.
func canonical(t *testing.T, b json.RawMessage) string {
	t.Helper()
	var v string
	require.NoError(t, json.Unmarshal(b, &v))
	return quote(v)
}

func TestHandlersGetTheBytesOfTheAPI(t *testing.T) {
	t.Parallel()
	deep := `{"a":` + strings.Repeat(`[`, 1000) + strings.Repeat(`]`, 1000) + `}`
	// Arguments as the API sends them → what the handler gets, or the error the model gets.
	cases := []struct{ sent, got, refused string }{
		{sent: `{"n":9007199254740993,"m":-0}`},
		{sent: `{"n":1e400}`},
		{sent: `{"a":1,"a":2,"b":{"c":1,"c":2}}`},
		{sent: `{"html":"<a&b>","u":"\u003c\u2028"}`},
		{sent: `{"z":1,"a":2,"m":3}`},
		{sent: deep},
		{sent: `{"nul":"\u0000"}`},
		{sent: `""`, got: `{}`},
		{sent: `null`, got: `{}`},
		{sent: ``, got: `{}`},
		{sent: `"{\"n\": 9007199254740993}"`, got: `{"n": 9007199254740993}`},
		{sent: `[]`, refused: "must be a JSON object, not an array"},
		{sent: `7`, refused: "not a number"},
		{sent: `"plain"`, refused: "does not hold valid JSON"},
	}
	var mu sync.Mutex
	seen := map[string]string{}
	s := start(t, options{handlers: raw(t, "f", func(_ context.Context, c executor.Call) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		seen[c.Key.Call] = string(c.Arguments)
		return "ok", nil
	})})
	var round []scripted
	for i, c := range cases {
		sc := scripted{Name: "f", CallID: fmt.Sprint("call_", i)}
		if c.sent != "" {
			sc.Arguments = []byte(c.sent)
		}
		round = append(round, sc)
	}
	id := s.session(script("ok", round), "f")
	s.idle(id)
	got := s.answers(id)
	for i, c := range cases {
		answer := got[fmt.Sprint("call_", i)]
		if c.refused != "" {
			require.Contains(t, string(answer.Error), c.refused)
			require.NotContains(t, seen, fmt.Sprint("call_", i))
			continue
		}
		if c.got == "" {
			c.got = c.sent
		}
		require.True(t, answer.Success, "%s: %s", c.sent, answer.Error)
		require.Equal(t, c.got, seen[fmt.Sprint("call_", i)])
	}
}

func TestOutputsArriveAsMeant(t *testing.T) {
	t.Parallel()
	content := []executor.Part{executor.TextPart("t"), executor.ImagePart("data:image/png;base64,AAAA")}
	cases := []struct {
		output any
		want   string
	}{
		{"", `""`},
		{"0", `"0"`},
		{false, `"false"`},
		{nil, `null`},
		{[]int{}, `"[]"`},
		{map[string]any{"a": []any{1, map[string]any{"b": nil}}}, `"{\"a\":[1,{\"b\":null}]}"`},
		{"a\x00b", `"a\u0000b"`},
		{"bad \xff utf8", `"bad ` + "\uFFFD" + ` utf8"`},
		{json.RawMessage(`{"lone":"\ud800","big":9007199254740993}`), ``},
		{executor.Content(content), `[{"type":"input_text","text":"t"},{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]`},
		{"<a&b> \u2028", `"<a&b> ` + "\u2028" + `"`},
	}
	s := start(t, options{handlers: raw(t, "f", func(_ context.Context, c executor.Call) (any, error) {
		var n int
		if _, err := fmt.Sscanf(c.Key.Call, "call_%d", &n); err != nil {
			return nil, err
		}
		return cases[n].output, nil
	})})
	var round []scripted
	for i := range cases {
		round = append(round, scripted{Name: "f", CallID: fmt.Sprint("call_", i)})
	}
	id := s.session(script("ok", round), "f")
	s.idle(id)
	got := s.answers(id)
	for i, c := range cases {
		answer := got[fmt.Sprint("call_", i)]
		require.True(t, answer.Success, "%v: %s", c.output, answer.Error)
		if c.want != "" {
			require.JSONEq(t, c.want, string(answer.Output), "%v", c.output)
		}
	}
	// What a handler encoded itself goes as its text, once, digits and all.
	require.Contains(t, string(got["call_8"].Output), `9007199254740993`)
}

func TestCallTooLargeForTheQueueIsAnswered(t *testing.T) {
	t.Parallel()
	s := start(t, options{handlers: raw(t, "f", func(context.Context, executor.Call) (any, error) { return "ok", nil })})
	big := func(n int) json.RawMessage { return fmt.Appendf(nil, `{"pad":"%s"}`, strings.Repeat("x", n)) }
	id := s.session(script("ok", []scripted{
		{Name: "f", CallID: "fits", Arguments: big(7 << 20)}, {Name: "f", CallID: "too_big", Arguments: big(8 << 20)},
	}), "f")
	s.idle(id)
	got := s.answers(id)
	require.True(t, got["fits"].Success, "%s", got["fits"].Error)
	require.Contains(t, string(got["too_big"].Error), "too large")
}

func TestCallListedTwiceRunsOnce(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	runs := 0
	s := start(t, options{handlers: raw(t, "f", func(context.Context, executor.Call) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		runs++
		return "ok", nil
	})})
	id := s.session(script("ok", []scripted{{Name: "f", CallID: "same"}, {Name: "f", CallID: "same"}}), "f")
	s.idle(id)
	s.settled(id)
	require.Equal(t, 1, runs)
	require.Zero(t, s.sim.Stats().DuplicateSubmissions)
}

func TestForgedOutcomesDoNoHarm(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := start(t, options{handlers: raw(t, "f", func(context.Context, executor.Call) (any, error) {
		<-release
		return "genuine", nil
	})})
	id := s.session(script("ok", []scripted{{Name: "f", CallID: "a"}}), "f")
	conn := s.connect(t.Context(), options{dispatcher: dispatcher.Config{Partitions: 4}}, "forger")
	defer conn.Close()
	var turn string
	require.Eventually(t, func() bool {
		recs, err := s.store.Session(t.Context(), id)
		if err == nil && len(recs) == 1 {
			turn = recs[0].Key.Turn
		}
		return turn != ""
	}, patience, 5*time.Millisecond)
	subject := fmt.Sprintf("fn.result.%%s.p%02d", call.Partition(id, 4))
	publish := func(token, body string) {
		_, err := conn.JetStream().Publish(t.Context(), fmt.Sprintf(subject, token), []byte(body))
		require.NoError(t, err)
	}
	head := fmt.Sprintf(`{"session_id":%q,"turn_id":%q,"call_id":"a"`, id, turn)
	publish("f", head+`,"nonce":"1-AAAAAAAAAAAAAAAAAAAAAA","success":true,"output":"forged"}`)
	publish("f", head+`,"success":true,"output":"no nonce"}`)
	publish("g", head+`,"nonce":"1-AAAAAAAAAAAAAAAAAAAAAA","success":true,"output":"another function"}`)
	publish("f", `not JSON`)
	publish("f", `{}`)
	publish("f", head+`,"nonce":"1-x","success":true,"output":{"an":"object"}}`)
	require.Eventually(t, func() bool {
		return s.count.of(dispatcher.EventForgedOutcome)+s.count.of(dispatcher.EventInvalidOutcome) == 6
	}, patience, 5*time.Millisecond)
	dead, err := conn.JetStream().Stream(t.Context(), "FN_DEAD")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		info, err := dead.Info(t.Context())
		return err == nil && info.State.Msgs == 6
	}, patience, 5*time.Millisecond, "the forged outcomes are kept for the operator")
	close(release)
	s.idle(id)
	require.Equal(t, `"genuine"`, string(s.answers(id)["a"].Output))
	s.settled(id)
	s.clean()
}
