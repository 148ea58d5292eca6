package e2e

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/internal/simulator"
)

// TestContract_FaultsOfTheAPI runs two rounds of ten calls against each fault: everything is
// answered, every handler ran once, no result was sent with another content.
func TestContract_FaultsOfTheAPI(t *testing.T) {
	t.Parallel()
	post := func(kind simulator.FaultKind, next int, retryAfter string) simulator.Faults {
		return simulator.Faults{Rules: []simulator.FaultRule{{
			Kind: kind, Endpoint: simulator.EndpointEventsPost, Next: next, RetryAfter: retryAfter,
		}}}
	}
	get := func(kind simulator.FaultKind, next int) simulator.Faults {
		f := post(kind, next, "")
		f.Rules[0].Endpoint = simulator.EndpointSessionGet
		return f
	}
	stream := func(kind simulator.FaultKind) simulator.Faults {
		f := post(kind, 3, "")
		f.Rules[0].Endpoint = simulator.EndpointStream
		return f
	}
	for name, tc := range map[string]struct {
		faults  simulator.Faults
		profile simulator.Profile
		cfg     dispatcher.Config
	}{
		"429 with Retry-After":           {faults: post(simulator.FaultRateLimited, 2, "1")},
		"429 without Retry-After":        {faults: post(simulator.FaultRateLimited, 2, "")},
		"500":                            {faults: post(simulator.FaultInternalError, 2, "")},
		"503":                            {faults: post(simulator.FaultUnavailable, 2, "")},
		"HTML 502":                       {faults: post(simulator.FaultBadGateway, 2, "")},
		"accepted, answer lost":          {faults: post(simulator.FaultResponseLost, 2, "")},
		"accepted, result lost":          {faults: post(simulator.FaultAcceptedLost, 2, ""), cfg: dispatcher.Config{Resend: time.Second}},
		"result lost, key remembered":    {faults: withKey(post(simulator.FaultAcceptedLost, 2, "")), cfg: dispatcher.Config{Resend: time.Second}},
		"session GET 500":                {faults: get(simulator.FaultInternalError, 3)},
		"session GET HTML":               {faults: get(simulator.FaultBadGateway, 3)},
		"session GET answer lost":        {faults: get(simulator.FaultResponseLost, 3)},
		"stream cut in mid frame":        {faults: stream(simulator.FaultStreamCut)},
		"error frame":                    {faults: stream(simulator.FaultStreamError)},
		"registration race":              {faults: simulator.Faults{RegistrationDelay: simulator.Span{MinMS: 100, MaxMS: 900}}},
		"registration race, no call id":  {faults: simulator.Faults{RegistrationDelay: simulator.Span{MinMS: 100, MaxMS: 900}}, profile: simulator.ProfileOpenAgentCore},
		"listed long after the 202":      {faults: simulator.Faults{ListedAfterAccept: simulator.Span{MinMS: 500, MaxMS: 3000}}},
		"a slow API":                     {faults: simulator.Faults{Latency: simulator.Span{MinMS: 50, MaxMS: 150}}},
		"everything, now and then":       {faults: anything(), cfg: dispatcher.Config{Resend: time.Second}},
		"everything, the second profile": {faults: anything(), profile: simulator.ProfileOpenAgentCore, cfg: dispatcher.Config{Resend: time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var runs atomic.Int64
			s := start(t, options{
				sim:        simulator.Config{Faults: tc.faults, Profile: tc.profile},
				dispatcher: tc.cfg, handlers: echo(t, &runs),
			})
			second := round(10)
			for i := range second {
				second[i].CallID = "second_" + second[i].CallID
			}
			id := s.session(script("ok", round(10), second), "f")
			s.idle(id)
			s.settled(id)
			got := s.answers(id)
			require.Len(t, got, 20)
			for callID, answer := range got {
				require.Equal(t, quote(callID), string(answer.Output))
			}
			require.EqualValues(t, 20, runs.Load(), "every handler runs once")
			stats := s.sim.Stats()
			require.EqualValues(t, 20, stats.ResultsAccepted)
			require.Zero(t, stats.Conflicts)
			s.clean()
		})
	}
}

func withKey(f simulator.Faults) simulator.Faults {
	f.AcceptedLostKeepsKey = true
	return f
}

func anything() simulator.Faults {
	f := simulator.Faults{Seed: 7, RegistrationDelay: simulator.Span{MaxMS: 300}, ListedAfterAccept: simulator.Span{MaxMS: 300}, Latency: simulator.Span{MaxMS: 30}}
	for _, kind := range []simulator.FaultKind{
		simulator.FaultRateLimited, simulator.FaultInternalError, simulator.FaultUnavailable, simulator.FaultBadGateway,
		simulator.FaultResponseLost, simulator.FaultAcceptedLost,
	} {
		f.Rules = append(f.Rules,
			simulator.FaultRule{Kind: kind, Endpoint: simulator.EndpointEventsPost, Rate: 0.1},
			simulator.FaultRule{Kind: kind, Endpoint: simulator.EndpointSessionGet, Rate: 0.05})
	}
	f.Rules = f.Rules[:len(f.Rules)-1] // a GET is not accepted
	f.Rules = append(f.Rules,
		simulator.FaultRule{Kind: simulator.FaultStreamCut, Rate: 0.05},
		simulator.FaultRule{Kind: simulator.FaultStreamError, Rate: 0.05})
	return f
}

// TestContract_RetryAfterIsHonoured: an API that asks for five minutes is left alone, and the
// results wait.
func TestContract_RetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	s := start(t, options{
		sim: simulator.Config{Faults: simulator.Faults{Rules: []simulator.FaultRule{{
			Kind: simulator.FaultRateLimited, Endpoint: simulator.EndpointEventsPost, Next: 100, RetryAfter: "300",
		}}}},
		handlers: echo(t, &runs),
	})
	id := s.session(script("ok", round(3)), "f")
	require.Eventually(t, func() bool { return s.sim.Stats().FaultsFired[simulator.FaultRateLimited] == 1 }, patience, 5*time.Millisecond)
	require.Never(t, func() bool { return s.sim.Stats().FaultsFired[simulator.FaultRateLimited] > 1 }, 3*time.Second, 50*time.Millisecond)
	require.EqualValues(t, 3, s.sim.Stats().Pending)
	recs, err := s.store.Session(t.Context(), id)
	require.NoError(t, err)
	require.Len(t, recs, 3)
	for _, r := range recs {
		require.NotNil(t, r.Result, "the result is kept")
	}
}

// TestContract_OneRefusedResultDoesNotHoldUpTheOthers: of twenty, nineteen arrive as they are
// and the refused one is answered with an error.
func TestContract_OneRefusedResultDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]simulator.RefusedCall{
		"named":                        {CallID: "call_007", Next: 1},
		"named, and the error as well": {CallID: "call_007", Next: 3},
		"unnamed":                      {CallID: "call_007", Unnamed: true, Next: 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var runs atomic.Int64
			s := start(t, options{
				sim:      simulator.Config{Faults: simulator.Faults{RefuseCalls: []simulator.RefusedCall{refused}}},
				handlers: echo(t, &runs),
			})
			id := s.session(script("ok", round(20)), "f")
			s.idle(id)
			s.settled(id)
			accepted, replaced := 0, 0
			for callID, answer := range s.answers(id) {
				switch {
				case answer.Success:
					require.Equal(t, quote(callID), string(answer.Output))
					accepted++
				default:
					require.Equal(t, "call_007", callID)
					require.Contains(t, string(answer.Error), "refused by the API")
					replaced++
				}
			}
			require.GreaterOrEqual(t, accepted, 19)
			require.Equal(t, 20, accepted+replaced)
			require.EqualValues(t, 20, runs.Load())
			s.clean()
		})
	}
}

// TestContract_KeyIsRefused: while the API refuses the key, results are kept and hardly sent; when it takes the key
// again, work goes on.
func TestContract_KeyIsRefused(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			var runs, asked atomic.Int64
			var api front
			s := start(t, options{handlers: echo(t, &runs), front: api.wrap})
			api.begin(refusing(status, func() { asked.Add(1) }))
			id := s.session(script("ok", round(3)), "f")
			require.Eventually(t, func() bool { return s.count.of(dispatcher.EventAuthRefused) > 0 }, patience, 5*time.Millisecond)
			require.Eventually(t, func() bool {
				list := s.disp.Sessions()
				return len(list) == 1 && strings.Contains(list[0].Trouble, "results cannot be submitted") && list[0].Saved == 3
			}, patience, 10*time.Millisecond, "the operator sees the trouble, and results are kept")
			require.Never(t, func() bool { return asked.Load() > 3 }, 3*time.Second, 50*time.Millisecond, "the API is left alone")
			api.end()
			s.idle(id)
			s.settled(id)
			require.EqualValues(t, 3, runs.Load())
			require.EqualValues(t, 3, s.sim.Stats().ResultsAccepted)
			require.Empty(t, s.disp.Sessions()[0].Trouble)
			s.clean()
		})
	}
}
