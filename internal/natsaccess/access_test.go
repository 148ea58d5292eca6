package natsaccess_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/natsaccess"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/queue"
	"github.com/callfan/callfan/pkg/results/kvstore"
)

const patience = 30 * time.Second

// installation is a dispatcher at the server, as far as executors see one.
type installation struct {
	access
	conn   *queue.Conn
	nonces call.Nonces
	calls  atomic.Int64

	mu       sync.Mutex
	outcomes []call.Delivered
}

func (a access) connect(t testing.TB, name string) *queue.Conn {
	t.Helper()
	cfg := a.user(name)
	cfg.URL, cfg.Partitions, cfg.Logger = a.server.URL(), 1, slog.New(slog.NewTextHandler(t.Output(), nil))
	cfg.OnPermissionError = func(e *queue.PermissionError) { t.Errorf("%s lacks a permission: %v", name, e) }
	conn, err := queue.Connect(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return conn
}

func install(t testing.TB, a access) *installation {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	i := &installation{access: a, conn: a.connect(t, "dispatcher")}
	var consuming sync.WaitGroup
	t.Cleanup(func() { cancel(); consuming.Wait() })
	require.NoError(t, i.conn.Provision(ctx))
	secret, err := i.conn.Secret(ctx)
	require.NoError(t, err)
	i.nonces = call.NewNonces(secret)
	_, err = i.conn.ServeRegistry(ctx)
	require.NoError(t, err)
	require.NoError(t, i.conn.ServeOutcomes(ctx, func(context.Context, call.Question) (call.Standing, error) { return call.StandingPending, nil }))
	store, err := kvstore.New(ctx, i.conn.JetStream(), kvstore.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close() })
	consuming.Go(func() {
		_ = i.conn.Consume(ctx, 0, func(batch []call.Delivered) {
			i.mu.Lock()
			defer i.mu.Unlock()
			for _, d := range batch {
				i.outcomes = append(i.outcomes, d)
				d.Ack()
			}
		})
	})
	return i
}

func (i *installation) publish(t testing.TB, function, id string) call.Dispatch {
	t.Helper()
	key := call.Key{Session: "s", Turn: "t", Call: id}
	d := call.Dispatch{
		Call: call.Call{Key: key, Function: function, Arguments: []byte(`{}`)}, Attempt: 1, Handover: 1,
		Nonce: i.nonces.For(key, call.Token(function), 1), Timeout: 30 * time.Second, Deadline: time.Now().Add(time.Minute),
	}
	for _, err := range i.conn.Publish(t.Context(), []call.Dispatch{d}) {
		require.NoError(t, err)
	}
	return d
}

func (i *installation) outcomesOf(key call.Key) (found int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, d := range i.outcomes {
		if d.Invalid == nil && d.Outcome.Key == key {
			found++
		}
	}
	return found
}

// serve does everything that an executor does, for one call of each function.
func (i *installation) serve(t testing.TB, pool string, functions ...string) {
	t.Helper()
	ctx := t.Context()
	executor := i.connect(t, pool)
	var declared []call.Function
	for _, name := range functions {
		declared = append(declared, call.Function{Name: name})
	}
	binding, err := executor.Register(ctx, queue.Registration{Pool: pool, Functions: declared})
	require.NoError(t, err)
	puller, err := executor.Bind(ctx, binding)
	require.NoError(t, err)
	t.Cleanup(puller.Close)
	require.NoError(t, executor.Ready(ctx))
	cancelled := make(chan call.Key, 1)
	stop, err := executor.OnCancel(functions, func(key call.Key, _ string) { cancelled <- key })
	require.NoError(t, err)
	t.Cleanup(stop)
	for _, function := range functions {
		d := i.publish(t, function, fmt.Sprintf("call_%d", i.calls.Add(1)))
		served := false
		for deadline := time.Now().Add(patience); !served; {
			require.Less(t, time.Now(), deadline, "no call of %s", function)
			require.NoError(t, puller.Pull(ctx, 1, func(taken *queue.Taken) {
				served = true
				require.NoError(t, taken.InProgress())
				standing, err := executor.Lookup(ctx, taken.Dispatch)
				require.NoError(t, err)
				require.Equal(t, call.StandingPending, standing)
				require.NoError(t, executor.Report(ctx, taken.Dispatch, call.Outcome{Kind: call.Success, Output: []byte(`"sunny"`)}))
				require.NoError(t, taken.Ack())
			}))
		}
		require.Eventually(t, func() bool { return i.outcomesOf(d.Key) == 1 }, patience, 10*time.Millisecond, function)
		require.NoError(t, i.conn.Cancel(ctx, d.Key, function, "the turn ended"))
		require.Equal(t, d.Key, <-cancelled)
	}
	require.Eventually(t, func() bool { return !strings.Contains(i.state(t), " waiting") }, patience, 10*time.Millisecond, "acks arrive")
}

// state is all that a team must not change: streams, consumers, how much is in them, and what is stored.
func (i *installation) state(t testing.TB) string {
	t.Helper()
	var lines []string
	streams := i.conn.JetStream().ListStreams(t.Context())
	for info := range streams.Info() {
		line := info.Config.Name + " " + slices.Sorted(slices.Values(info.Config.Subjects))[0]
		if !strings.HasPrefix(info.Config.Name, "KV_") && info.State.Msgs > 0 {
			line += " waiting"
		}
		stream, err := i.conn.JetStream().Stream(t.Context(), info.Config.Name)
		require.NoError(t, err)
		consumers := stream.ConsumerNames(t.Context())
		for name := range consumers.Name() {
			line += " " + name
		}
		require.NoError(t, consumers.Err())
		lines = append(lines, line)
	}
	require.NoError(t, streams.Err())
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// raw is a user without the manners of an executor.
func (i *installation) raw(t testing.TB, name string) (conn *nats.Conn, refused func() []string) {
	t.Helper()
	cfg := i.user(name)
	var mu sync.Mutex
	var all []string
	options := []nats.Option{nats.CustomInboxPrefix(cfg.InboxPrefix), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, err.Error())
	})}
	switch {
	case cfg.CredsFile != "":
		options = append(options, nats.UserCredentials(cfg.CredsFile))
	case cfg.NKeyFile != "":
		option, err := nats.NkeyOptionFromSeed(cfg.NKeyFile)
		require.NoError(t, err)
		options = append(options, option)
	default:
		options = append(options, nats.UserInfo(cfg.User, cfg.Password))
	}
	conn, err := nats.Connect(i.server.URL(), options...)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return conn, func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(all) }
}

// forbidden are subjects on which the team weather must not publish, and what it would do there.
func forbidden(prefix, api string) (publish map[string]string, subscribe []string) {
	upper := strings.ToUpper(prefix)
	publish = map[string]string{
		prefix + ".call.get_weather": "publish a call", prefix + ".call.charge": "publish a call of another function",
		prefix + ".result.charge.p00": "report an outcome of another function",
		prefix + ".register.charge":   "register another function", prefix + ".outcome.charge": "look up another function's call",
		prefix + ".cancel.get_weather": "cancel", prefix + ".dead.get_weather": "write dead letters",
		"_INBOX_billing.x": "answer another's request", "_INBOX.x": "answer a request", "_INBOX_dispatcher.x": "answer the dispatcher's",
		"$JS.ACK." + upper + "_CALLS.pool_billing.1.1.1.1.0": "ack another's call", "$JS.ACK." + upper + "_RESULTS.res_p00.1.1.1.1.0": "ack an outcome",
		"$KV." + upper + "_STATE.function.charge": "write the registry", "$KV.FX_RESULTS.x": "write results",
		"$SYS.REQ.SERVER.PING": "ask the server",
	}
	for _, api := range []string{"$JS.API", api} {
		for subject, what := range map[string]string{
			"INFO": "ask for the account", "STREAM.NAMES": "list streams", "STREAM.LIST": "list streams", "STREAM.CREATE.EVIL": "create a stream",
			"CONSUMER.MSG.NEXT." + upper + "_CALLS.pool_billing": "pull another's calls", "CONSUMER.INFO." + upper + "_CALLS.pool_billing": "see another's consumer",
			"CONSUMER.MSG.NEXT." + upper + "_RESULTS.res_p00":          "pull outcomes",
			"CONSUMER.CREATE." + upper + "_CALLS.evil":                 "create a consumer",
			"CONSUMER.CREATE." + upper + "_CALLS.pool_weather":         "change its own consumer",
			"CONSUMER.DURABLE.CREATE." + upper + "_CALLS.evil":         "create a durable",
			"CONSUMER.DELETE." + upper + "_CALLS.pool_weather":         "delete its own consumer",
			"CONSUMER.DELETE." + upper + "_CALLS.pool_billing":         "delete another's consumer",
			"CONSUMER.PAUSE." + upper + "_CALLS.pool_billing":          "pause another's consumer",
			"CONSUMER.NAMES." + upper + "_CALLS":                       "list consumers",
			"DIRECT.GET.KV_" + upper + "_STATE.$KV.FN_STATE.secret":    "read the secret",
			"CONSUMER.CREATE.KV_" + upper + "_STATE.evil.$KV.FN_STATE": "watch the registry",
		} {
			publish[api+"."+subject] = what
		}
		for _, stream := range []string{upper + "_CALLS", upper + "_RESULTS", upper + "_DEAD", "KV_" + upper + "_STATE", resultsStream, "KV_" + upper + "_RUNS"} {
			for _, request := range []string{"STREAM.INFO.", "STREAM.UPDATE.", "STREAM.DELETE.", "STREAM.PURGE.", "STREAM.MSG.GET.", "STREAM.MSG.DELETE.", "STREAM.SNAPSHOT.", "DIRECT.GET.", "CONSUMER.CREATE."} {
				publish[api+"."+request+stream] = request + stream
			}
		}
	}
	return publish, []string{
		">", "_INBOX.>", "_INBOX_billing.>", "_INBOX_dispatcher.>", "*.>", prefix + ".>", prefix + ".call.>", prefix + ".call.get_weather", prefix + ".result.>",
		prefix + ".register.>", prefix + ".register.get_weather", prefix + ".outcome.get_weather", prefix + ".cancel.>", prefix + ".cancel.charge",
		"$JS.>", "$JS.ACK.>", "$JS.EVENT.ADVISORY.>", "$KV.>", "$SYS.>", "_R_.>",
	}
}

const resultsStream = "KV_" + kvstore.DefaultBucket

func TestATeamServesItsFunctionsAndNothingElse(t *testing.T) {
	t.Parallel()
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := install(t, form(t))
			i.serve(t, "billing", "charge")
			i.serve(t, "weather", "get_weather", "a weather.map")
			before := i.state(t)

			conn, refused := i.raw(t, "weather")
			cfg := i.user("weather").WithDefaults()
			publish, subscribe := forbidden(cfg.Prefix, cfg.APIPrefix)
			for subject := range publish {
				require.NoError(t, conn.PublishMsg(&nats.Msg{Subject: subject, Reply: cfg.InboxPrefix + ".reply", Data: []byte(`{}`)}))
			}
			for _, subject := range subscribe {
				_, err := conn.SubscribeSync(subject)
				require.NoError(t, err)
			}
			require.NoError(t, conn.FlushTimeout(patience))
			require.Eventually(t, func() bool { return len(refused()) >= len(publish)+len(subscribe) }, patience, 10*time.Millisecond)
			errs := strings.ToLower(strings.Join(refused(), "\n"))
			for subject, what := range publish {
				require.Contains(t, errs, strings.ToLower(`permissions violation for publish to "`+subject+`"`), what)
			}
			for _, subject := range subscribe {
				require.Contains(t, errs, strings.ToLower(`permissions violation for subscription to "`+subject+`"`))
			}
			require.Equal(t, before, i.state(t))

			// The server allows no more than the list, and the list is what serving took.
			grant := i.grants["weather"].Permissions
			for _, subject := range grant.Subscribe {
				_, err := conn.SubscribeSync(strings.ReplaceAll(subject, "*", "x"))
				require.NoError(t, err)
			}
			require.NoError(t, conn.FlushTimeout(patience))
			require.Len(t, refused(), len(publish)+len(subscribe))
		})
	}
}

// In an account of its own a team could be allowed everything, and would still have only what the account imports. The
// reply subject, which permissions do not cover, leads nowhere but into the account.
func TestAnAccountIsAWall(t *testing.T) {
	t.Parallel()
	i := install(t, byConfig(t, natsaccess.Options{Accounts: true}, func(config string) string {
		const users = "  WEATHER {\n    users: [\n"
		require.Contains(t, config, users)
		return strings.Replace(config, users, users+"      { user: insider, password: secret }\n", 1)
	}))
	i.serve(t, "billing", "charge")
	i.serve(t, "weather", "get_weather", "a weather.map")
	before := i.state(t)
	conn, refused := i.raw(t, "insider")
	publish, _ := forbidden("fn", "FN.API")
	for subject, what := range publish {
		reply, err := conn.Request(subject, []byte(`{}`), 300*time.Millisecond)
		if err == nil { // JetStream says that the account has none
			require.Contains(t, string(reply.Data), "not enabled", what)
		}
	}
	// Replies that would be another team's outcomes, if they were led there.
	forged := "fn.result.charge.p00"
	require.NoError(t, conn.PublishRequest("FN.API.CONSUMER.INFO.FN_CALLS.pool_weather", forged, nil))
	require.NoError(t, conn.PublishRequest("fn.result.get_weather.p00", forged, []byte(`{}`)))
	require.NoError(t, conn.FlushTimeout(patience))
	require.Eventually(t, func() bool { return i.invalid() == 1 }, patience, 10*time.Millisecond, "what it may publish has arrived")

	// What others do is not to be heard.
	everything, err := conn.SubscribeSync(">")
	require.NoError(t, err)
	require.NoError(t, conn.FlushTimeout(patience))
	i.serve(t, "billing", "charge")
	require.NoError(t, conn.FlushTimeout(patience))
	for {
		heard, err := everything.NextMsg(time.Millisecond)
		if err != nil {
			break
		}
		require.Contains(t, []string{"fn.cancel.get_weather"}, heard.Subject)
	}
	require.Empty(t, refused(), "the account itself allows everything")
	require.Equal(t, before, i.state(t))
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, d := range i.outcomes {
		require.False(t, d.Invalid != nil && d.Token == "charge", "a reply was led into another team's outcomes")
	}
}

// invalid counts the messages among the outcomes that are none.
func (i *installation) invalid() (found int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, d := range i.outcomes {
		if d.Invalid != nil {
			found++
		}
	}
	return found
}
