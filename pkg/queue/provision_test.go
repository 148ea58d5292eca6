package queue

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/callfan/callfan/internal/testservers"
)

func TestProvisionByManyAtOnce(t *testing.T) {
	t.Parallel()
	server := testservers.NATS(t)
	ctx := testContext(t)
	secrets := make([]string, 5)
	var group errgroup.Group
	for n := range secrets {
		c := connect(t, Config{URL: server.URL(), Partitions: 8})
		group.Go(func() error {
			if err := c.Provision(ctx); err != nil {
				return err
			}
			secret, err := c.Secret(ctx)
			secrets[n] = string(secret)
			return errors.Join(err, c.Provision(ctx))
		})
	}
	require.NoError(t, group.Wait())
	require.Len(t, secrets[0], 32)
	for _, secret := range secrets {
		require.Equal(t, secrets[0], secret)
	}
	c := connect(t, Config{URL: server.URL(), Partitions: 8})
	stream, err := c.js.Stream(ctx, "FN_RESULTS")
	require.NoError(t, err)
	require.Equal(t, 8, stream.CachedInfo().State.Consumers)
	require.Equal(t, 5000, stream.CachedInfo().Config.MaxConsumers)
	require.EqualValues(t, testservers.DefaultNATSMaxPayload, stream.CachedInfo().Config.MaxMsgSize)
	calls, err := c.js.Stream(ctx, "FN_CALLS")
	require.NoError(t, err)
	cfg := calls.CachedInfo().Config
	require.Equal(t, jetstream.WorkQueuePolicy, cfg.Retention)
	require.Equal(t, jetstream.DiscardNew, cfg.Discard)
	require.True(t, cfg.DiscardNewPerSubject)
	require.EqualValues(t, 100_000, cfg.MaxMsgsPerSubject)
	require.Equal(t, 2*time.Minute, cfg.Duplicates)
}

func TestProvisionChangesWhatMayChange(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	cfg := i.cfg
	cfg.Backlog, cfg.CallsMaxBytes = 7, 8<<20
	require.NoError(t, connect(t, cfg).Provision(testContext(t)))
	stream, err := i.dispatcher.js.Stream(testContext(t), "FN_CALLS")
	require.NoError(t, err)
	require.EqualValues(t, 7, stream.CachedInfo().Config.MaxMsgsPerSubject)
	require.EqualValues(t, 8<<20, stream.CachedInfo().Config.MaxBytes)
}

func TestProvisionRefusesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	ctx := testContext(t)
	other := i.cfg
	other.Partitions = 9
	err := connect(t, other).Provision(ctx)
	require.ErrorIs(t, err, ErrIncompatible)
	require.ErrorContains(t, err, "set partitions to 4")

	// Prefixes that differ in case share their stream names.
	other = i.cfg
	other.Prefix = "FN"
	require.ErrorIs(t, connect(t, other).Provision(ctx), ErrIncompatible)

	other = i.cfg
	other.Storage = StorageMemory
	require.ErrorContains(t, connect(t, other).Provision(ctx), "storage")

	_, err = i.dispatcher.js.CreateStream(ctx, jetstream.StreamConfig{Name: "MINE", Subjects: []string{"mine.>"}})
	require.NoError(t, err)
	other = i.cfg
	other.Prefix = "mine"
	err = connect(t, other).Provision(ctx)
	require.ErrorIs(t, err, ErrIncompatible)
	require.ErrorContains(t, err, "another stream already captures")

	_, err = i.dispatcher.js.CreateStream(ctx, jetstream.StreamConfig{Name: "LIM_CALLS", Subjects: []string{"lim.call.*"}})
	require.NoError(t, err)
	other = i.cfg
	other.Prefix = "lim"
	err = connect(t, other).Provision(ctx)
	require.ErrorIs(t, err, ErrIncompatible)
	require.ErrorContains(t, err, "retention")
}

func TestProvisionNamesWhatTheServerLacks(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	small := testservers.NATS(t, testservers.NATSMaxPayload(32<<10))
	err := connect(t, Config{URL: small.URL()}).Provision(ctx)
	require.ErrorIs(t, err, ErrIncompatible)
	require.ErrorContains(t, err, "max_payload")

	full := testservers.NATS(t, testservers.NATSConfig("jetstream { max_file_store: 200MB }"))
	err = connect(t, Config{URL: full.URL()}).Provision(ctx)
	require.ErrorContains(t, err, "no room")

	single := testservers.NATS(t)
	err = connect(t, Config{URL: single.URL(), Replicas: 3}).Provision(ctx)
	require.ErrorContains(t, err, "replicas")
}

func TestServerAbsentAtStart(t *testing.T) {
	t.Parallel()
	server := testservers.NATS(t)
	server.Stop()
	ctx := testContext(t)
	c := connect(t, Config{URL: server.URL(), Partitions: 2})
	require.ErrorContains(t, c.Ready(ctx), "not connected")
	bounded, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, c.Provision(bounded), context.DeadlineExceeded)

	executor := connect(t, Config{URL: server.URL()})
	registered := make(chan error, 1)
	go func() {
		_, err := executor.Register(ctx, Registration{Pool: "p", Functions: declare("f")})
		registered <- err
	}()
	served := make(chan error, 1)
	go func() {
		err := c.Provision(ctx)
		if err == nil {
			_, err = c.ServeRegistry(ctx)
		}
		served <- err
	}()
	server.Start()
	require.NoError(t, <-served)
	require.NoError(t, <-registered)
	require.NoError(t, c.Ready(ctx))
	server.Kill()
	require.Eventually(t, func() bool { return c.Ready(ctx) != nil }, patience, 10*time.Millisecond)
}

func TestWrongPasswordIsNamedAndWaitedFor(t *testing.T) {
	t.Parallel()
	server := testservers.NATS(t, leastPrivilege(t))
	c := connect(t, Config{URL: server.URL(), User: "dispatcher", Password: "wrong"})
	require.ErrorIs(t, c.Ready(testContext(t)), nats.ErrAuthorization)
	bounded, cancel := context.WithTimeout(testContext(t), 3*time.Second)
	defer cancel()
	require.ErrorIs(t, c.Provision(bounded), context.DeadlineExceeded, "it goes on trying")
	require.False(t, c.nc.IsClosed())
}

func TestConfigurationMistakes(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]Config{
		"prefix":           {Prefix: "a.b"},
		"partitions":       {Partitions: 5000},
		"replicas":         {Replicas: -1},
		"storage":          {Storage: "tape"},
		"more than one of": {User: "u", Token: "t"},
		"nkey file":        {NKeyFile: "/does/not/exist"},
		"key file":         {CertFile: "x"},
		"ack wait":         {AckWait: time.Millisecond},
		"durations":        {RetryFor: -1},
		"limits":           {Backlog: -1},
	} {
		_, err := Connect(t.Context(), cfg)
		require.ErrorContains(t, err, want)
	}
	require.Equal(t, "nats://xxxxx@a:4222,nats://b:4222", redact("nats://user:secret@a:4222,nats://b:4222"))
	require.NotContains(t, redact("nats://tok%zz@x"), "tok")
}
