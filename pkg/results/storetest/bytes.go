package storetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
)

// oddIDs are texts that a key, a subject, a pattern or a script could trip over.
var oddIDs = []string{
	"{", "}", "{}", "}{", "{a}b", "a/b", "/", "a.b", "..", "*", ">", "a b", " ", "%", "%7B", ":", ":t:", "f", "n",
	"\x00", "a\x00b", "\r\n", "ünïcödé", "日本", "🙂", "\xff\xfe", "\"'\\", "-", "+inf", "(1", strings.Repeat("x", 1024),
}

func testBytes(t *testing.T, b backend) {
	b.run(t, map[string]func(*testing.T, results.Store){
		"ids of any bytes name different calls": func(t *testing.T, s results.Store) {
			var keys []call.Key
			for _, id := range oddIDs {
				keys = append(keys,
					call.Key{Session: id, Turn: turn, Call: "c"},
					call.Key{Session: session, Turn: id, Call: "c"},
					call.Key{Session: session, Turn: turn, Call: id})
			}
			for i, k := range keys {
				_, err := s.Claim(deadline(t), 1, []results.Claim{{Key: k, Function: fmt.Sprintf("f%d", i), State: call.Seen}})
				require.NoError(t, err, "%q", abridged(k.String()))
				c := results.Completion{Key: k, Result: success(fmt.Sprintf("%d", i)), OutcomeID: k.Session + k.Turn + k.Call}
				require.Equal(t, results.Saved, complete(t, s, 1, c).Verdict)
				require.Equal(t, results.Saved, complete(t, s, 1, c).Verdict, "a replay")
			}
			records, err := s.Get(deadline(t), keys)
			require.NoError(t, err)
			for i, r := range records {
				require.Equal(t, keys[i], r.Key)
				require.Equal(t, fmt.Sprintf("f%d", i), r.Function)
				require.Equal(t, keys[i].Session+keys[i].Turn+keys[i].Call, r.OutcomeID)
				require.Equal(t, success(fmt.Sprintf("%d", i)), *r.Result)
			}
			for _, id := range oddIDs {
				all, err := s.Session(deadline(t), id)
				require.NoError(t, err)
				require.Len(t, all, 1, "%q", abridged(id))
				require.Equal(t, call.Key{Session: id, Turn: turn, Call: "c"}, all[0].Key)
			}
			all, err := s.Session(deadline(t), session)
			require.NoError(t, err)
			require.Len(t, all, 2*len(oddIDs))
		},
		"functions of any bytes": func(t *testing.T, s results.Store) {
			for i, name := range append(oddIDs, "1.2.3", "") {
				k := key(fmt.Sprintf("call_%d", i))
				_, err := s.Claim(deadline(t), 1, []results.Claim{{Key: k, Function: name, State: call.Seen}})
				require.NoError(t, err)
				c := results.Completion{Key: k, Result: failure("no"), OutcomeID: "." + name}
				require.Equal(t, results.Saved, complete(t, s, 1, c).Verdict)
				r := get(t, s, k)
				require.Equal(t, name, r.Function)
				require.Equal(t, "."+name, r.OutcomeID)
			}
		},
		"results come back byte by byte": func(t *testing.T, s results.Store) {
			every := make([]byte, 256)
			for i := range every {
				every[i] = byte(i)
			}
			outputs := [][]byte{
				nil, every, []byte("null"), []byte(`""`), []byte(` { "b" : 1e400, "a":9007199254740993, "a":"<&>" } `),
				[]byte("\"\\ud800\""), []byte("\xff\xfe"), []byte("\x00"), bytes.Repeat([]byte("\r\n$5\r\n"), 100),
			}
			for i, output := range outputs {
				id := fmt.Sprintf("call_%d", i)
				claim(t, s, 1, id)
				want := call.Result{Success: i%2 == 0, Output: json.RawMessage(output), Error: string(output), Reason: "why"}
				require.Equal(t, results.Saved, complete(t, s, 1, completion(id, "o", want)).Verdict)
				require.Equal(t, want, *get(t, s, key(id)).Result)
				require.Equal(t, want, *claim(t, s, 1, id)[0].Result)
				require.Equal(t, want, *complete(t, s, 1, completion(id, "p", want)).Record.Result)
			}
		},
		"a result of 4 MiB": func(t *testing.T, s results.Store) {
			claim(t, s, 1, "call_1")
			output := bytes.Repeat([]byte("0123456789abcdef"), 4<<20/16)
			require.Equal(t, results.Saved, complete(t, s, 1, completion("call_1", "o1", call.Result{Success: true, Output: output})).Verdict)
			require.True(t, bytes.Equal(output, get(t, s, key("call_1")).Result.Output))
			all, err := s.Session(deadline(t), session)
			require.NoError(t, err)
			require.True(t, bytes.Equal(output, all[0].Result.Output))
		},
		"does not keep the caller's memory": func(t *testing.T, s results.Store) {
			claim(t, s, 1, "call_1")
			output := []byte(`"sunny"`)
			require.Equal(t, results.Saved, complete(t, s, 1, completion("call_1", "o1", call.Result{Success: true, Output: output})).Verdict)
			copy(output, `"rainy"`)
			require.JSONEq(t, `"sunny"`, string(get(t, s, key("call_1")).Result.Output))
		},
	})
}
