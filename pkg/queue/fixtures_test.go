package queue

import (
	"bytes"
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

// update writes the generated fixtures: go test ./pkg/queue -run Fixture -update.
var update = flag.Bool("update", false, "write the generated files of protocol/fixtures")

const fixtures = "../../protocol/fixtures"

// index is a file of protocol/fixtures that lists cases.
type index[C any] struct {
	About string `json:"about"`
	Cases []C    `json:"cases"`
}

// wireMessage is a message of a case. Payload names a file that holds the exact bytes.
type wireMessage struct {
	Subject string            `json:"subject"`
	Headers map[string]string `json:"headers,omitempty"`
	Payload string            `json:"payload"`
}

// fixtureNonces makes the nonces of the fixtures.
var fixtureNonces = call.NewNonces([]byte("protocol fixtures"))

// golden compares a generated file of the fixtures, or writes it.
func golden(t *testing.T, name string, want []byte) {
	t.Helper()
	path := filepath.Join(fixtures, name)
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, want, 0o600))
		return
	}
	have, err := os.ReadFile(path)
	require.NoError(t, err, "run go test ./pkg/queue -run Fixture -update")
	if !bytes.Equal(want, have) {
		t.Errorf("%s differs from what the code makes; if that is a change of the protocol, see docs/protocol.md about versions, "+
			"then run go test ./pkg/queue -run Fixture -update", path)
	}
}

func goldenIndex[C any](t *testing.T, name, about string, cases []C) {
	t.Helper()
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	require.NoError(t, enc.Encode(index[C]{about, cases}))
	golden(t, name, text.Bytes())
}

// readIndex gives the cases of an index; none while the fixtures are being written.
func readIndex[C any](t *testing.T, name string) []C {
	t.Helper()
	if *update {
		return nil
	}
	var list index[C]
	dec := json.NewDecoder(bytes.NewReader(fixture(t, name)))
	dec.DisallowUnknownFields()
	require.NoError(t, dec.Decode(&list), name)
	require.NotEmpty(t, list.Cases, name)
	return list.Cases
}

func fixture(t *testing.T, name string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(fixtures, name))
	require.NoError(t, err)
	return body
}

func (m wireMessage) message(t *testing.T) *nats.Msg {
	t.Helper()
	msg := &nats.Msg{Subject: m.Subject, Data: fixture(t, m.Payload)}
	if len(m.Headers) > 0 {
		msg.Header = nats.Header{}
	}
	for name, value := range m.Headers {
		msg.Header[name] = []string{value}
	}
	return msg
}

// goldenMessage compares or writes the payload and gives the case's message.
func goldenMessage(t *testing.T, m *nats.Msg, payload string) wireMessage {
	t.Helper()
	golden(t, payload, m.Data)
	out := wireMessage{Subject: m.Subject, Payload: payload}
	if len(m.Header) > 0 {
		out.Headers = map[string]string{}
	}
	for name := range m.Header {
		out.Headers[name] = header(m.Header, name)
	}
	return out
}

type tokenCase struct {
	Name  string `json:"name"`
	Token string `json:"token"`
}

func TestFixtureTokens(t *testing.T) {
	t.Parallel()
	var cases []tokenCase
	for _, name := range []string{
		"get_customer", "get-weather", "get_weather", "get.weather", "get weather", "get customer", "a.b", "GET_WEATHER", "_", "-", "0",
		strings.Repeat("n", 64), strings.Repeat("n", 65), strings.Repeat("n", 128), strings.Repeat("n", 129), strings.Repeat("long ", 2048),
		strings.Repeat("é", 64), strings.Repeat("é", 65), "ns.tool", "a.b.c", ".", "..", "*", ">", "weather*", "a>b",
		" ", "get_weather ", "x\r\nPUB fn.call.y 0\r\n\r\n", "a\tb\x00c", "wetter_☀️", "😀", "天気", "é", "e\u0301",
		"=", "=AAAAAAAAAA", "=YS5i", "~", "~abc", `say "hi" \ <a&b>`, "$JS.API.STREAM.DELETE.FN_CALLS", "a/b", "a+b", "\u2028",
	} {
		cases = append(cases, tokenCase{name, call.Token(name)})
	}
	goldenIndex(t, "tokens.json", "The token of a function's name: the part of a subject that stands for it.", cases)
}

// Every file is named by an index, so that a fixture whose case is gone goes too.
func TestFixtureFilesAreNamed(t *testing.T) {
	t.Parallel()
	if *update {
		return
	}
	var indexes strings.Builder
	var files []string
	require.NoError(t, filepath.WalkDir(fixtures, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(fixtures, path)
		if err != nil {
			return err
		}
		if filepath.Dir(name) == "." {
			body, err := os.ReadFile(path)
			indexes.Write(body)
			return err
		}
		files = append(files, filepath.ToSlash(name))
		return nil
	}))
	require.NotEmpty(t, files)
	all := indexes.String()
	for _, name := range files {
		if !strings.Contains(all, `"`+name+`"`) {
			t.Errorf("no index names %s; delete it or add its case", name)
		}
	}
}
