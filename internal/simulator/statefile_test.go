package simulator_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/simulator"
)

// durable starts simulators one after the other on one state file.
type durable struct {
	*bench
	t   *testing.T
	cfg simulator.Config
}

func startDurable(t *testing.T, cfg simulator.Config) *durable {
	cfg.StateFile = filepath.Join(t.TempDir(), "state.json")
	return &durable{bench: start(t, cfg), t: t, cfg: cfg}
}

func (d *durable) restart() {
	d.t.Helper()
	d.sim.Close()
	d.bench = start(d.t, d.cfg)
}

// requests posts JSON as it is and returns the status.
func (d *durable) send(path, key, body string) int {
	d.t.Helper()
	req, err := http.NewRequestWithContext(testContext(d.t), http.MethodPost, d.url+"/v1"+path, strings.NewReader(body))
	require.NoError(d.t, err)
	req.Header.Set("Authorization", "Bearer any")
	req.Header.Set("OpenAI-Beta", "agents=v1")
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(d.t, err)
	defer http.DefaultClient.CloseIdleConnections()
	defer resp.Body.Close()
	return resp.StatusCode
}

func toolResult(turn, call, output string) string {
	return `{"events":[{"type":"agent.session.input.tool_result","turn_id":"` + turn + `","call_id":"` + call +
		`","success":true,"output":` + output + `}]}`
}

func TestRestartInTheMiddleOfAScript(t *testing.T) {
	t.Parallel()
	d := startDurable(t, simulator.Config{})
	const first, second = `{"z": 9007199254740993,"a":"<&>","z":1e400}`, `{"b" :"\u003c"}`
	id := d.create(t, `{"rounds":[[{"name":"f","arguments":`+first+`,"call_id":"a"},{"name":"f","call_id":"b"}],`+
		`[{"name":"f","arguments":`+second+`,"call_id":"c"}]],"say":"fertig <b>","say_results":true}`, "f")
	const answer = "fertig <b>\né <x> é\ntwo\nthree"
	before := d.get(t, id)
	turn := before.RequiredActions[0].TurnID
	const output = `"\u00e9 <x> é"`
	answered := toolResult(turn, "a", output)
	require.Equal(t, http.StatusAccepted, d.send("/agents/sessions/"+id+"/events", "key-1", answered))
	waiting := d.get(t, id)
	require.Len(t, waiting.RequiredActions, 1)

	d.restart()
	require.Equal(t, waiting.RawJSON(), d.get(t, id).RawJSON(), "the session is what it was, byte for byte")
	require.Equal(t, http.StatusAccepted, d.send("/agents/sessions/"+id+"/events", "key-1", answered))
	require.EqualValues(t, 1, d.sim.Stats().IdempotentReplays, "the idempotency key is remembered")
	require.EqualValues(t, 1, d.sim.Stats().Pending)

	stream := d.client.Beta.Agents.Sessions.Events.StreamStreaming(testContext(t), id)
	defer stream.Close()
	require.True(t, stream.Next(), "a new stream begins with a snapshot")
	require.NoError(t, d.post(t, id, "", success(d.get(t, id).RequiredActions[0], "two")))
	require.Contains(t, eventTypes(stream, "agent.session.requires_action"), "agent.session.turn.item.added")

	d.restart()
	third := d.get(t, id).RequiredActions[0]
	require.Equal(t, "c", third.CallID)
	require.Equal(t, second, third.JSON.Arguments.Raw())
	require.NoError(t, d.post(t, id, "", success(third, "three")))
	require.Equal(t, answer, d.lastText(t, id))

	d.restart()
	require.Equal(t, openai.AgentSessionStatusIdle, d.get(t, id).Status)
	require.Equal(t, answer, d.lastText(t, id))
	results, err := d.sim.Results(id)
	require.NoError(t, err)
	require.Len(t, results, 3)
	require.Equal(t, first, string(results[0].Arguments))
	require.Equal(t, output, string(results[0].Output))
	require.Nil(t, results[1].Arguments, "no arguments stay no arguments")
	require.Nil(t, results[0].Error)
	stats := d.sim.Stats()
	require.EqualValues(t, 1, stats.Sessions)
	require.EqualValues(t, 1, stats.TurnsCompleted)
	require.EqualValues(t, 3, stats.Calls)
	require.EqualValues(t, 3, stats.ResultsAccepted)
	require.Zero(t, stats.Pending)
	require.EqualValues(t, 3, stats.BatchSizes[1])
}

func TestRestartInTheMiddleOfTheModelsTurn(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		question, answer string
		functions        []string
		results          map[string]string
	}{
		"weather": {
			question:  "北京和上海今天分别多少度?两地温差多大?",
			answer:    "北京今天晴、22 度,上海多云、25 度,两地温差 3 度。",
			functions: []string{"get_weather", "calculate"},
			results: map[string]string{
				`{"city":"北京"}`: `{"weather":"晴","temp_c":22}`, `{"city":"上海"}`: `{"weather":"多云","temp_c":25}`,
				`{"a":25,"b":22,"op":"sub"}`: `{"result":3}`,
			},
		},
		"customers": {
			question:  "Look up customers 123 and 456.",
			answer:    "Customer 123 is Ann (plan pro). Customer 456 was not found.",
			functions: []string{"get_customer"},
			results: map[string]string{
				`{"customer_id":"123"}`: `{"found":true,"customer":{"name":"Ann","plan":"pro"}}`, `{"customer_id":"456"}`: `{"found":false}`,
			},
		},
		"time": {
			question: "What time is it?", answer: "It is 10:00.", functions: []string{"get_time"},
			results: map[string]string{`{}`: `{"time":"10:00"}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := startDurable(t, simulator.Config{})
			id := d.create(t, tc.question, tc.functions...)
			calls := 0
			for d.get(t, id).Status != openai.AgentSessionStatusIdle {
				d.restart() // before every single result
				action := d.get(t, id).RequiredActions[0]
				require.NoError(t, d.post(t, id, "", success(action, tc.results[action.JSON.Arguments.Raw()])))
				calls++
				require.LessOrEqual(t, calls, len(tc.results))
			}
			d.restart()
			require.Equal(t, tc.answer, d.lastText(t, id))
			require.Equal(t, len(tc.results), calls)
		})
	}
}

func TestRestartWithWhatWaitsForItsTime(t *testing.T) {
	t.Parallel()
	d := startDurable(t, simulator.Config{
		AdmissionDelay: 300 * time.Millisecond, ModelDelay: 200 * time.Millisecond,
		Faults: simulator.Faults{ListedAfterAccept: simulator.Span{MinMS: 300, MaxMS: 300}},
	})
	// The restarts hit the admission, the model's thinking, the delayed call, and the result that is still listed.
	id := d.create(t, script(t, "done", []map[string]any{{"name": "f", "call_id": "a", "after_ms": 400}, {"name": "f", "call_id": "b"}}), "f")
	d.restart()
	require.Eventually(t, func() bool { return d.sim.Stats().Turns == 1 }, 10*time.Second, time.Millisecond)
	d.restart()
	require.Eventually(t, func() bool { return len(d.get(t, id).RequiredActions) == 1 }, 10*time.Second, time.Millisecond)
	d.restart()
	require.Eventually(t, func() bool { return len(d.get(t, id).RequiredActions) == 2 }, 10*time.Second, time.Millisecond)
	var events []openai.AgentSessionInputParamUnion
	for _, action := range d.get(t, id).RequiredActions {
		events = append(events, success(action, "x"))
	}
	require.NoError(t, d.post(t, id, "", events...))
	require.Len(t, d.get(t, id).RequiredActions, 2)
	d.restart()
	require.Eventually(t, func() bool { return d.get(t, id).Status == openai.AgentSessionStatusIdle }, 10*time.Second, time.Millisecond)
	require.Equal(t, "done", d.lastText(t, id))
	require.EqualValues(t, 2, d.sim.Stats().Calls)
}

func TestRestartKeepsQueuedInputAgentsAndDeletions(t *testing.T) {
	t.Parallel()
	d := startDurable(t, simulator.Config{})
	require.Equal(t, http.StatusOK, d.send("/agents", "", `{"model":"m","name":"helper","tools":[{"type":"function","name":"f","description":"d","parameters":{"type":"object","x": 1.50}},{"type":"web_search","y": 1}]}`))
	agents, err := d.client.Beta.Agents.List(testContext(t), openai.BetaAgentListParams{})
	require.NoError(t, err)
	require.Len(t, agents.Data, 1)

	id := d.create(t, script(t, "one", []map[string]any{{"name": "f", "call_id": "a"}}), "f")
	require.Equal(t, http.StatusAccepted, d.send("/agents/sessions/"+id+"/events", "", `{"events":[{"type":"agent.session.input.message","input":[{"role":"user","content":`+
		quoted(t, script(t, "two", []map[string]any{{"name": "f", "call_id": "b"}}))+`}]}]}`))
	gone := d.create(t, "hello")
	_, err = d.client.Beta.Agents.Sessions.Delete(testContext(t), gone)
	require.NoError(t, err)

	d.restart()
	again, err := d.client.Beta.Agents.List(testContext(t), openai.BetaAgentListParams{})
	require.NoError(t, err)
	require.Equal(t, agents.RawJSON(), again.RawJSON())
	_, err = d.client.Beta.Agents.Sessions.Delete(testContext(t), gone)
	require.NoError(t, err, "a deletion can be repeated")
	_, err = d.client.Beta.Agents.Sessions.Get(testContext(t), gone)
	requireAPIError(t, err, http.StatusNotFound, "not_found_error", "")
	text, rounds := d.answerAll(t, id, func(string, string) string { return "x" })
	require.Equal(t, "two", text)
	require.Equal(t, 2, rounds)
}

func quoted(t *testing.T, text string) string {
	t.Helper()
	raw, err := json.Marshal(text)
	require.NoError(t, err)
	return string(raw)
}

func TestStateIsSavedWhileTheSimulatorRuns(t *testing.T) {
	t.Parallel()
	d := startDurable(t, simulator.Config{})
	id := d.create(t, "hello")
	require.Eventually(t, func() bool {
		raw, err := os.ReadFile(d.cfg.StateFile)
		return err == nil && strings.Contains(string(raw), id)
	}, 20*time.Second, 10*time.Millisecond)
	info, err := os.Stat(d.cfg.StateFile)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	// What a killed process leaves is enough to go on with.
	killed := d.cfg
	killed.StateFile = filepath.Join(t.TempDir(), "copy.json")
	raw, err := os.ReadFile(d.cfg.StateFile)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(killed.StateFile, raw, 0o600))
	after := start(t, killed)
	require.Equal(t, openai.AgentSessionStatusIdle, after.get(t, id).Status)
}

func TestUnusableStateFiles(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ content, want string }{
		"no JSON":         {"nonsense", "invalid character"},
		"cut off":         {`{"version":1,"sessions":[`, "unexpected end"},
		"another version": {`{"version":99}`, "version 99"},
		"no version":      {`{}`, "version 0"},
		"damaged":         {`{"version":1,"sessions":[{"id":"sess_1","items":[{"id":"i","turn":3}]}]}`, "sess_1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "state.json")
			require.NoError(t, os.WriteFile(path, []byte(tc.content), 0o600))
			_, err := simulator.New(simulator.Config{StateFile: path})
			require.ErrorContains(t, err, tc.want)
			require.ErrorContains(t, err, path)
			require.ErrorContains(t, err, "move it away")
			raw, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, tc.content, string(raw), "the file is left as it is")
		})
	}
	_, err := simulator.New(simulator.Config{StateFile: filepath.Join(t.TempDir(), "none", "state.json")})
	require.ErrorContains(t, err, "cannot be written")
}

func TestFixturesAreMadeAnew(t *testing.T) {
	t.Parallel()
	d := startDurable(t, simulator.Config{Fixtures: true})
	d.restart()
	_, err := d.client.Beta.Agents.Sessions.Items.List(testContext(t), "session_id", openai.BetaAgentSessionItemListParams{},
		option.WithMaxRetries(0))
	require.NoError(t, err)
	require.Equal(t, []string{"session_id"}, d.sim.SessionIDs())
}
