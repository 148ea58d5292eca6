package simulator_test

import (
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/simulator"
)

// faulty starts a simulator with one session that waits for n calls, and then breaks it.
func faulty(t *testing.T, n int, f simulator.Faults) (b *bench, id string, actions []openai.AgentSessionRequiredActionUnion) {
	t.Helper()
	b = start(t, simulator.Config{})
	var calls []map[string]any
	for range n {
		calls = append(calls, oneCall("f")...)
	}
	id = b.create(t, script(t, "ok", calls), "f")
	actions = b.get(t, id).RequiredActions
	require.NoError(t, b.sim.SetFaults(f))
	return b, id, actions
}

func once(kind simulator.FaultKind, at simulator.Endpoint) simulator.Faults {
	return simulator.Faults{Rules: []simulator.FaultRule{{Kind: kind, Endpoint: at, Next: 1}}}
}

func TestErrorStatuses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		kind   simulator.FaultKind
		status int
		code   string
	}{
		{simulator.FaultRateLimited, 429, "rate_limit_exceeded"},
		{simulator.FaultInternalError, 500, "internal_error"},
		{simulator.FaultUnavailable, 503, "service_unavailable_error"},
		{simulator.FaultBadGateway, 502, ""},
	} {
		f := once(tc.kind, simulator.EndpointEventsPost)
		f.Rules[0].RetryAfter = "300"
		b, id, actions := faulty(t, 1, f)
		require.Len(t, b.get(t, id).RequiredActions, 1, "other endpoints stay healthy")
		err := b.post(t, id, "", success(actions[0], "1"))
		requireAPIError(t, err, tc.status, tc.code, "")
		if tc.status == 429 || tc.status == 503 {
			var apiErr *openai.Error
			require.ErrorAs(t, err, &apiErr)
			require.Equal(t, "300", apiErr.Response.Header.Get("Retry-After"))
		}
		require.NoError(t, b.post(t, id, "", success(actions[0], "1")), "next 1 strikes once")
		require.EqualValues(t, 1, b.sim.Stats().FaultsFired[tc.kind])
	}
}

func TestSkipNextAndRate(t *testing.T) {
	t.Parallel()
	outcomes := func(rule simulator.FaultRule) (codes string) {
		b, id, _ := faulty(t, 1, simulator.Faults{Seed: 7, Rules: []simulator.FaultRule{rule}})
		for range 12 {
			if _, err := b.client.Beta.Agents.Sessions.Get(testContext(t), id); err != nil {
				codes += "x"
			} else {
				codes += "."
			}
		}
		return codes
	}
	rule := simulator.FaultRule{Kind: simulator.FaultInternalError, Endpoint: simulator.EndpointSessionGet, Skip: 2, Next: 3}
	require.Equal(t, "..xxx.......", outcomes(rule))
	rule = simulator.FaultRule{Kind: simulator.FaultInternalError, Rate: 0.5}
	first := outcomes(rule)
	require.Equal(t, first, outcomes(rule), "a seed repeats the draws")
	require.Contains(t, first, "x")
	require.Contains(t, first, ".")
}

func TestResponseLost(t *testing.T) {
	t.Parallel()
	b, id, actions := faulty(t, 1, once(simulator.FaultResponseLost, simulator.EndpointEventsPost))
	err := b.post(t, id, "", success(actions[0], "1"))
	require.Error(t, err)
	var apiErr *openai.Error
	require.NotErrorAs(t, err, &apiErr, "there is no answer")
	require.Equal(t, openai.AgentSessionStatusIdle, b.get(t, id).Status, "but the result was applied")
	require.NoError(t, b.post(t, id, "", success(actions[0], "1")))
}

func TestResponseLostIsRepeatedByTheTransport(t *testing.T) {
	t.Parallel()
	b, id, actions := faulty(t, 1, once(simulator.FaultResponseLost, simulator.EndpointEventsPost))
	require.NoError(t, b.post(t, id, "key", success(actions[0], "1")))
	st := b.sim.Stats()
	require.EqualValues(t, 1, st.IdempotentReplays)
	require.EqualValues(t, 1, st.FaultsFired[simulator.FaultResponseLost])
}

func TestAcceptedLost(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{false, true} {
		f := once(simulator.FaultAcceptedLost, "")
		f.AcceptedLostKeepsKey = keep
		b, id, actions := faulty(t, 1, f)
		require.NoError(t, b.post(t, id, "key", success(actions[0], "1")))
		require.Len(t, b.get(t, id).RequiredActions, 1)
		require.NoError(t, b.post(t, id, "key", success(actions[0], "1")))
		require.Equal(t, !keep, b.get(t, id).Status == openai.AgentSessionStatusIdle)
		require.NoError(t, b.post(t, id, "other", success(actions[0], "1")))
		require.Equal(t, openai.AgentSessionStatusIdle, b.get(t, id).Status)
	}
}

func TestListedAfterAccept(t *testing.T) {
	t.Parallel()
	b, id, actions := faulty(t, 1, simulator.Faults{ListedAfterAccept: simulator.Span{MinMS: 150, MaxMS: 150}})
	require.NoError(t, b.post(t, id, "", success(actions[0], "1")))
	require.Len(t, b.get(t, id).RequiredActions, 1)
	require.NoError(t, b.post(t, id, "", success(actions[0], "1")), "repeating it is harmless")
	requireAPIError(t, b.post(t, id, "", success(actions[0], "2")), 409, "conflict_error", "")
	require.Eventually(t, func() bool { return b.get(t, id).Status == openai.AgentSessionStatusIdle }, 20*time.Second, 10*time.Millisecond)
	st := b.sim.Stats()
	require.EqualValues(t, 1, st.ResultsAccepted)
	require.EqualValues(t, 2, st.DuplicateSubmissions)
}

func TestRegistrationDelay(t *testing.T) {
	t.Parallel()
	b := start(t, simulator.Config{Faults: simulator.Faults{RegistrationDelay: simulator.Span{MinMS: 250, MaxMS: 250}}})
	id := b.create(t, script(t, "ok", oneCall("f")), "f")
	a := b.get(t, id).RequiredActions[0]
	requireAPIError(t, b.post(t, id, "", success(a, "1")), 400, "invalid_request_error", "Unknown pending tool call: "+a.CallID)
	require.Eventually(t, func() bool { return b.post(t, id, "", success(a, "1")) == nil }, 20*time.Second, 20*time.Millisecond)
	require.Equal(t, openai.AgentSessionStatusIdle, b.get(t, id).Status)
}

func TestRefusedCallsOfABatch(t *testing.T) {
	t.Parallel()
	for _, unnamed := range []bool{false, true} {
		b, id, actions := faulty(t, 20, simulator.Faults{})
		bad := actions[7].CallID
		require.NoError(t, b.sim.SetFaults(simulator.Faults{RefuseCalls: []simulator.RefusedCall{{CallID: bad, Unnamed: unnamed}}}))
		var all, good []openai.AgentSessionInputParamUnion
		for _, a := range actions {
			all = append(all, success(a, "1"))
			if a.CallID != bad {
				good = append(good, success(a, "1"))
			}
		}
		message := "The result of " + bad + " was refused."
		if unnamed {
			message = "One of the events was refused."
		}
		requireAPIError(t, b.post(t, id, "", all...), 400, "invalid_request_error", message)
		require.NoError(t, b.post(t, id, "", good...))
		require.Len(t, b.get(t, id).RequiredActions, 1)
		require.Equal(t, 19, b.sim.Stats().MaxBatch)
		require.Len(t, b.sim.Faults().RefuseCalls, 1)
	}
	b, id, actions := faulty(t, 1, simulator.Faults{RefuseCalls: []simulator.RefusedCall{{Function: "f", Next: 1}}})
	require.Error(t, b.post(t, id, "", success(actions[0], "1")))
	require.Empty(t, b.sim.Faults().RefuseCalls)
	require.NoError(t, b.post(t, id, "", success(actions[0], "1")))
}

func TestStreamFaults(t *testing.T) {
	t.Parallel()
	f := once(simulator.FaultStreamCut, simulator.EndpointStream)
	f.Rules[0].Skip = 2
	b, id, actions := faulty(t, 1, f)
	stream := b.client.Beta.Agents.Sessions.Events.StreamStreaming(testContext(t), id)
	defer stream.Close()
	require.NoError(t, b.post(t, id, "", success(actions[0], "1")))
	require.Len(t, eventTypes(stream, ""), 2)
	require.ErrorIs(t, stream.Err(), io.ErrUnexpectedEOF)

	b, id, actions = faulty(t, 1, once(simulator.FaultStreamError, ""))
	stream = b.client.Beta.Agents.Sessions.Events.StreamStreaming(testContext(t), id)
	defer stream.Close()
	require.NoError(t, b.post(t, id, "", success(actions[0], "1")))
	require.Empty(t, eventTypes(stream, ""))
	var frame *ssestream.StreamError
	require.ErrorAs(t, stream.Err(), &frame)
	require.Contains(t, string(frame.Event.Data), `"session_id":"`+id+`"`)
}

func TestLatency(t *testing.T) {
	t.Parallel()
	b, id, _ := faulty(t, 1, simulator.Faults{
		Latency: simulator.Span{MinMS: 60, MaxMS: 80}, LatencyEndpoints: []simulator.Endpoint{simulator.EndpointSessionGet},
	})
	begin := time.Now()
	b.get(t, id)
	require.GreaterOrEqual(t, time.Since(begin), 60*time.Millisecond)
}

func TestFaultsCanBeTakenBack(t *testing.T) {
	t.Parallel()
	b, id, _ := faulty(t, 1, simulator.Faults{Rules: []simulator.FaultRule{{Kind: simulator.FaultUnavailable, Rate: 1}}})
	_, err := b.client.Beta.Agents.Sessions.Get(testContext(t), id)
	requireAPIError(t, err, http.StatusServiceUnavailable, "service_unavailable_error", "")
	require.NoError(t, b.sim.SetFaults(simulator.Faults{}))
	b.get(t, id)
	for i, f := range []simulator.Faults{
		{Latency: simulator.Span{MinMS: 2, MaxMS: 1}},
		{Rules: []simulator.FaultRule{{Kind: "x"}}},
		{Rules: []simulator.FaultRule{{Kind: simulator.FaultUnavailable, Endpoint: "x"}}},
		{Rules: []simulator.FaultRule{{Kind: simulator.FaultUnavailable, Rate: 2}}},
		{Rules: []simulator.FaultRule{{Kind: simulator.FaultUnavailable, Next: -1}}},
		{LatencyEndpoints: []simulator.Endpoint{"x"}},
		{RefuseCalls: []simulator.RefusedCall{{}}},
	} {
		require.Error(t, b.sim.SetFaults(f), strconv.Itoa(i))
	}
}
