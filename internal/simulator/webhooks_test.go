package simulator_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/webhooks"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/simulator"
)

// receiver collects deliveries and answers them as told.
type receiver struct {
	mu       sync.Mutex
	statuses []int // answers of the first deliveries; 200 afterwards
	bodies   [][]byte
	headers  []http.Header
	url      string
}

func receive(t *testing.T, statuses ...int) *receiver {
	t.Helper()
	r := &receiver{statuses: statuses}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.bodies, r.headers = append(r.bodies, body), append(r.headers, req.Header.Clone())
		if n := len(r.bodies); n <= len(r.statuses) {
			w.WriteHeader(r.statuses[n-1])
		}
	}))
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

func (r *receiver) wait(t *testing.T, n int) ([][]byte, []http.Header) {
	t.Helper()
	require.Eventually(t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.bodies) >= n
	}, 10*time.Second, 5*time.Millisecond)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bodies, r.headers
}

func TestWebhooksVerifyWithTheOfficialClient(t *testing.T) {
	t.Parallel()
	r := receive(t)
	b := start(t, simulator.Config{})
	ctx := testContext(t)
	endpoint, err := b.client.Webhooks.New(ctx, webhooks.WebhookNewParams{
		Name: "team", URL: r.url, EventTypes: []string{"agent.session.action_required", "agent.session.idle"},
	})
	require.NoError(t, err)
	id := b.create(t, script(t, "ok", oneCall("f")), "f")
	bodies, headers := r.wait(t, 1)
	verifier := openai.NewClient(option.WithAPIKey("k"), option.WithWebhookSecret(endpoint.SigningSecret))
	event, err := verifier.Webhooks.Unwrap(bodies[0], headers[0])
	require.NoError(t, err)
	required, ok := event.AsAny().(webhooks.AgentSessionActionRequiredWebhookEvent)
	require.True(t, ok)
	require.Equal(t, id, required.Data.ID)
	require.Equal(t, "function_call", required.Data.RequiredAction.Type)
	_, err = verifier.Webhooks.Unwrap(append(bodies[0], ' '), headers[0])
	require.Error(t, err)

	require.NoError(t, b.post(t, id, "", success(b.get(t, id).RequiredActions[0], "1")))
	bodies, headers = r.wait(t, 2)
	event, err = verifier.Webhooks.Unwrap(bodies[1], headers[1])
	require.NoError(t, err)
	idle, ok := event.AsAny().(webhooks.AgentSessionIdleWebhookEvent)
	require.True(t, ok)
	require.Equal(t, "none", idle.Data.EnvironmentType)
}

func TestWebhookEndpoints(t *testing.T) {
	t.Parallel()
	r := receive(t, http.StatusTeapot)
	b := start(t, simulator.Config{})
	ctx := testContext(t)
	endpoint, err := b.client.Webhooks.New(ctx, webhooks.WebhookNewParams{Name: "n", URL: r.url, EventTypes: []string{"agent.session.idle"}})
	require.NoError(t, err)
	tested, err := b.client.Webhooks.Test(ctx, endpoint.ID, webhooks.WebhookTestParams{EventType: "agent.session.idle"})
	require.NoError(t, err)
	require.EqualValues(t, http.StatusTeapot, tested.StatusCode)
	rotated, err := b.client.Webhooks.RotateSecret(ctx, endpoint.ID, webhooks.WebhookRotateSecretParams{KeepOldSecretActiveFor24Hours: openai.Bool(true)})
	require.NoError(t, err)
	require.NotEqual(t, endpoint.SigningSecret, rotated.SigningSecret)
	b.create(t, "hello")
	bodies, headers := r.wait(t, 2)
	for _, secret := range []string{endpoint.SigningSecret, rotated.SigningSecret} {
		client := openai.NewClient(option.WithAPIKey("k"), option.WithWebhookSecret(secret))
		_, err = client.Webhooks.Unwrap(bodies[1], headers[1])
		require.NoError(t, err)
	}
	updated, err := b.client.Webhooks.Update(ctx, endpoint.ID, webhooks.WebhookUpdateParams{Name: openai.String("other")})
	require.NoError(t, err)
	require.Equal(t, "other", updated.Name)
	listed, err := b.client.Webhooks.List(ctx, webhooks.WebhookListParams{})
	require.NoError(t, err)
	require.Len(t, listed.Data, 1)
	require.NoError(t, ignore(b.client.Webhooks.Delete(ctx, endpoint.ID)))
	_, err = b.client.Webhooks.Get(ctx, endpoint.ID)
	requireAPIError(t, err, 404, "not_found_error", "")
}

func ignore[T any](_ T, err error) error { return err }

func TestWebhookRetriesAndDuplicates(t *testing.T) {
	t.Parallel()
	r := receive(t, 500, 302)
	cfg := with(func(sw *simulator.Switches) { sw.WebhookDuplicates, sw.WebhookOnAdded = 1, true })
	cfg.Webhooks = []simulator.WebhookEndpoint{{URL: r.url, Secret: "whsec_c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0", EventTypes: []string{"agent.session.action_required"}}}
	cfg.WebhookDelivery = simulator.WebhookDelivery{BaseDelay: time.Millisecond, Workers: 1}
	b := start(t, cfg)
	id := b.create(t, script(t, "ok", []map[string]any{{"name": "f"}, {"name": "f"}, {"name": "f", "after_results": 1}}), "f")
	_, headers := r.wait(t, 4)
	for _, h := range headers {
		require.Equal(t, headers[0].Get("Webhook-Id"), h.Get("Webhook-Id"), "attempts and duplicates share their id")
	}
	require.NoError(t, b.post(t, id, "", success(b.get(t, id).RequiredActions[0], "1")))
	_, headers = r.wait(t, 6)
	require.NotEqual(t, headers[0].Get("Webhook-Id"), headers[5].Get("Webhook-Id"), "an added call gets its own webhook")

	down := receive(t, 500, 500, 500)
	cfg.Webhooks[0].URL = down.url
	cfg.WebhookDelivery.MaxAttempts = 3
	sw := simulator.ProfileOpenAI.Switches()
	cfg.Switches = &sw
	b = start(t, cfg)
	b.create(t, script(t, "ok", oneCall("f")), "f")
	require.Eventually(t, func() bool { return b.sim.Stats().WebhooksFailed == 1 }, 10*time.Second, 5*time.Millisecond)
	_, err := simulator.New(simulator.Config{Webhooks: []simulator.WebhookEndpoint{{URL: "ftp://x"}}})
	require.ErrorContains(t, err, "url must be an http or https URL")
}
