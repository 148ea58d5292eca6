package simulator_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/simulator"
)

// loader drives the handler without a network: what is measured is the simulator.
type loader struct{ handler http.Handler }

func (l loader) do(t testing.TB, method, path, body string, want int) []byte {
	t.Helper()
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Header.Set("Authorization", "Bearer k")
	req.Header.Set("OpenAI-Beta", "agents=v1")
	req.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	l.handler.ServeHTTP(w, req)
	require.Equal(t, want, w.Code, w.Body.String())
	return w.Body.Bytes()
}

// runSession plays one turn of one round of calls and returns when it is done.
func (l loader) runSession(t testing.TB, calls int) {
	var text bytes.Buffer
	text.WriteString(`{"rounds":[[`)
	for i := range calls {
		if i > 0 {
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, `{"name":"f","arguments":{"i":%d}}`, i)
	}
	text.WriteString(`]],"say":"ok"}`)
	quoted, err := json.Marshal(text.String())
	require.NoError(t, err)
	created := l.do(t, http.MethodPost, "/v1/agents/sessions",
		`{"agent":{"model":"m","tools":[{"type":"function","name":"f","description":"d","parameters":{"type":"object"}}]},`+
			`"environment":{"type":"none"},"input":`+string(quoted)+`}`, 201)
	var ses struct {
		ID       string
		Status   string
		Required []struct {
			Turn string `json:"turn_id"`
			Call string `json:"call_id"`
		} `json:"required_actions"`
	}
	require.NoError(t, json.Unmarshal(created, &ses))
	require.NoError(t, json.Unmarshal(l.do(t, http.MethodGet, "/v1/agents/sessions/"+ses.ID, "", 200), &ses))
	require.Len(t, ses.Required, calls)
	var events bytes.Buffer
	events.WriteString(`{"events":[`)
	for i, a := range ses.Required {
		if i > 0 {
			events.WriteByte(',')
		}
		fmt.Fprintf(&events, `{"type":"agent.session.input.tool_result","turn_id":%q,"call_id":%q,"success":true,"output":"%0200d"}`, a.Turn, a.Call, i)
	}
	events.WriteString(`]}`)
	l.do(t, http.MethodPost, "/v1/agents/sessions/"+ses.ID+"/events", events.String(), 202)
	require.NoError(t, json.Unmarshal(l.do(t, http.MethodGet, "/v1/agents/sessions/"+ses.ID, "", 200), &ses))
	require.Equal(t, "idle", ses.Status)
}

func TestManySessionsAtOnce(t *testing.T) {
	t.Parallel()
	sim, err := simulator.New(simulator.Config{})
	require.NoError(t, err)
	defer sim.Close()
	l := loader{sim.Handler()}
	const sessions, calls = 200, 32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range sessions / 8 {
				l.runSession(t, calls)
			}
		})
	}
	wg.Wait()
	st := sim.Stats()
	require.EqualValues(t, sessions*calls, st.ResultsAccepted)
	require.EqualValues(t, sessions, st.TurnsCompleted)
	require.Equal(t, map[int]int64{calls: sessions}, st.BatchSizes)
	require.Zero(t, st.Pending)
}

// BenchmarkSession plays sessions of 32 parallel calls; it reports the memory a finished call keeps.
func BenchmarkSession(b *testing.B) {
	sim, err := simulator.New(simulator.Config{})
	require.NoError(b, err)
	defer sim.Close()
	l := loader{sim.Handler()}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for b.Loop() {
		l.runSession(b, 32)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	calls := float64(sim.Stats().Calls)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/calls, "B/call")
	b.ReportMetric(calls/b.Elapsed().Seconds(), "calls/s")
}
