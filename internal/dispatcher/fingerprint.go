package dispatcher

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"io"

	"github.com/callfan/callfan/pkg/call"
)

// fingerprint identifies an outcome to the store: its message id and a hash of the
// result. The id alone would not do: it names the attempt and the kind, and two runs
// of one attempt may come to different results, of which the second must be told
// the first and not be taken for its repetition.
func fingerprint(id string, r call.Result) string {
	h := fnv.New64a()
	for _, part := range []string{r.Reason, "\x00", r.Error, "\x00"} {
		_, _ = io.WriteString(h, part)
	}
	_, _ = h.Write(r.Output)
	if r.Success {
		_, _ = h.Write([]byte{0})
	}
	return id + "." + base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, h.Sum64()))
}
