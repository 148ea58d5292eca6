package agents_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/agents"
	"github.com/callfan/callfan/internal/apiclient/apitest"
	"github.com/callfan/callfan/internal/simulator"
	"github.com/callfan/callfan/pkg/call"
)

// simulated is a client of a simulator.
type simulated struct {
	*agents.Client

	sim *simulator.Simulator
	url string
}

func simulate(t *testing.T, cfg simulator.Config) *simulated {
	t.Helper()
	sim, err := simulator.New(cfg)
	require.NoError(t, err)
	server := httptest.NewServer(sim.Handler())
	client, err := agents.New(agents.Config{BaseURL: server.URL + "/v1"})
	require.NoError(t, err)
	t.Cleanup(func() {
		client.Close()
		sim.Close()
		server.CloseClientConnections()
		server.Close()
	})
	return &simulated{Client: client, sim: sim, url: server.URL}
}

// create makes a session that asks for the given rounds of calls of f, by a body
// that no client re-encodes.
func (s *simulated) create(t *testing.T, rounds string) string {
	t.Helper()
	script, err := json.Marshal(`{"rounds":` + rounds + `,"say":"done"}`)
	require.NoError(t, err)
	body := `{"agent":{"model":"gpt-6-astra","tools":[{"type":"function","name":"f","description":"f","parameters":{"type":"object"}}]},` +
		`"environment":{"type":"none"},"metadata":{"dispatch":"nats"},"input":` + string(script) + `}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/agents/sessions", strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer any")
	req.Header.Set("OpenAI-Beta", "agents=v1")
	res, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(t, err)
	defer res.Body.Close()
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	require.Equal(t, http.StatusCreated, res.StatusCode)
	var created struct{ ID string }
	require.NoError(t, json.NewDecoder(res.Body).Decode(&created))
	return created.ID
}

func (s *simulated) pending(t *testing.T, id string) []call.Call {
	t.Helper()
	var got call.Session
	require.Eventually(t, func() bool {
		var err error
		got, err = s.Session(t.Context(), id)
		require.NoError(t, err)
		return len(got.Calls) > 0
	}, 10*time.Second, 5*time.Millisecond)
	return got.Calls
}

func answerAll(id, key string, calls []call.Call) call.Batch {
	b := call.Batch{Session: id, IdempotencyKey: key}
	for _, c := range calls {
		b.Answers = append(b.Answers, call.Answer{Key: c.Key, Result: call.Result{Success: true, Output: json.RawMessage(`"<a&b>\u0000"`)}})
	}
	return b
}

func twoCalls() string { return `[[{"name":"f","arguments":{}},{"name":"f","arguments":{}}]]` }

func TestATurnAgainstTheSimulator(t *testing.T) {
	t.Parallel()
	for _, profile := range []simulator.Profile{simulator.ProfileOpenAI, simulator.ProfileOpenAgentCore} {
		t.Run(string(profile), func(t *testing.T) {
			t.Parallel()
			s := simulate(t, simulator.Config{Profile: profile, ModelDelay: time.Millisecond})
			const arguments = `{"n":9007199254740993,"e":1e400,"h":"<a&b>\u0000"}`
			id := s.create(t, `[[{"name":"f","arguments":`+arguments+`},{"name":"f","arguments":{}}],[{"name":"f","arguments":{}}]]`)

			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			opened := make(chan struct{})
			kinds := make(chan string, 100)
			ended := make(chan error, 1)
			go func() {
				ended <- s.Stream(ctx, id, func() { close(opened) }, func(e agents.Event) {
					if e.SessionID == id {
						kinds <- e.Type
					}
				})
			}()
			<-opened

			calls := s.pending(t, id)
			require.Len(t, calls, 2)
			require.Equal(t, []byte(arguments), []byte(calls[0].Arguments))
			require.Equal(t, "f", calls[0].Function)
			first := answerAll(id, "key_1", calls)
			require.NoError(t, s.Submit(t.Context(), first))
			require.NoError(t, s.Submit(t.Context(), first), "the same batch under the same key is accepted again")
			require.Eventually(t, func() bool {
				now := s.pending(t, id)
				return len(now) == 1 && now[0].Key != calls[0].Key && now[0].Key != calls[1].Key
			}, 20*time.Second, 5*time.Millisecond)
			require.NoError(t, s.Submit(t.Context(), answerAll(id, "key_2", s.pending(t, id))))

			want := map[string]bool{"agent.session.requires_action": true, "agent.session.turn.completed": true, "agent.session.idle": true}
			for len(want) > 0 {
				select {
				case kind := <-kinds:
					delete(want, kind)
				case <-time.After(20 * time.Second):
					require.Fail(t, "events missing", "%v", want)
				}
			}
			cancel()
			require.ErrorIs(t, <-ended, context.Canceled)
			require.EqualValues(t, 3, s.sim.Stats().ResultsAccepted)
		})
	}
}

func TestSimulatedRefusals(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		cfg    simulator.Config
		change func(*call.Batch)
		class  call.RefusalClass
		names  bool
	}{
		"unknown call": {simulator.Config{}, func(b *call.Batch) { b.Answers[1].Call = "call_nobody" }, call.RefusedUnknownCall, true},
		"unknown call, openagentcore": {
			simulator.Config{Profile: simulator.ProfileOpenAgentCore},
			func(b *call.Batch) { b.Answers[1].Call = "call_nobody" }, call.RefusedUnknownCall, false,
		},
		"registration race": {
			simulator.Config{Faults: simulator.Faults{RegistrationDelay: simulator.Span{MinMS: 60_000, MaxMS: 60_000}}},
			func(b *call.Batch) { b.Answers = b.Answers[:1] }, call.RefusedUnknownCall, true,
		},
		"lone surrogate": {simulator.Config{}, func(b *call.Batch) { b.Answers[0].Result.Output = json.RawMessage(`"\ud800"`) }, call.RefusedInvalid, false},
		"refused call": {
			simulator.Config{Faults: simulator.Faults{RefuseCalls: []simulator.RefusedCall{{Function: "f", Next: 1}}}},
			func(*call.Batch) {}, call.RefusedInvalid, true,
		},
		"refused call, unnamed": {
			simulator.Config{Faults: simulator.Faults{RefuseCalls: []simulator.RefusedCall{{Function: "f", Next: 1, Unnamed: true}}}},
			func(*call.Batch) {}, call.RefusedInvalid, false,
		},
		"too large": {simulator.Config{}, func(b *call.Batch) {
			b.Answers[0].Result.Output = json.RawMessage(`"` + strings.Repeat("x", 5<<20) + `"`)
		}, call.RefusedTooLarge, false},
		"too large, openagentcore": {simulator.Config{Profile: simulator.ProfileOpenAgentCore}, func(b *call.Batch) {
			b.Answers[0].Result.Output = json.RawMessage(`"` + strings.Repeat("x", 2<<20) + `"`)
		}, call.RefusedTooLarge, false},
		"gone":       {simulator.Config{}, func(b *call.Batch) { b.Session = "sess_nobody" }, call.RefusedGone, false},
		"rate limit": {faulty(simulator.FaultRateLimited), func(*call.Batch) {}, call.RefusedBusy, false},
		"500":        {faulty(simulator.FaultInternalError), func(*call.Batch) {}, call.RefusedBusy, false},
		"503":        {faulty(simulator.FaultUnavailable), func(*call.Batch) {}, call.RefusedBusy, false},
		"502 HTML":   {faulty(simulator.FaultBadGateway), func(*call.Batch) {}, call.RefusedBusy, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := simulate(t, test.cfg)
			id := s.create(t, twoCalls())
			b := answerAll(id, "key_1", s.pending(t, id))
			test.change(&b)
			r := apitest.Refused(t, s.Submit(t.Context(), b))
			require.Equal(t, test.class, r.Class, r.Error())
			require.Equal(t, test.names, r.CallID != "", r.Error())
			if name == "rate limit" {
				require.Equal(t, 300*time.Second, r.RetryAfter)
			}
			if r.Status != 0 {
				require.NotEmpty(t, r.RequestID)
			}
		})
	}
}

// faulty strikes the first POST of events.
func faulty(kind simulator.FaultKind) simulator.Config {
	return simulator.Config{Faults: simulator.Faults{Rules: []simulator.FaultRule{
		{Kind: kind, Endpoint: simulator.EndpointEventsPost, Next: 1, RetryAfter: "300"},
	}}}
}

func TestALostResponseIsCuredByTheSameKey(t *testing.T) {
	t.Parallel()
	cfg := faulty(simulator.FaultResponseLost)
	cfg.Faults.Rules[0].Next = 2
	s := simulate(t, cfg)
	id := s.create(t, twoCalls())
	b := answerAll(id, "key_1", s.pending(t, id))
	require.Equal(t, call.RefusedBusy, apitest.Refused(t, s.Submit(t.Context(), b)).Class)
	require.NoError(t, s.Submit(t.Context(), b))
	require.EqualValues(t, 2, s.sim.Stats().ResultsAccepted)
	require.EqualValues(t, 2, s.sim.Stats().IdempotentReplays)
}

func TestADifferentResultIsAConflict(t *testing.T) {
	t.Parallel()
	s := simulate(t, simulator.Config{ModelDelay: time.Millisecond})
	id := s.create(t, twoCalls())
	b := answerAll(id, "key_1", s.pending(t, id))
	require.NoError(t, s.Submit(t.Context(), b))
	b.IdempotencyKey = "key_2"
	b.Answers[0].Result.Output = json.RawMessage(`"another"`)
	require.Equal(t, call.RefusedConflict, apitest.Refused(t, s.Submit(t.Context(), b)).Class)
}

func TestSimulatedStreamFaults(t *testing.T) {
	t.Parallel()
	for _, kind := range []simulator.FaultKind{simulator.FaultStreamCut, simulator.FaultStreamError} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := simulate(t, simulator.Config{Faults: simulator.Faults{Rules: []simulator.FaultRule{{Kind: kind, Next: 1}}}})
			id := s.create(t, twoCalls())
			answers := answerAll(id, "key_1", s.pending(t, id))
			ended := make(chan error, 1)
			go func() {
				ended <- s.Stream(t.Context(), id, func() { _ = s.Submit(t.Context(), answers) }, func(agents.Event) {})
			}()
			select {
			case err := <-ended:
				require.Equal(t, call.RefusedBusy, apitest.Refused(t, err).Class)
			case <-time.After(20 * time.Second):
				require.Fail(t, "the stream did not end")
			}
		})
	}
}

func TestListAgainstTheSimulator(t *testing.T) {
	t.Parallel()
	s := simulate(t, simulator.Config{})
	want := map[string]string{}
	for range 120 {
		want[s.create(t, twoCalls())] = "requires_action"
	}
	got := map[string]string{}
	for summary, err := range s.List(t.Context(), agents.Selector{Metadata: map[string]string{"dispatch": "nats"}}) {
		require.NoError(t, err)
		got[summary.ID] = summary.Status
	}
	require.Equal(t, want, got)
	for summary, err := range s.List(t.Context(), agents.Selector{Metadata: map[string]string{"dispatch": "other"}}) {
		require.Fail(t, "unexpected", fmt.Sprint(summary, err))
	}
}
