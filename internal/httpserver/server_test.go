package httpserver_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/callfan/callfan/internal/httpserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func listen(t *testing.T) *httpserver.Server {
	t.Helper()
	s, err := httpserver.Listen("127.0.0.1:0")
	require.NoError(t, err)
	return s
}

func get(s *httpserver.Server) (string, error) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + s.Addr())
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func TestARequestUnderWayIsFinished(t *testing.T) {
	t.Parallel()
	s := listen(t)
	entered, release := make(chan struct{}), make(chan struct{})
	s.Serve(&http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-release
		_, _ = io.WriteString(w, "done")
	})})
	answered := make(chan string, 1)
	go func() {
		body, err := get(s)
		if err != nil {
			body = err.Error()
		}
		answered <- body
	}()
	<-entered
	closed := make(chan error, 1)
	go func() { closed <- s.Close(t.Context()) }()
	require.Eventually(t, func() bool { _, err := get(s); return err != nil }, 10*time.Second, time.Millisecond, "it still listens")
	close(release)
	require.Equal(t, "done", <-answered)
	require.NoError(t, <-closed)
}

func TestARequestThatDoesNotEndIsCut(t *testing.T) {
	t.Parallel()
	s := listen(t)
	entered := make(chan struct{})
	s.Serve(&http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	})})
	answered := make(chan error, 1)
	go func() { _, err := get(s); answered <- err }()
	<-entered
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Close(over), context.Canceled)
	require.Error(t, <-answered)
}

func TestListening(t *testing.T) {
	t.Parallel()
	s := listen(t)
	_, err := httpserver.Listen(s.Addr())
	require.ErrorContains(t, err, s.Addr())
	require.NoError(t, s.Close(t.Context()), "it never served")
	again, err := httpserver.Listen(s.Addr())
	require.NoError(t, err)
	require.NoError(t, again.Close(t.Context()))
}
