// Package samples holds the test of the published code samples: each runs with the official SDK of its language against
// `callfan simulate`, unchanged but for the base URL.
package samples

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/programtest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	programtest.Remove()
	os.Exit(code)
}

// published are the SHA-256 sums of the samples as OpenAI and others published them, without the indentation that the
// code around them adds: who "corrects" a sample here no longer tests what people copy.
var published = map[string]string{
	"get_customer.json":             "4a14ba35800003d6bff57d95eff8397014655208721ad98082a5d1ec279177af",
	"required_action.json":          "13644d7dae1e410646c1616ca4d113b700be3d04fd65210b31bc48d545a8b9a0",
	"go/returnresult.go":            "a4120fc61226f27c1c84b6e6df65ffddf4e2ca9030c1ac4b1cce4cf101687135",
	"java/ReturnResult.java":        "a54b7dd4372fad958c1496e5c0dc738a28818f792f6e72a3ede58698a1900f7b",
	"javascript/return_result.mjs":  "b1a9ab3c68dbee0fdd363d4e6830a60270680a7fd228d41eb7aa7072880fb220",
	"python/return_result.py":       "40d6431cc436cefd6fa297bba932faa6b07cc7a4c9d4a6dbc6a0ed74807d615e",
	"python/assistant.py":           "99f8fb246a2c383493f51823364e7fcd3aa9e182d2e7cf13ec00c425f31008b0",
	"python/assistant_functions.py": "2ddc9c2dc24d38318d89eb60f0cc62d2b3c170df84e4e53f9ce6c5623833e8d1",
	"python/assistant_tools.py":     "b9fa01570951bd5f386411b10648d2b938e1d108242eca0a815877091aa9005d",
	"python/weather_functions.py":   "b8f2cd969839e8cb13ac837e324174b0afa42ac9c94ab031e797b8daacdfa0a4",
	"python/weather_loop.py":        "0004ad3b652c5ad6cf455386e0421389b5a74b4253db9dd81f54a6fefc1bf20f",
	"python/weather_once.py":        "ef7a98fc567d85083f58f16581455c8c8b646f6154fbe55d9dec7dd258169650",
	"python/weather_tools.py":       "7f049a50e539bcc558156351e22b7eea3ea0a3965c2c73487d6a781e5cd43ddd",
}

func TestSamplesAreVerbatim(t *testing.T) {
	t.Parallel()
	for path, want := range published {
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		sum := sha256.Sum256([]byte(sample(string(raw))))
		require.Equal(t, want, hex.EncodeToString(sum[:]), "%s does not hold the sample as it was published", path)
	}
}

var marked = regexp.MustCompile(`(?ms)^([ \t]*)(?://|#) sample: [^\n]*\n(.*?)^[ \t]*(?://|#) end of sample$`)

// sample cuts the sample out of a file: what is between its two marks, or all of a file without marks.
func sample(text string) string {
	match := marked.FindStringSubmatch(text)
	if match == nil {
		return text
	}
	var plain strings.Builder
	for line := range strings.Lines(match[2]) {
		plain.WriteString(strings.TrimPrefix(line, match[1]))
	}
	return plain.String()
}

var simulatorURL = regexp.MustCompile(`listens on (http://\S+)/v1`)

// simulate starts `callfan simulate` on a free port and returns its URL, without the API's path.
func simulate(t *testing.T) string {
	t.Helper()
	p := programtest.Start(t, programtest.Command{
		Path: programtest.Build(t, "cmd/callfan"), Args: []string{"simulate", "--listen", "127.0.0.1:0"},
	})
	p.Await(p.Stdout, "OPENAI_API_KEY=any\n")
	match := simulatorURL.FindStringSubmatch(p.Stdout.String())
	require.NotNil(t, match, p.Stdout)
	return match[1]
}

// run runs a program of the samples to its end and returns what it printed.
func run(t *testing.T, url string, c programtest.Command) string {
	t.Helper()
	c.Env = append(c.Env, "OPENAI_BASE_URL="+url+"/v1", "OPENAI_API_KEY=any")
	code, p := programtest.Run(t, c)
	require.Zero(t, code, "%s: %s", c.Path, p.Stderr)
	return p.Stdout.String()
}

// get returns what the simulator answers to the person at its controls.
func get(t *testing.T, url string) []byte {
	t.Helper()
	response, err := http.Get(url) //nolint:gosec,noctx // a test on loopback
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "%s: %s", url, body)
	return body
}

func client(url string) openai.Client {
	return openai.NewClient(option.WithBaseURL(url+"/v1"), option.WithAPIKey("any"), option.WithMaxRetries(0))
}
