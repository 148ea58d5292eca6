package simulator_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/simulator"
)

// raw sends a request as it is and returns status, body and headers.
func (b *bench) raw(t *testing.T, method, path, body string, header map[string]string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(testContext(t), method, b.url+path, strings.NewReader(body))
	require.NoError(t, err)
	for key, value := range map[string]string{
		"Authorization": "Bearer k", "OpenAI-Beta": "agents=v1", "Content-Type": "application/json",
	} {
		req.Header.Set(key, value)
	}
	for key, value := range header {
		if value == "" {
			req.Header.Del(key)
			continue
		}
		req.Header.Set(key, value)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(resp.Header.Get("X-Request-Id"), "req_"), "every answer names its request")
	return resp.StatusCode, string(content), resp.Header
}

func TestBetaHeaderIsCheckedBeforeTheKey(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{APIKeys: []string{"right"}})
	status, body, _ := b.raw(t, http.MethodGet, "/v1/agents/sessions", "", map[string]string{"OpenAI-Beta": "", "Authorization": ""})
	require.Equal(t, 400, status)
	require.Contains(t, body, `"code":"invalid_beta"`)
	for _, key := range []string{"", "Bearer wrong", "Basic right"} {
		status, body, _ = b.raw(t, http.MethodGet, "/v1/agents/sessions", "", map[string]string{"Authorization": key})
		require.Equal(t, 401, status)
		require.Contains(t, body, `"type":"invalid_request_error","code":null`)
		require.Contains(t, body, `"param":null`)
	}
	status, body, _ = b.raw(t, http.MethodGet, "/agents/sessions", "", map[string]string{"Authorization": "Bearer right"})
	require.Equal(t, 200, status)
	require.JSONEq(t, `{"object":"list","data":[],"first_id":null,"last_id":null,"has_more":false}`, body)
	status, body, _ = b.raw(t, http.MethodGet, "/v1/nothing", "", nil)
	require.Equal(t, 404, status)
	require.Contains(t, body, `{"error":{"type":"invalid_request_error"`)
}

func TestRequestBodiesAreStrict(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{})
	id := b.create(t, "hello")
	path := "/v1/agents/sessions/" + id + "/events"
	message := func(text string) string {
		return `{"events":[{"type":"agent.session.input.message","input":[{"role":"user","content":[{"type":"input_text","text":` + text + `}]}]}]}`
	}
	for name, body := range map[string]string{
		"byte order mark":     "\xef\xbb\xbf" + message(`"a"`),
		"trailing data":       message(`"a"`) + "{}",
		"lone high surrogate": message(`"\ud800"`),
		"lone low surrogate":  message(`"\udc00"`),
		"mispaired surrogate": message(`"\ud800\u0041"`),
		"high then text":      message(`"\ud83dx"`),
		"invalid UTF-8":       message("\"\xff\""),
		"duplicate key":       `{"events":[],"events":[]}`,
		"deep duplicate key":  `{"events":[],"x":[{"y":{"a":1,"b":2,"a":3}}]}`,
		"escaped duplicate":   `{"events":[],"x":{"a":1,"\u0061":2}}`,
		"null body":           `null`,
		"empty body":          ``,
		"null events":         `{"events":null}`,
		"array":               `[]`,
		"truncated":           `{"events":[`,
		"unknown event":       `{"events":[{"type":"x"}]}`,
		"wrong type":          `{"events":{}}`,
	} {
		status, answer, _ := b.raw(t, http.MethodPost, path, body, nil)
		require.Equal(t, 400, status, "%s: %s", name, answer)
		require.Contains(t, answer, `"code":"invalid_request_error"`, name)
	}
	for name, body := range map[string]string{
		"no events":       `{"events":[]}`,
		"surrogate pair":  message(`"\ud83d\ude00"`),
		"U+0000":          message(`"a\u0000b"`),
		"escaped u":       message(`"\\ud800"`),
		"same key apart":  `{"events":[],"x":[{"a":1},{"a":2},{"a":{"a":1}}]}`,
		"many other keys": `{"events":[],"x":{` + manyKeys(200) + `}}`,
		"white space":     " {\n\"events\" : [ ] }\t",
	} {
		status, answer, _ := b.raw(t, http.MethodPost, path, body, nil)
		require.Equal(t, 202, status, "%s: %s", name, answer)
		require.Empty(t, answer)
	}
	status, _, _ := b.raw(t, http.MethodPost, path, `{"events":[]}`, map[string]string{"Content-Type": "text/plain"})
	require.Equal(t, 400, status)
	status, _, _ = b.raw(t, http.MethodPost, path, `{"events":[]}`, map[string]string{"Content-Type": "application/x+json; charset=utf-8"})
	require.Equal(t, 202, status)
	status, answer, _ := b.raw(t, http.MethodPost, "/v1/agents/sessions/"+id, "", nil)
	require.Equal(t, 400, status)
	require.Contains(t, answer, "At least one update field is required")
	status, answer, _ = b.raw(t, http.MethodPost, path, `{"events":[],"x":{`+manyKeys(200)+`,"k3":1}}`, nil)
	require.Equal(t, 400, status, answer)
}

func manyKeys(n int) string {
	keys := make([]string, n)
	for i := range keys {
		key, _ := json.Marshal("k" + strings.Repeat("x", i%3) + string(rune('0'+i%10)) + strings.Repeat("y", i))
		keys[i] = string(key) + ":1"
	}
	keys[0] = `"k3":1`
	return strings.Join(keys, ",")
}

func TestCreationRules(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{})
	tool := func(name, parameters string) string {
		quoted, _ := json.Marshal(name)
		return `{"type":"function","name":` + string(quoted) + `,"description":"d","parameters":` + parameters + `}`
	}
	create := func(tools, rest string) string {
		return `{"agent":{"model":"m","tools":[` + tools + `]},"environment":{"type":"none"}` + rest + `}`
	}
	object := `{"type":"object"}`
	for name, tc := range map[string]struct{ body, message string }{
		"no model":         {`{"environment":{"type":"none"},"input":"x"}`, "agent.model is required when agent_id is omitted"},
		"no environment":   {`{"agent":{"model":"m"},"input":"x"}`, "environment is required."},
		"no input":         {create("", ""), "input is required for this environment."},
		"duplicate names":  {create(tool("f", object)+","+tool("f", object), `,"input":"x"`), "duplicate function tool name: f"},
		"no object schema": {create(tool("f", `{"type":"string"}`), `,"input":"x"`), "agent.tools[0].parameters must be a JSON Schema of type object."},
		"unknown function": {create(tool("f", object), `,"input":"{\"rounds\":[[{\"name\":\"g h\"}]],\"say\":\"\"}"`), `The script calls "g h", which is no function in agent.tools.`},
		"stream options":   {create("", `,"input":"x","stream_options":{}`), "stream_options is only allowed when stream is true."},
		"bad review":       {create("", `,"input":"x","review":"maybe"`), "review must be none or auto_review."},
		"metadata":         {create("", `,"input":"x","metadata":{"a":1}`), "metadata must be an object of strings."},
	} {
		status, answer, _ := b.raw(t, http.MethodPost, "/v1/agents/sessions", tc.body, nil)
		require.Equal(t, 400, status, name)
		var envelope struct {
			Error struct{ Type, Code, Message string }
		}
		require.NoError(t, json.Unmarshal([]byte(answer), &envelope))
		require.Equal(t, tc.message, envelope.Error.Message, name)
		require.Equal(t, "invalid_request_error", envelope.Error.Code, name)
	}

	names := []string{"", strings.Repeat("x", 65), "a b", "a.b", "*", ">", "a\r\nb", "🦊", "A", "a"}
	var tools, calls []string
	for _, name := range names {
		quoted, err := json.Marshal(name)
		require.NoError(t, err)
		tools = append(tools, tool(name, object))
		calls = append(calls, `{"name":`+string(quoted)+`,"arguments":{}}`)
	}
	input, err := json.Marshal(`{"rounds":[[` + strings.Join(calls, ",") + `]],"say":""}`)
	require.NoError(t, err)
	status, answer, _ := b.raw(t, http.MethodPost, "/v1/agents/sessions", create(strings.Join(tools, ","), `,"input":`+string(input)), nil)
	require.Equal(t, 201, status, answer)
	var made struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(answer), &made))
	ses := b.get(t, made.ID)
	require.Len(t, ses.RequiredActions, len(names))
	for i, name := range names {
		require.Equal(t, name, ses.RequiredActions[i].Name)
		require.Equal(t, name, ses.Agent.Tools[i].Name)
	}
}

func TestControlEndpoints(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{})
	status, body, _ := b.raw(t, http.MethodPut, "/_sim/faults", `{"rules":[{"kind":"rate_limited","endpoint":"session_list","next":1,"retry_after":"7"}]}`, nil)
	require.Equal(t, 200, status, body)
	status, body, header := b.raw(t, http.MethodGet, "/v1/agents/sessions", "", nil)
	require.Equal(t, 429, status, body)
	require.Equal(t, "7", header.Get("Retry-After"))
	_, body, _ = b.raw(t, http.MethodGet, "/_sim/faults", "", nil)
	require.JSONEq(t, `{"rules":[{"kind":"rate_limited","endpoint":"session_list","retry_after":"7"}]}`, body)
	status, body, _ = b.raw(t, http.MethodPut, "/_sim/faults", `{"rules":[{"kind":"flood"}]}`, nil)
	require.Equal(t, 400, status)
	require.Contains(t, body, `Kind is \"flood\": use one of`)
	status, _, _ = b.raw(t, http.MethodPut, "/_sim/faults", `{"rulez":[]}`, nil)
	require.Equal(t, 400, status)

	id := b.create(t, script(t, "", []map[string]any{{"name": "f", "arguments": map[string]any{"a": 1}}}), "f")
	require.NoError(t, b.post(t, id, "", success(b.get(t, id).RequiredActions[0], "out")))
	_, body, _ = b.raw(t, http.MethodGet, "/_sim/results?session="+id, "", nil)
	require.Contains(t, body, `"arguments":{"a":1},"output":"out","error":null`)
	_, body, _ = b.raw(t, http.MethodGet, "/_sim/stats", "", nil)
	var stats simulator.Stats
	require.NoError(t, json.NewDecoder(bytes.NewBufferString(body)).Decode(&stats))
	require.Equal(t, b.sim.Stats().ResultsAccepted, stats.ResultsAccepted)
	require.Equal(t, map[int]int64{1: 1}, stats.BatchSizes)
	require.EqualValues(t, 1, stats.FaultsFired[simulator.FaultRateLimited])
}
