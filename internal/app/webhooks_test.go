package app_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/runs"
	"github.com/callfan/callfan/internal/simulator"
	"github.com/callfan/callfan/internal/testservers"
)

const webhookSecret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="

// front stands before a dispatcher, as what ends TLS does.
type front struct {
	server *httptest.Server
	to     atomic.Pointer[string]
}

func startFront(t *testing.T) *front {
	t.Helper()
	f := &front{}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", *f.to.Load() },
		Transport: &http.Transport{DisableKeepAlives: true},
	}
	f.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.to.Load() == nil {
			w.WriteHeader(http.StatusNoContent) // lost
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(f.server.Close)
	return f
}

// TestWebhooksTellOfCalls: without streams, and with a watchdog that does not come by.
func TestWebhooksTellOfCalls(t *testing.T) {
	t.Parallel()
	front := startFront(t)
	nats := testservers.NATS(t)
	api := startService(t, simulator.WebhookEndpoint{URL: front.server.URL + "/webhooks/openai", Secret: webhookSecret})
	session := api.create(t, "hello", nil)
	api.awaitTurns(t, 1)
	o := options(t, api, nats.URL())
	o.NoStream, o.Dispatcher.Watchdog = true, time.Hour
	o.WebhookListen, o.WebhookSecret = "127.0.0.1:0", webhookSecret
	o.Sessions = []string{session}
	d := run(t, o)
	startExecutor(t, nats.URL())
	door := d.door(t)
	require.Eventually(t, func() bool {
		list, err := door.Sessions(t.Context())
		return err == nil && len(list) == 1 && list[0].Retrieved != nil
	}, patience, 20*time.Millisecond, "the session is not served")
	address := d.WebhookAddr()
	front.to.Store(&address)

	elsewhere := api.create(t, oneCall, nil)
	require.NotEqual(t, session, elsewhere)
	require.NoError(t, api.client.Beta.Agents.Sessions.Events.New(t.Context(), session, openai.BetaAgentSessionEventNewParams{
		Events: []openai.AgentSessionInputParamUnion{openai.AgentSessionInputParamOfParamAgentSessionInputMessage(
			[]openai.AgentSessionInputMessageParam{{Content: []openai.InputContentParamUnion{openai.InputContentParamOfParamInputText(oneCall)}}})},
	}))
	api.awaitTurns(t, 2)
	_, metrics := get(t, "http://"+d.Addr()+"/metrics")
	require.Contains(t, metrics, `callfan_webhooks_total{result="accepted",type="agent.session.action_required"} 1`)
	require.Contains(t, metrics, `callfan_webhooks_total{result="elsewhere",type="agent.session.action_required"} 1`)
}

// TestWebhooksReachTheReplicaThatServes: two replicas, of which one receives all webhooks.
func TestWebhooksReachTheReplicaThatServes(t *testing.T) {
	t.Parallel()
	front := startFront(t)
	nats := testservers.NATS(t)
	api := startService(t, simulator.WebhookEndpoint{URL: front.server.URL + "/webhooks/openai", Secret: webhookSecret})
	var sessions []string
	for range 24 { // so many that each replica serves some
		sessions = append(sessions, api.create(t, "hello", nil))
	}
	api.awaitTurns(t, int64(len(sessions)))
	replica := func(listen string) *running {
		o := options(t, api, nats.URL())
		o.NoStream, o.Dispatcher.Watchdog = true, time.Hour
		o.WebhookListen, o.WebhookSecret = listen, webhookSecret
		o.Queue.Partitions = 16
		return run(t, o)
	}
	a, b := replica("127.0.0.1:0"), replica("")
	startExecutor(t, nats.URL())
	a.awaitReady(t)
	require.NoError(t, a.door(t).Watch(t.Context(), sessions...))
	require.Eventually(t, func() bool {
		served := 0
		for _, replica := range []*running{a, b} {
			list, err := replica.door(t).Sessions(t.Context())
			if err != nil {
				return false
			}
			mine := 0
			for _, s := range list {
				if s.Served && s.Retrieved != nil {
					mine++
				}
			}
			if mine == 0 {
				return false
			}
			served += mine
		}
		return served == len(sessions)
	}, patience, 20*time.Millisecond, "both replicas serve sessions")
	address := a.WebhookAddr()
	front.to.Store(&address)
	for _, id := range sessions {
		require.NoError(t, api.client.Beta.Agents.Sessions.Events.New(t.Context(), id, openai.BetaAgentSessionEventNewParams{
			Events: []openai.AgentSessionInputParamUnion{openai.AgentSessionInputParamOfParamAgentSessionInputMessage(
				[]openai.AgentSessionInputMessageParam{{Content: []openai.InputContentParamUnion{openai.InputContentParamOfParamInputText(oneCall)}}})},
		}))
	}
	api.awaitTurns(t, int64(2*len(sessions)))
}

// TestWebhooksTellOfResponses: a run in the background, whose responses are not streamed.
func TestWebhooksTellOfResponses(t *testing.T) {
	t.Parallel()
	front := startFront(t)
	nats := testservers.NATS(t)
	api := startService(t, simulator.WebhookEndpoint{URL: front.server.URL + "/webhooks/openai", Secret: webhookSecret})
	o := options(t, api, nats.URL())
	o.WebhookListen, o.WebhookSecret = "127.0.0.1:0", webhookSecret
	d := run(t, o)
	startExecutor(t, nats.URL())
	door := d.door(t)
	require.Eventually(t, func() bool {
		functions, err := door.Functions(t.Context())
		return err == nil && len(functions) == 1
	}, patience, 20*time.Millisecond, "the function is not registered")
	address := d.WebhookAddr()
	front.to.Store(&address)

	input, err := json.Marshal(oneCall)
	require.NoError(t, err)
	request := `{"model":"gpt-6-astra","background":true,"stream":false,"tools":[{"type":"function","name":"greet"}],"input":` + string(input) + `}`
	started, err := d.StartRun(t.Context(), json.RawMessage(request), "")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		got, err := d.ShowRun(t.Context(), started.ID)
		require.NoError(t, err)
		return got.Status == runs.Completed
	}, patience, 20*time.Millisecond)
	require.Eventually(t, func() bool {
		_, metrics := get(t, "http://"+d.Addr()+"/metrics")
		return strings.Contains(metrics, `callfan_webhooks_total{result="accepted",type="response.completed"} 2`)
	}, patience, 20*time.Millisecond)
}
