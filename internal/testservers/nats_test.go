package testservers_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/testservers"
)

func natsClient(t *testing.T, server *testservers.NATSServer, opts ...nats.Option) *nats.Conn {
	t.Helper()
	opts = append([]nats.Option{nats.MaxReconnects(-1), nats.ReconnectWait(10 * time.Millisecond)}, opts...)
	conn, err := nats.Connect(server.URL(), opts...)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return conn
}

func stream(t *testing.T, conn *nats.Conn) (jetstream.JetStream, jetstream.Stream) {
	t.Helper()
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "KEPT", Subjects: []string{"kept.>"}})
	require.NoError(t, err)
	return js, stream
}

func TestNATSHasJetStreamAndALargePayload(t *testing.T) {
	t.Parallel()
	conn := natsClient(t, testservers.NATS(t))
	require.EqualValues(t, testservers.DefaultNATSMaxPayload, conn.MaxPayload())
	js, _ := stream(t, conn)
	_, err := js.Publish(t.Context(), "kept.large", make([]byte, 4<<20))
	require.NoError(t, err)
}

func TestNATSRunsTheVersionOfTheModule(t *testing.T) {
	t.Parallel()
	conn := natsClient(t, testservers.NATS(t))
	require.Regexp(t, `^2\.15\.`, conn.ConnectedServerVersion())
}

func TestNATSOptions(t *testing.T) {
	t.Parallel()
	server := testservers.NATS(t, testservers.NATSMaxPayload(64<<10), testservers.NATSMonitoring(), testservers.NATSConfig(`
		authorization { users: [ { user: "executor", password: "secret", permissions { publish: ["fn.result.>"], subscribe: ["_INBOX.>"] } } ] }
	`))
	_, err := nats.Connect(server.URL())
	require.ErrorIs(t, err, nats.ErrAuthorization)
	conn := natsClient(t, server, nats.UserInfo("executor", "secret"))
	require.EqualValues(t, 64<<10, conn.MaxPayload())

	response, err := http.Get(server.MonitorURL() + "/varz")
	require.NoError(t, err)
	defer response.Body.Close()
	var varz struct {
		MaxPayload int `json:"max_payload"`
	}
	require.NoError(t, json.NewDecoder(response.Body).Decode(&varz))
	require.Equal(t, 64<<10, varz.MaxPayload)
}

func TestNATSWithoutMonitoringHasNoMonitorURL(t *testing.T) {
	t.Parallel()
	require.Empty(t, testservers.NATS(t).MonitorURL())
}

func TestNATSComesBackWithItsStreams(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testservers.NATSServer){
		"stop": (*testservers.NATSServer).Stop, "kill": (*testservers.NATSServer).Kill,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testservers.NATS(t)
			conn := natsClient(t, server)
			js, _ := stream(t, conn)
			_, err := js.Publish(t.Context(), "kept.one", []byte("payload"))
			require.NoError(t, err)

			end(server)
			require.Eventually(t, func() bool { return !conn.IsConnected() }, 20*time.Second, 5*time.Millisecond)
			end(server) // a second time does nothing

			server.Start()
			require.Eventually(t, conn.IsConnected, 5*time.Second, 5*time.Millisecond)
			kept, err := js.Stream(t.Context(), "KEPT")
			require.NoError(t, err)
			message, err := kept.GetLastMsgForSubject(t.Context(), "kept.one")
			require.NoError(t, err)
			require.Equal(t, "payload", string(message.Data))
		})
	}
}

func TestNATSPauseHoldsAnswersUntilResume(t *testing.T) {
	t.Parallel()
	server := testservers.NATS(t)
	conn := natsClient(t, server)
	server.Pause()
	require.ErrorIs(t, conn.FlushTimeout(200*time.Millisecond), nats.ErrTimeout)
	server.Resume()
	require.NoError(t, conn.FlushTimeout(5*time.Second))
}

func TestNATSThatCannotStartShowsItsLog(t *testing.T) {
	t.Parallel()
	failure := fatal(t, func(t testing.TB) { testservers.NATS(t, testservers.NATSConfig("no_such_key: 1")) })
	require.Contains(t, failure, "no_such_key")
}

func TestServersRunSideBySide(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 3 {
		seen[testservers.NATS(t).URL()] = true
		seen[testservers.Redis(t).URL()] = true
	}
	require.Len(t, seen, 6)
}
