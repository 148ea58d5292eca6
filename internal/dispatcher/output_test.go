package dispatcher

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

func TestAcceptableOutputs(t *testing.T) {
	t.Parallel()
	d := &Dispatcher{cfg: Config{MaxResultBytes: 1000}.withDefaults(), obs: noObserver{}}
	for name, tc := range map[string]struct{ output, want, refusal string }{
		"empty string":         {output: `""`},
		"zero in a string":     {output: `"0"`},
		"null":                 {output: `null`},
		"missing":              {output: ``},
		"object in a string":   {output: `"{\"a\":[1,{\"b\":2}]}"`},
		"NUL":                  {output: `"a\u0000b"`},
		"escapes":              {output: `"\\ud800 \" \n \/"`},
		"pair":                 {output: `"\ud83d\ude00 \uD83D\uDE00"`},
		"lone high surrogate":  {output: `"a\ud800b"`, want: `"a\ufffdb"`},
		"lone low surrogate":   {output: `"\udc00"`, want: `"\ufffd"`},
		"reversed pair":        {output: `"\ude00\ud83d"`, want: `"\ufffd\ufffd"`},
		"high before a pair":   {output: `"\ud83d\ud83d\ude00"`, want: `"\ufffd\ud83d\ude00"`},
		"high at the end":      {output: `"\ud83d"`, want: `"\ufffd"`},
		"invalid UTF-8":        {output: "\"a\xff\xc3b\"", want: "\"a\uFFFD\uFFFDb\""},
		"encoded surrogate":    {output: "\"\xed\xa0\x80\"", want: "\"\uFFFD\uFFFD\uFFFD\""},
		"text and image":       {output: `[{"type":"input_text","text":""},{"type":"input_image","image_url":"data:,"}]`},
		"lone in content":      {output: `[{"type":"input_text","text":"\ud800"}]`, want: `[{"type":"input_text","text":"\ufffd"}]`},
		"empty array":          {output: `[]`, refusal: "an empty content array"},
		"array of numbers":     {output: `[1]`, refusal: "not a content array"},
		"file part":            {output: `[{"type":"input_file"}]`, refusal: `part 0 has the type "input_file"`},
		"text part sans text":  {output: `[{"type":"input_text"}]`, refusal: "part 0 has no text"},
		"repeated member":      {output: `[{"type":"input_image","a":{"b":1,"b":2}}]`, refusal: `the member "b" appears twice`},
		"object":               {output: `{}`, refusal: "neither a string nor a content array"},
		"too large":            {output: `"` + strings.Repeat("x", 999) + `"`, refusal: "result too large (1001 bytes, limit 1000)"},
		"as large as it may":   {output: `"` + strings.Repeat("x", 998) + `"`},
		"same name, two parts": {output: `[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := d.acceptable("sess_1", call.Result{Success: true, Output: []byte(tc.output), Reason: call.ReasonHandler})
			if tc.refusal != "" {
				require.False(t, got.Success)
				require.Contains(t, got.Error, tc.refusal)
				return
			}
			if tc.want == "" {
				tc.want = tc.output
			}
			require.True(t, got.Success, got.Error)
			require.Equal(t, tc.want, string(got.Output))
		})
	}
}

func TestInvalidTextCanBeAnError(t *testing.T) {
	t.Parallel()
	d := &Dispatcher{cfg: Config{InvalidText: "error"}.withDefaults(), obs: noObserver{}}
	got := d.acceptable("sess_1", call.Result{Success: true, Output: []byte(`"\ud800"`)})
	require.False(t, got.Success)
	require.Equal(t, call.ReasonInvalidOutput, got.Reason)
}

func TestLongErrorTextIsAnError(t *testing.T) {
	t.Parallel()
	d := &Dispatcher{cfg: Config{MaxResultBytes: 10}.withDefaults(), obs: noObserver{}}
	got := d.acceptable("sess_1", call.Result{Error: "eleven byte"})
	require.Equal(t, "result too large (11 bytes, limit 10)", got.Error)
}

func TestFilesWhereTheyAreTaken(t *testing.T) {
	t.Parallel()
	d := &Dispatcher{cfg: Config{}.withDefaults(), obs: noObserver{}, files: func(session string) bool { return session == "run_1" }}
	file := call.Result{Success: true, Output: []byte(`[{"type":"input_file","file_id":"file_1"}]`)}
	require.Equal(t, file, d.acceptable("run_1", file))
	require.Equal(t, call.ReasonInvalidOutput, d.acceptable("sess_1", file).Reason)
}
