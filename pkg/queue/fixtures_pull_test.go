package queue

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// What an executor does about a status message of a pull.
const (
	statusContinue  = "continue"
	statusEnded     = "ended"
	statusRegister  = "register"
	statusPullAgain = "pull_again"
	statusAsk       = "ask_consumer_info"
	statusFault     = "fault"
)

type statusCase struct {
	Name    string            `json:"name"`
	Headers map[string]string `json:"headers"`
	Action  string            `json:"action"`
	Pending int               `json:"pending"`
}

func TestFixturePullStatuses(t *testing.T) {
	t.Parallel()
	l := &line{consumer: "pool_crm"}
	for _, c := range readIndex[statusCase](t, "pull-statuses.json") {
		m := &nats.Msg{Header: nats.Header{}}
		for name, value := range c.Headers {
			m.Header[name] = []string{value}
		}
		require.True(t, isStatus(m), c.Name)
		if c.Headers["Status"] == "503" {
			require.Equal(t, statusAsk, c.Action)
			continue
		}
		v := l.status(t.Context(), m)
		action := statusFault
		switch {
		case !v.ended:
			action = statusContinue
		case v.err == nil:
			action = statusEnded
			require.Equal(t, c.Pending, v.left, c.Name)
		case errors.Is(v.err, ErrUnbound):
			action = statusRegister
		case errors.Is(v.err, ErrInterrupted):
			action = statusPullAgain
		}
		require.Equal(t, c.Action, action, c.Name)
	}
}

type deliveriesCase struct {
	Name       string `json:"name"`
	Reply      string `json:"reply"`
	Deliveries int    `json:"deliveries"`
}

func TestFixtureDeliveries(t *testing.T) {
	t.Parallel()
	for _, c := range readIndex[deliveriesCase](t, "deliveries.json") {
		require.Equal(t, c.Deliveries, deliveries(c.Reply), c.Name)
	}
}

// What this package asks for is within the documented bounds.
func TestPullRequestsFitTheirSchema(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	_, puller := i.executor(t, "crm", "get_customer")
	l, err := puller.takeLine()
	require.NoError(t, err)
	listener := connect(t, Config{URL: i.server.URL()})
	seen, err := listener.nc.SubscribeSync(l.request)
	require.NoError(t, err)
	require.NoError(t, listener.nc.Flush())
	require.NoError(t, l.ask(maxPull))
	m, err := seen.NextMsgWithContext(testContext(t))
	require.NoError(t, err)
	require.True(t, json.Valid(m.Data))
	payloadFits(t, "pull-request", m.Data, true, string(m.Data))
	l.drop(func(*nats.Msg) {})
}
