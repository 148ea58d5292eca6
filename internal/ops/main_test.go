package ops_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/callfan/callfan/internal/ops"
	"github.com/callfan/callfan/internal/ops/opsclient"
	"github.com/callfan/callfan/pkg/call"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// admin stands for a dispatcher; the real one is in internal/app's tests.
type admin struct {
	sessions  []ops.Session
	functions []ops.Function
	calls     []ops.Call
	more      bool
	deadLetters
	decisions
	ran
	err      error
	attached []string
	detached []string
}

func (a *admin) Sessions(context.Context) ([]ops.Session, error)   { return a.sessions, a.err }
func (a *admin) Functions(context.Context) ([]ops.Function, error) { return a.functions, a.err }
func (a *admin) Calls(context.Context, string) ([]ops.Call, error) { return a.calls, a.err }

func (a *admin) CallsIn(_ context.Context, states []call.State, limit int) (ops.CallList, error) {
	a.asked = fmt.Sprintf("%v %d", states, limit)
	return ops.CallList{Calls: a.calls, More: a.more}, a.err
}

func (a *admin) Call(_ context.Context, key call.Key) (ops.Call, error) {
	for _, c := range a.calls {
		if c.Key == key {
			return c, a.err
		}
	}
	return ops.Call{Key: key}, a.err
}

func (a *admin) Attach(_ context.Context, ids ...string) error {
	a.attached = append(a.attached, ids...)
	return a.err
}

func (a *admin) Detach(_ context.Context, ids ...string) error {
	a.detached = append(a.detached, ids...)
	return a.err
}

// bench is a server with what it works on.
type bench struct {
	*ops.Server
	admin *admin
	http  *http.Client
}

func setup(t *testing.T, cfg ops.Config) *bench {
	t.Helper()
	b := &bench{admin: &admin{}, http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}}
	cfg.Admin = b.admin
	if cfg.Listen == "" {
		cfg.Listen = "127.0.0.1:0"
	}
	if cfg.Metrics == nil {
		cfg.Metrics = ops.NewMetrics("test").Handler()
	}
	var err error
	b.Server, err = ops.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close(context.Background())) })
	return b
}

func (b *bench) client(t *testing.T, token string) *opsclient.Client {
	t.Helper()
	c, err := opsclient.New(opsclient.Config{URL: "http://" + b.Addr() + "/", Token: token, HTTPClient: b.http})
	require.NoError(t, err)
	return c
}

// do sends a request and returns the status and the body.
func (b *bench) do(t *testing.T, method, path, body string, headers ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+b.Addr()+path, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := b.http.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, strings.TrimSpace(string(text))
}

var errMissing = errors.New("it is missing")
