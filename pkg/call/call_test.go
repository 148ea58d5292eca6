package call_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/callfan/callfan/pkg/call"
)

func TestKeyTravelsAsText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.StringN(1, 40, -1)
		k := call.Key{Session: id.Draw(t, "session"), Turn: id.Draw(t, "turn"), Call: id.Draw(t, "call")}
		back, err := call.ParseKey(k.String())
		require.NoError(t, err)
		require.Equal(t, k, back)
		require.NotContains(t, k.String(), "\n")
		require.Regexp(t, `^[A-Za-z0-9_-]{22}$`, k.Hash())
	})
}

func TestKeyHashDependsOnWhereOneIDEnds(t *testing.T) {
	t.Parallel()
	a := call.Key{Session: "ab", Turn: "c", Call: "d"}
	b := call.Key{Session: "a", Turn: "bc", Call: "d"}
	require.NotEqual(t, a.Hash(), b.Hash())
}

func TestParseKeyNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "a", "a/b", "a/b/c/d", "a//c", "%zz/b/c"} {
		_, err := call.ParseKey(s)
		require.ErrorIs(t, err, call.ErrInvalidKey, s)
	}
}

func TestTokenIsInjectiveAndOneSubjectToken(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	names := []string{
		"get_weather", "a.b", "a_b", "a b", "a%20b", "*", ">", "a>b", "x\r\ny", "x\ny", "😀", "=", "~", "=YS5i", "~a",
		strings.Repeat("n", 64), strings.Repeat("n", 65), strings.Repeat("n", 128), strings.Repeat("n", 129),
		strings.Repeat("n", 10_000), "\x00", "get_weather ", "GET_WEATHER", "\xff",
	}
	for _, name := range names {
		token := call.Token(name)
		require.Regexp(t, `^[=~]?[A-Za-z0-9_-]{1,180}$`, token, "%q", name)
		require.Empty(t, seen[token], "%q and %q share a token", name, seen[token])
		seen[token] = name
	}
	require.Equal(t, "get_weather", call.Token("get_weather"))
	require.Empty(t, call.Token(""))
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		require.Equal(t, a == b, call.Token(a) == call.Token(b))
	})
}

func TestNonceBelongsToOneAttempt(t *testing.T) {
	t.Parallel()
	n := call.NewNonces([]byte("0123456789abcdef"))
	k := call.Key{Session: "s", Turn: "t", Call: "c"}
	nonce := n.For(k, "f", 2)
	attempt, ok := n.Check(k, "f", nonce)
	require.True(t, ok)
	require.Equal(t, 2, attempt)
	for name, check := range map[string]func() (int, bool){
		"another function": func() (int, bool) { return n.Check(k, "g", nonce) },
		"another call":     func() (int, bool) { return n.Check(call.Key{Session: "s", Turn: "t", Call: "d"}, "f", nonce) },
		"another secret": func() (int, bool) {
			return call.NewNonces([]byte("another secret!!")).Check(k, "f", nonce)
		},
		"another attempt": func() (int, bool) { return n.Check(k, "f", "3"+nonce[1:]) },
		"no attempt":      func() (int, bool) { return n.Check(k, "f", "x-abc") },
		"attempt zero":    func() (int, bool) { return n.Check(k, "f", n.For(k, "f", 0)) },
		"empty":           func() (int, bool) { return n.Check(k, "f", "") },
	} {
		_, ok := check()
		require.False(t, ok, name)
	}
}

func TestTransitionsAreConsistent(t *testing.T) {
	t.Parallel()
	table := call.Transitions()
	reachable := map[call.State]bool{call.Absent: true}
	for from, tos := range table {
		require.False(t, from.Final(), "%q is final and goes on", from)
		for _, to := range tos {
			reachable[to] = true
			require.Contains(t, to.From(), from)
		}
	}
	for _, s := range call.States() {
		require.True(t, reachable[s], "%q cannot be reached", s)
		require.True(t, s.Final() || len(table[s]) > 0, "%q is not final and leads nowhere", s)
	}
	// A saved result is never replaced: no way leads from one result to another.
	require.NotContains(t, table[call.Succeeded], call.Failed)
	require.NotContains(t, table[call.Failed], call.Succeeded)
}

func TestAnswerKeepsTheBytesOfTheOutput(t *testing.T) {
	t.Parallel()
	k := call.Key{Session: "s", Turn: `t"1`, Call: "c<1>"}
	for _, output := range []string{`""`, `"0"`, `"<a&b> \u0000 \u003c"`, `[{"type":"input_text","text":"x"}]`, `null`} {
		event := call.Answer{Key: k, Result: call.Result{Success: true, Output: []byte(output)}}.AppendEvent(nil)
		var got struct {
			Type    string          `json:"type"`
			Turn    string          `json:"turn_id"`
			Call    string          `json:"call_id"`
			Success bool            `json:"success"`
			Output  json.RawMessage `json:"output"`
		}
		require.NoError(t, json.Unmarshal(event, &got))
		require.Equal(t, output, string(got.Output))
		require.Equal(t, []string{"agent.session.input.tool_result", k.Turn, k.Call}, []string{got.Type, got.Turn, got.Call})
		require.True(t, got.Success)
	}
	event := call.Answer{Key: k, Result: call.Result{Error: "not \"found\""}}.AppendEvent([]byte("["))
	require.True(t, strings.HasPrefix(string(event), `[{"type"`))
	require.Contains(t, string(event), `"success":false,"error":"not \"found\""`)
	require.NotContains(t, string(event), "output")
}

func TestFunctionValidate(t *testing.T) {
	t.Parallel()
	require.NoError(t, call.Function{Name: "any name at all, even ünïcode.*"}.Validate())
	for want, f := range map[string]call.Function{
		"the name is empty":     {},
		"must not be negative":  {Name: "f", Policy: call.Policy{Timeout: -1}},
		"use none, idempotent":  {Name: "f", Policy: call.Policy{Effects: "maybe"}},
		"not a JSON object":     {Name: "f", Parameters: []byte(`[]`)},
		`root type "string"`:    {Name: "f", Parameters: []byte(`{"type":"string"}`)},
		"parameters is not a J": {Name: "f", Parameters: []byte(`{`)},
	} {
		err := f.Validate()
		require.ErrorIs(t, err, call.ErrInvalidFunction)
		require.ErrorContains(t, err, want)
	}
}

func TestDurationsAreText(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(call.Policy{Timeout: call.Duration(call.DefaultTimeout)})
	require.NoError(t, err)
	require.JSONEq(t, `{"timeout":"30s"}`, string(b))
	var p call.Policy
	require.NoError(t, json.Unmarshal([]byte(`{"timeout":"1m30s","effects":"none"}`), &p))
	require.Equal(t, "1m30s", p.Timeout.String())
	require.Error(t, json.Unmarshal([]byte(`{"timeout":30}`), &p))
}
