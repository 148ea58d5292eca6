package simulator

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// FuzzCheckStrict compares the one-pass check with what encoding/json says about grammar, and looks for panics.
func FuzzCheckStrict(f *testing.F) {
	for _, seed := range []string{
		`{}`, `[]`, `"\ud83d\ude00"`, `"\ud83d"`, `{"a":1,"a":2}`, `{"a":{"a":[{"b":1},{"b":2}]}}`, `{"\u0061":1,"a":2}`,
		"\xef\xbb\xbf{}", "{}{}", "\"\xff\"", `{"a":"b","c":["d","d"]}`, `[{"x":","},{"x":"\\"}]`, `"\\ud800"`, `1e400`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		err := checkStrict(data)
		if err == nil {
			require.True(t, json.Valid(data) && utf8.Valid(data))
			var v any
			if json.Unmarshal(data, &v) == nil {
				clean, marshalErr := json.Marshal(v)
				require.NoError(t, marshalErr)
				require.NoError(t, checkStrict(clean), "what is strict stays strict when written again")
			}
		}
	})
}

func TestAppendStringAgreesWithEncodingJSON(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", "plain", `quote " and \ back`, "line\nreturn\rtab\t", "\x00\x1f\x7f", "北京 🦊 é", "<a&b>", "bad \xff utf8 \xc3", "\u2028",
	} {
		var back string
		require.NoError(t, json.Unmarshal(appendString(nil, s), &back))
		reference, err := json.Marshal(s)
		require.NoError(t, err)
		var want string
		require.NoError(t, json.Unmarshal(reference, &want))
		require.Equal(t, want, back)
	}
}

func TestScriptsAndOtherTexts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		ok  bool
		err string
	}{
		"hello":                      {},
		`{"a":1}`:                    {},
		`{`:                          {},
		`[1]`:                        {},
		`{"say":"x"}`:                {ok: true},
		` {"rounds":[],"say":""} `:   {ok: true},
		`{"rounds":[[]]}`:            {ok: true, err: "the script's round 1 has no calls"},
		`{"rounds":[[{"name":"f"}]`:  {ok: true, err: "the script cannot be used"},
		`{"rounds":1}`:               {ok: true, err: "the script cannot be used"},
		`{"rounds":[],"sya":""}`:     {ok: true, err: "unknown field"},
		`{"rounds":[],"say":""} and`: {ok: true, err: "the script has data after its end"},
		`{"rounds":[[{"name":"f","call_id":"c"}],[{"name":"f","call_id":"c"}]]}`: {ok: true, err: `call_id "c" in two rounds`},
		`{"rounds":[[{"name":"f","after_ms":-1}]]}`:                              {ok: true, err: "must not be negative"},
	} {
		_, ok, err := ParseScript(text)
		require.Equal(t, want.ok, ok, text)
		if want.err == "" {
			require.NoError(t, err, text)
		} else {
			require.ErrorContains(t, err, want.err, text)
		}
	}
}
