package webhooks_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/callfan/callfan/internal/webhooks"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="

// receiver is a server that notes what it hears.
type receiver struct {
	*webhooks.Server

	mu       sync.Mutex
	sessions []string
	finished []string
	counts   []string
	log      bytes.Buffer
	client   *http.Client
}

func start(t *testing.T, changes ...func(*receiver, *webhooks.Config)) *receiver {
	t.Helper()
	r := &receiver{client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}}
	cfg := webhooks.Config{
		Listen: "127.0.0.1:0", Secret: secret,
		ActionRequired: func(session string) bool {
			r.note(&r.sessions, session)
			return session != "sess_elsewhere"
		},
		Finished: func(_ context.Context, response string) error { r.note(&r.finished, response); return nil },
		Count:    func(event, result string) { r.note(&r.counts, event+" "+result) },
		Logger:   slog.New(slog.NewTextHandler(locked{r}, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, change := range changes {
		change(r, &cfg)
	}
	server, err := webhooks.New(cfg)
	require.NoError(t, err)
	r.Server = server
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		require.NoError(t, server.Close(ctx))
		require.NotContains(t, r.log.String(), secret)
	})
	return r
}

// locked writes to the receiver's log.
type locked struct{ r *receiver }

func (l locked) Write(p []byte) (int, error) {
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	return l.r.log.Write(p)
}

func (r *receiver) note(list *[]string, s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*list = append(*list, s)
}

func (r *receiver) counted() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts
}

// sign is the signature of the Standard Webhooks.
func sign(id, timestamp, body string) string {
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	_, _ = io.WriteString(mac, id+"."+timestamp+"."+body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// post delivers a webhook as OpenAI does, after the changes.
func (r *receiver) post(t *testing.T, id, body string, changes ...func(*http.Request)) int {
	t.Helper()
	status, err := r.deliver(t.Context(), id, body, changes...)
	require.NoError(t, err)
	return status
}

func (r *receiver) deliver(ctx context.Context, id, body string, changes ...func(*http.Request)) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+r.Addr()+webhooks.Path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	now := strconv.FormatInt(time.Now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("webhook-id", id)
	req.Header.Set("webhook-timestamp", now)
	req.Header.Set("webhook-signature", sign(id, now, body))
	for _, change := range changes {
		change(req)
	}
	res, err := r.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	return res.StatusCode, nil
}

func about(event, id string) string {
	return `{"id":"evt_1","object":"event","created_at":1794300000,"type":"` + event + `","data":{"id":"` + id + `"}}`
}

func TestEvents(t *testing.T) {
	t.Parallel()
	r := start(t)
	require.Equal(t, 204, r.post(t, "wh_1", about("agent.session.action_required", "sess_1")))
	require.Equal(t, 204, r.post(t, "wh_2", about("agent.session.action_required", "sess_elsewhere")))
	for i, event := range []string{"completed", "failed", "incomplete", "cancelled"} {
		require.Equal(t, 204, r.post(t, "wh_r"+strconv.Itoa(i), about("response."+event, "resp_"+event)))
	}
	require.Equal(t, 204, r.post(t, "wh_3", about("agent.session.idle", "sess_1")))
	require.Equal(t, 204, r.post(t, "wh_4", `{"type":"response.completed","data":{}}`))
	require.Equal(t, []string{"sess_1", "sess_elsewhere"}, r.sessions)
	require.Equal(t, []string{"resp_completed", "resp_failed", "resp_incomplete", "resp_cancelled"}, r.finished)
	require.Equal(t, []string{
		"agent.session.action_required accepted", "agent.session.action_required elsewhere",
		"response.completed accepted", "response.failed accepted", "response.incomplete accepted", "response.cancelled accepted",
		"other ignored", "response.completed ignored",
	}, r.counted())
}

func TestResponsesWithoutRuns(t *testing.T) {
	t.Parallel()
	r := start(t, func(_ *receiver, c *webhooks.Config) { c.Finished = nil })
	require.Equal(t, 204, r.post(t, "wh_1", about("response.completed", "resp_1")))
	require.Equal(t, []string{"response.completed ignored"}, r.counted())
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	body := about("response.completed", "resp_1")
	old := strconv.FormatInt(time.Now().Add(-10*time.Minute).Unix(), 10)
	set := func(key, value string) func(*http.Request) {
		return func(req *http.Request) { req.Header.Set(key, value) }
	}
	for name, test := range map[string]struct {
		body    string
		changes []func(*http.Request)
		status  int
		count   string
	}{
		"no signature":    {body, []func(*http.Request){func(req *http.Request) { req.Header.Del("webhook-signature") }}, 400, "unverified refused"},
		"wrong signature": {body, []func(*http.Request){set("webhook-signature", "v1,AAAA")}, 400, "unverified refused"},
		"of another id":   {body, []func(*http.Request){set("webhook-id", "wh_other")}, 400, "unverified refused"},
		"too old":         {body, []func(*http.Request){set("webhook-timestamp", old), set("webhook-signature", sign("wh_1", old, body))}, 400, "unverified refused"},
		"too large":       {strings.Repeat("x", 300<<10), nil, 413, "unverified refused"},
		"not JSON":        {"oops", nil, 400, "other refused"},
		"no event":        {`{"data":{"id":"resp_1"}}`, nil, 400, "other refused"},
		"another method":  {body, []func(*http.Request){func(req *http.Request) { req.Method = http.MethodPut }}, 405, ""},
		"another path":    {body, []func(*http.Request){func(req *http.Request) { req.URL.Path = "/metrics" }}, 404, ""},
		"several, one fits": {body, []func(*http.Request){func(req *http.Request) {
			req.Header.Set("webhook-signature", "v1,AAAA "+req.Header.Get("webhook-signature"))
		}}, 204, "response.completed accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t)
			require.Equal(t, test.status, r.post(t, "wh_1", test.body, test.changes...))
			if test.count == "" {
				require.Empty(t, r.counted())
			} else {
				require.Equal(t, []string{test.count}, r.counted())
			}
			if test.status != 204 {
				require.Empty(t, r.finished)
			}
		})
	}
}

func TestRefusedSignaturesAreLoggedSparingly(t *testing.T) {
	t.Parallel()
	r := start(t)
	for range 5 {
		r.post(t, "wh_1", "{}", func(req *http.Request) { req.Header.Set("webhook-signature", "v1,AAAA") })
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	require.Equal(t, 1, strings.Count(r.log.String(), "level=WARN"))
}

func TestARepetitionIsTakenAndNotHandled(t *testing.T) {
	t.Parallel()
	r := start(t)
	for range 3 {
		require.Equal(t, 204, r.post(t, "wh_1", about("response.completed", "resp_1")))
	}
	require.Equal(t, []string{"resp_1"}, r.finished)
	require.Equal(t, []string{"response.completed accepted", "response.completed repeated", "response.completed repeated"}, r.counted())
}

func TestAFailureComesAgain(t *testing.T) {
	t.Parallel()
	tries := 0
	r := start(t, func(r *receiver, c *webhooks.Config) {
		c.Finished = func(context.Context, string) error {
			if tries++; tries == 1 {
				return errors.New("no store")
			}
			return nil
		}
	})
	require.Equal(t, 503, r.post(t, "wh_1", about("response.completed", "resp_1")))
	require.Equal(t, 204, r.post(t, "wh_1", about("response.completed", "resp_1")))
	require.Equal(t, 204, r.post(t, "wh_1", about("response.completed", "resp_1")))
	require.Equal(t, 2, tries)
}

func TestARepetitionDuringTheFirstIsNotTaken(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	r := start(t, func(_ *receiver, c *webhooks.Config) {
		c.Finished = func(context.Context, string) error { close(entered); <-leave; return nil }
	})
	first := make(chan int, 1)
	go func() {
		status, _ := r.deliver(t.Context(), "wh_1", about("response.completed", "resp_1"))
		first <- status
	}()
	<-entered
	require.Equal(t, 503, r.post(t, "wh_1", about("response.completed", "resp_1")))
	close(leave)
	require.Equal(t, 204, <-first)
	require.Equal(t, 204, r.post(t, "wh_1", about("response.completed", "resp_1")))
}

func TestHandlingIsBounded(t *testing.T) {
	t.Parallel()
	r := start(t, func(_ *receiver, c *webhooks.Config) {
		c.Timeout = 20 * time.Millisecond
		c.Finished = func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }
	})
	require.Equal(t, 503, r.post(t, "wh_1", about("response.completed", "resp_1")))
}

func TestNewRefusesBadConfiguration(t *testing.T) {
	t.Parallel()
	served := func(string) bool { return true }
	for name, test := range map[string]struct {
		cfg  webhooks.Config
		want string
	}{
		"no callback":   {webhooks.Config{Listen: "127.0.0.1:0", Secret: secret}, "ActionRequired"},
		"no secret":     {webhooks.Config{Listen: "127.0.0.1:0", ActionRequired: served}, "OPENAI_WEBHOOK_SECRET"},
		"short secret":  {webhooks.Config{Listen: "127.0.0.1:0", Secret: "guess", ActionRequired: served}, "5 characters"},
		"half a secret": {webhooks.Config{Listen: "127.0.0.1:0", Secret: "whsec_MDEy", ActionRequired: served}, "copy it whole"},
		"no port":       {webhooks.Config{Listen: "localhost", Secret: secret, ActionRequired: served}, "host:port"},
		"no such host":  {webhooks.Config{Listen: "192.0.2.1:1", Secret: secret, ActionRequired: served}, "--webhook-listen"},
	} {
		_, err := webhooks.New(test.cfg)
		require.ErrorContains(t, err, test.want, name)
	}
}
