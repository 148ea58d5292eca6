package queue

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/call"
)

// leastPrivilege is a user dispatcher that may do everything, and a user weather that
// may do what an executor of pool weather with the function get_weather has to.
func leastPrivilege(t testing.TB) testservers.NATSOption {
	t.Helper()
	granted, err := ExecutorPermissions(Config{}, "weather", []string{"get_weather"})
	require.NoError(t, err)
	return testservers.NATSConfig(fmt.Sprintf(`authorization { users = [
		{ user: dispatcher, password: secret }
		{ user: weather, password: secret, permissions: { publish: { allow: ["%s"] }, subscribe: { allow: ["%s"] } } }
	] }`, strings.Join(granted.Publish, `", "`), strings.Join(granted.Subscribe, `", "`)))
}

func TestExecutorPermissions(t *testing.T) {
	t.Parallel()
	granted, err := ExecutorPermissions(Config{Prefix: "Team1", APIPrefix: "Team1.API", InboxPrefix: "in.w"}, "weather", []string{"get_weather", "a b"})
	require.NoError(t, err)
	require.Equal(t, Permissions{
		Publish: []string{
			"Team1.register.get_weather", "Team1.outcome.get_weather", "Team1.result.get_weather.>",
			"Team1.register.=YSBi", "Team1.outcome.=YSBi", "Team1.result.=YSBi.>",
			"Team1.API.CONSUMER.INFO.TEAM1_CALLS.pool_weather", "Team1.API.CONSUMER.MSG.NEXT.TEAM1_CALLS.pool_weather",
			"$JS.ACK.TEAM1_CALLS.pool_weather.>", "$JS.ACK.*.*.TEAM1_CALLS.pool_weather.>",
		},
		Subscribe: []string{"in.w.>", "Team1.cancel.get_weather", "Team1.cancel.=YSBi"},
	}, granted)
	for name, tt := range map[string]struct {
		cfg       Config
		pool      string
		functions []string
		problem   string
	}{
		"pool":       {Config{}, "a.b", []string{"f"}, `the pool name "a.b"`},
		"wildcard":   {Config{}, ">", []string{"f"}, `the pool name ">"`},
		"functions":  {Config{}, "p", nil, "there is none"},
		"function":   {Config{}, "p", []string{""}, "the name is empty"},
		"prefix":     {Config{Prefix: "*"}, "p", []string{"f"}, `prefix "*"`},
		"API prefix": {Config{APIPrefix: "a.>"}, "p", []string{"f"}, `subject "a.>"`},
		"inbox":      {Config{InboxPrefix: "*"}, "p", []string{"f"}, `subject "*"`},
	} {
		_, err := ExecutorPermissions(tt.cfg, tt.pool, tt.functions)
		require.ErrorContains(t, err, tt.problem, name)
	}
}

func TestLeastPrivilege(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	i := install(t, Config{User: "dispatcher", Password: "secret"}, leastPrivilege(t))
	var mu sync.Mutex
	var denied []PermissionError
	executor := connect(t, Config{
		URL: i.server.URL(), User: "weather", Password: "secret", InboxPrefix: "_INBOX_weather",
		OnPermissionError: func(e *PermissionError) { mu.Lock(); denied = append(denied, *e); mu.Unlock() },
	})
	deniedNow := func() []PermissionError {
		mu.Lock()
		defer mu.Unlock()
		return append([]PermissionError(nil), denied...)
	}

	// Everything an executor does, with those permissions alone.
	puller := bind(t, executor, "weather", "get_weather")
	require.NoError(t, executor.Ready(ctx))
	cancelled := make(chan call.Key, 1)
	stop, err := executor.OnCancel([]string{"get_weather"}, func(k call.Key, _ string) { cancelled <- k })
	require.NoError(t, err)
	defer stop()
	require.NoError(t, i.dispatcher.ServeOutcomes(serving(t), func(context.Context, call.Question) (call.Standing, error) {
		return call.StandingAnswered, nil
	}))
	collected := i.collect(t)
	d := i.dispatch("s", "get_weather", 1, `{}`)
	requireNoErrors(t, i.dispatcher.Publish(ctx, []call.Dispatch{d}))
	require.NoError(t, puller.Pull(ctx, 1, func(taken *Taken) {
		require.NoError(t, taken.InProgress())
		standing, err := executor.Lookup(ctx, taken.Dispatch)
		require.NoError(t, err)
		require.Equal(t, call.StandingAnswered, standing)
		require.NoError(t, executor.Report(ctx, taken.Dispatch, call.Outcome{Kind: call.Success, Output: []byte(`"sunny"`)}))
		require.NoError(t, taken.Ack())
	}))
	require.Eventually(t, func() bool { return len(collected.of(d.Key)) == 1 }, patience, 10*time.Millisecond)
	require.Eventually(t, func() bool { return i.messages(t, "FN_CALLS") == 0 }, patience, 10*time.Millisecond, "the ack arrived")
	require.NoError(t, i.dispatcher.Cancel(ctx, d.Key, "get_weather", "turn ended"))
	require.Equal(t, d.Key, <-cancelled)
	require.Empty(t, deniedNow())

	// Another function's subjects are refused, at once and with the reason.
	start := time.Now()
	var refused *PermissionError
	charge := i.dispatch("s", "charge", 2, `{}`)
	require.ErrorAs(t, executor.Report(ctx, charge, call.Outcome{Kind: call.Success, Output: []byte(`"paid"`)}), &refused)
	require.Equal(t, "publish", refused.Operation)
	require.Equal(t, executor.names.result("charge", charge.Partition), refused.Subject)
	require.ErrorContains(t, refused, `user "weather"`)
	require.ErrorIs(t, executor.Publish(ctx, []call.Dispatch{d})[0], ErrPermission)
	_, err = executor.Lookup(ctx, charge)
	require.ErrorIs(t, err, ErrPermission)
	_, err = executor.Register(ctx, Registration{Pool: "weather", Functions: declare("get_weather", "charge")})
	require.ErrorIs(t, err, ErrPermission)
	_, err = executor.Bind(ctx, Binding{Stream: "FN_CALLS", Consumer: "pool_billing"})
	require.ErrorIs(t, err, ErrPermission)
	foreign := &Puller{c: executor, binding: Binding{Stream: "FN_CALLS", Consumer: "pool_billing"}, waits: newBackOff(time.Second)}
	require.ErrorIs(t, foreign.Pull(ctx, 1, func(*Taken) {}), ErrPermission)
	require.Less(t, time.Since(start), 4*time.Second, "a refusal is not a timeout")
	_, err = executor.OnCancel([]string{"charge"}, func(call.Key, string) {})
	require.NoError(t, err, "a refused subscription is reported apart")
	require.Eventually(t, func() bool {
		all := deniedNow()
		return len(all) >= 7 && all[len(all)-1].Operation == "subscribe"
	}, patience, 10*time.Millisecond)
	require.Zero(t, i.messages(t, "FN_CALLS"))
	require.Empty(t, collected.of(charge.Key))
}

// A reply subject is not checked by plain permissions, so an executor can make the
// server write a call into another function's results. Readers must refuse it.
func TestInjectedRepliesAreInvalid(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	i := install(t, Config{User: "dispatcher", Password: "secret", Partitions: 1, RegistryCheck: 200 * time.Millisecond}, leastPrivilege(t))
	collected := i.collect(t)
	executor := connect(t, Config{URL: i.server.URL(), User: "weather", Password: "secret", InboxPrefix: "_INBOX_weather"})
	puller := bind(t, executor, "weather", "get_weather")
	require.NoError(t, executor.nc.PublishMsg(&nats.Msg{
		Subject: "$JS.API.CONSUMER.INFO.FN_CALLS." + puller.Binding().Consumer, Reply: "fn.result.charge.p00",
	}))
	require.Eventually(t, func() bool {
		collected.mu.Lock()
		defer collected.mu.Unlock()
		return len(collected.invalid) == 1
	}, patience, 10*time.Millisecond)
	require.Zero(t, collected.count())

	// What lands under a subject that no partition takes does not stay for ever.
	require.NoError(t, executor.nc.PublishMsg(&nats.Msg{
		Subject: "$JS.API.CONSUMER.INFO.FN_CALLS.pool_weather", Reply: "fn.result.charge.p99",
	}))
	// A call cannot be moved into the results: it carries an expiry, which that stream
	// does not take.
	requireNoErrors(t, i.dispatcher.Publish(ctx, []call.Dispatch{i.dispatch("s", "get_weather", 1, `{}`)}))
	require.NoError(t, executor.nc.PublishMsg(&nats.Msg{
		Subject: "$JS.API.CONSUMER.MSG.NEXT.FN_CALLS.pool_weather", Reply: "fn.result.charge.p00", Data: []byte(`{"batch":1}`),
	}))
	require.Eventually(t, func() bool { return i.messages(t, "FN_DEAD") == 1 && i.messages(t, "FN_RESULTS") == 0 }, patience, 20*time.Millisecond)
	collected.mu.Lock()
	defer collected.mu.Unlock()
	require.Len(t, collected.invalid, 1)
	require.NoError(t, i.dispatcher.Ready(ctx))
}

func serving(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return ctx
}
