package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

// replica is one more dispatcher on the same server.
func (i *installation) replica(t testing.TB) (*Conn, *Registry) {
	t.Helper()
	c := connect(t, i.cfg)
	require.NoError(t, c.Provision(testContext(t)))
	r, err := c.ServeRegistry(serving(t))
	require.NoError(t, err)
	return c, r
}

func (i *installation) consumer(t testing.TB, name string) *jetstream.ConsumerInfo {
	t.Helper()
	consumer, err := i.dispatcher.js.Consumer(testContext(t), "FN_CALLS", name)
	require.NoError(t, err)
	return consumer.CachedInfo()
}

func requireRefused(t testing.TB, err error, code string) {
	t.Helper()
	var refused *RegisterError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, code, refused.Code, refused.Message)
}

func TestRegistrationIsSeenByEveryDispatcher(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	_, other := i.replica(t)
	ctx := testContext(t)
	changed := other.Changed()
	_, ok := other.Function("get weather")
	require.False(t, ok)
	executor := connect(t, Config{URL: i.server.URL()})
	f := call.Function{
		Name: "get weather", Description: "the weather <now>", Parameters: json.RawMessage(`{"type":"object","properties":{"n":{"maximum":9007199254740993}}}`),
		Verifies: true,
		Policy: call.Policy{
			Timeout: call.Duration(time.Second), Effects: call.EffectsSideEffects, TotalDeadline: call.Duration(time.Hour), Attempts: 4, OnUncertain: call.UncertainVerify,
			Backoff: call.Backoff{Initial: call.Duration(time.Second), Max: call.Duration(time.Minute), Multiplier: 1.5, Jitter: 0.1},
		},
	}
	binding, err := executor.Register(ctx, Registration{Pool: "weather", Functions: []call.Function{f}, Language: "go", Version: "1.2"})
	require.NoError(t, err)
	require.Equal(t, Binding{
		Stream: "FN_CALLS", Consumer: "pool_weather", AckWait: 30 * time.Second,
		MaxPayload: i.dispatcher.MaxPayload(), ResultPrefix: "fn.result.", Refresh: 30 * time.Second,
	}, binding)
	<-changed
	for _, r := range []*Registry{i.registry, other} {
		require.Eventually(t, func() bool { _, ok := r.Function("get weather"); return ok }, patience, 5*time.Millisecond)
		got, _ := r.Function("get weather")
		require.Equal(t, f, got)
		require.Len(t, r.Functions(), 1)
		require.Equal(t, "1.2", r.Functions()[0].Version)
	}
	require.Equal(t, []string{"fn.call." + call.Token("get weather")}, i.consumer(t, "pool_weather").Config.FilterSubjects)
	require.Zero(t, i.consumer(t, "pool_weather").Config.BackOff)
	require.Equal(t, 20, i.consumer(t, "pool_weather").Config.MaxDeliver)

	// A dispatcher that starts later knows it from the beginning.
	_, late := i.replica(t)
	_, ok = late.Function("get weather")
	require.True(t, ok)
}

func TestRegistrationsThatAreRefused(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	ctx := testContext(t)
	executor := connect(t, Config{URL: i.server.URL()})
	register := func(pool string, functions ...call.Function) error {
		_, err := executor.Register(ctx, Registration{Pool: pool, Functions: functions})
		return err
	}
	require.NoError(t, register("weather", declare("get_weather", "get_time")...))
	requireRefused(t, register("other", declare("get_weather")...), CodeFunctionTaken)
	requireRefused(t, register("weather", declare("charge", "refund")...), CodePoolTaken)
	for _, pool := range []string{"", "a b", "a.b", "*", ">", "pool/..", "ü", "x\r\n"} {
		requireRefused(t, register(pool, declare("f")...), CodeInvalidPool)
	}
	require.ErrorIs(t, register("p", call.Function{}), ErrInvalidFunction)
	require.ErrorIs(t, register("p", call.Function{Name: "f", Policy: call.Policy{Effects: "?"}}), ErrInvalidFunction)
	require.ErrorIs(t, register("p", call.Function{Name: "f", Policy: call.Policy{OnUncertain: call.UncertainVerify}}), ErrInvalidFunction)
	require.ErrorIs(t, register("p", call.Function{Name: "f", Policy: call.Policy{Attempts: -1}}), ErrInvalidFunction)
	require.ErrorIs(t, register("p"), ErrInvalidFunction)

	// A client that does not check for itself gets the same answers.
	for body, code := range map[string]string{
		`{`:                           CodeInvalidRequest,
		`{"protocol":2}`:              CodeProtocol,
		`{"protocol":1,"function":1}`: CodeInvalidFunction,
		`{"protocol":1,"function":{"name":"f"},"pool":"a b"}`:                                          CodeInvalidPool,
		`{"protocol":1,"function":{"name":""},"pool":"p"}`:                                             CodeInvalidFunction,
		`{"protocol":1,"function":{"name":"g"},"pool":"p"}`:                                            CodeSubjectMismatch,
		`{"protocol":1,"function":{"name":"f","parameters":[]},"pool":"p"}`:                            CodeInvalidFunction,
		`{"protocol":1,"function":{"name":"f","policy":{"on_uncertain":"verify"}},"pool":"p"}`:         CodeInvalidFunction,
		`{"protocol":1,"function":{"name":"f","policy":{"backoff":{"jitter":2}}},"pool":"p"}`:          CodeInvalidFunction,
		`{"protocol":1,"function":{"name":"f","policy":{"total_deadline":"soon"}},"pool":"p"}`:         CodeInvalidFunction,
		`{"protocol":1,"function":{"name":"f"},"pool":"weather","functions":["f"],"executor":{}}`:      CodePoolTaken,
		`{"protocol":1,"function":{"name":"f"},"pool":"weather","functions":["f","nope"],"future":{}}`: CodePoolTaken,
	} {
		reply, err := executor.request(ctx, "fn.register.f", []byte(body))
		require.NoError(t, err)
		_, err = parseBinding("f", reply)
		requireRefused(t, err, code)
		require.NotEmpty(t, err.Error())
	}
	require.Len(t, i.registry.Functions(), 2)

	// The pool's own executors may change a definition and add functions.
	require.NoError(t, register("weather", call.Function{Name: "get_weather", Description: "new"}, call.Function{Name: "get_wind"}))
	f, ok := i.registry.Function("get_weather")
	require.True(t, ok)
	require.Equal(t, "new", f.Description)
	require.Len(t, i.consumer(t, "pool_weather").Config.FilterSubjects, 3)

	// The remedies of both refusals work.
	require.NoError(t, i.registry.Forget(ctx, "get_weather"))
	require.NoError(t, register("other", declare("get_weather")...))
	require.NoError(t, register("billing", declare("charge", "refund")...))
	require.Len(t, i.consumer(t, "pool_weather").Config.FilterSubjects, 2)
	require.NoError(t, i.registry.Forget(ctx, "charge"))
	require.NoError(t, i.registry.Forget(ctx, "refund"))
	_, err := i.dispatcher.js.Consumer(ctx, "FN_CALLS", "pool_billing")
	require.ErrorIs(t, err, jetstream.ErrConsumerNotFound, "a pool without functions has no consumer")
}

func TestManyExecutorsAndReplicasRegisterAtOnce(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	i.replica(t)
	_, third := i.replica(t)
	ctx := testContext(t)
	const pools, functions = 3, 8
	var group sync.WaitGroup
	for pool := range pools {
		var names []string
		for f := range functions {
			names = append(names, fmt.Sprintf("f_%d_%d", pool, f))
		}
		for range 3 {
			executor := connect(t, Config{URL: i.server.URL()})
			group.Go(func() {
				_, err := executor.Register(ctx, Registration{Pool: fmt.Sprintf("pool%d", pool), Functions: declare(names...)})
				if err != nil {
					t.Errorf("register: %v", err)
				}
			})
		}
	}
	group.Wait()
	for pool := range pools {
		require.Len(t, i.consumer(t, fmt.Sprintf("pool_pool%d", pool)).Config.FilterSubjects, functions)
	}
	require.Eventually(t, func() bool { return len(third.Functions()) == pools*functions }, patience, 10*time.Millisecond)
}

func TestTwoTeamsRaceForOneFunction(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	i.replica(t)
	ctx := testContext(t)
	results := make(chan error, 2)
	for _, pool := range []string{"red", "blue"} {
		executor := connect(t, Config{URL: i.server.URL()})
		go func() {
			_, err := executor.Register(ctx, Registration{Pool: pool, Functions: declare("shared")})
			results <- err
		}()
	}
	won, lost := <-results, <-results
	if won != nil {
		won, lost = lost, won
	}
	require.NoError(t, won)
	requireRefused(t, lost, CodeFunctionTaken)
}

func TestAddingAFunctionLeavesTheBacklogAlone(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	ctx := testContext(t)
	executor, puller := i.executor(t, "p", "a")
	var dispatches []call.Dispatch
	for n := range 20 {
		dispatches = append(dispatches, i.dispatch("s", "a", n, `{}`))
	}
	requireNoErrors(t, i.dispatcher.Publish(ctx, dispatches))
	var held []*Taken
	require.NoError(t, puller.Pull(ctx, 5, func(taken *Taken) { held = append(held, taken) }))

	_, err := executor.Register(ctx, Registration{Pool: "p", Functions: declare("a", "b")})
	require.NoError(t, err)
	requireNoErrors(t, i.dispatcher.Publish(ctx, []call.Dispatch{i.dispatch("s", "b", 100, `{}`)}))
	seen := map[call.Key]int{}
	for _, taken := range held {
		seen[taken.Dispatch.Key]++
		require.NoError(t, taken.Ack())
	}
	for len(seen) < 21 {
		require.NoError(t, puller.Pull(ctx, 21-len(seen), func(taken *Taken) {
			require.Equal(t, 1, taken.Deliveries)
			seen[taken.Dispatch.Key]++
			require.NoError(t, taken.Ack())
		}))
	}
	for key, times := range seen {
		require.Equal(t, 1, times, key)
	}
	require.Eventually(t, func() bool { return i.messages(t, "FN_CALLS") == 0 }, patience, 10*time.Millisecond)
}

func TestALostFilterIsRepairedWithItsBacklog(t *testing.T) {
	t.Parallel()
	i := install(t, Config{RegistryCheck: 300 * time.Millisecond})
	i.replica(t)
	ctx := testContext(t)
	_, puller := i.executor(t, "p", "a", "b")
	js := i.dispatcher.js
	// An accident: somebody takes b out, calls of both arrive, and a's are consumed,
	// so that the cursor passes b's.
	broken := i.dispatcher.poolConfig("p", []string{"fn.call.a"})
	_, err := js.UpdateConsumer(ctx, "FN_CALLS", broken)
	require.NoError(t, err)
	var dispatches []call.Dispatch
	for n := range 20 {
		dispatches = append(dispatches, i.dispatch("s", []string{"a", "b"}[n%2], n, `{}`))
	}
	requireNoErrors(t, i.dispatcher.Publish(ctx, dispatches))
	seen := map[call.Key]int{}
	for len(seen) < len(dispatches) {
		err := puller.Pull(ctx, len(dispatches)-len(seen), func(taken *Taken) {
			require.NoError(t, taken.Invalid)
			seen[taken.Dispatch.Key]++
			require.NoError(t, taken.Ack())
		})
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { return i.messages(t, "FN_CALLS") == 0 }, patience, 10*time.Millisecond)
	for key, times := range seen {
		require.Equal(t, 1, times, key)
	}
}

func TestADeletedConsumerComesBackWithItsBacklog(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	ctx := testContext(t)
	executor, puller := i.executor(t, "p", "a")
	requireNoErrors(t, i.dispatcher.Publish(ctx, []call.Dispatch{i.dispatch("s", "a", 1, `{}`)}))
	require.NoError(t, i.dispatcher.js.DeleteConsumer(ctx, "FN_CALLS", "pool_p"))
	require.ErrorIs(t, puller.Pull(ctx, 1, func(*Taken) {}), ErrUnbound)
	var again *Puller
	require.Eventually(t, func() bool {
		binding, err := executor.Register(ctx, Registration{Pool: "p", Functions: declare("a")})
		require.NoError(t, err)
		bounded, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		again, err = executor.Bind(bounded, binding)
		return err == nil
	}, patience, 100*time.Millisecond)
	t.Cleanup(again.Close)
	got := 0
	require.NoError(t, again.Pull(ctx, 1, func(taken *Taken) { got++; require.NoError(t, taken.Ack()) }))
	require.Equal(t, 1, got)
}

func TestRegisterWaitsForADispatcher(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	executor := connect(t, Config{URL: i.server.URL(), Prefix: "later"})
	bounded, cancel := context.WithTimeout(testContext(t), 300*time.Millisecond)
	defer cancel()
	_, err := executor.Register(bounded, Registration{Pool: "p", Functions: declare("f")})
	require.ErrorIs(t, err, ErrNoDispatcher)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	done := make(chan error, 1)
	go func() {
		_, err := executor.Register(testContext(t), Registration{Pool: "p", Functions: declare("f")})
		done <- err
	}()
	later := &installation{server: i.server, cfg: Config{URL: i.server.URL(), Prefix: "later", Partitions: 2}}
	later.replica(t)
	require.NoError(t, <-done)
}

func TestDefinitionsThatTheDispatcherDoesNotAccept(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	// The registry of this installation takes all: use another installation on the server.
	dispatcher := connect(t, Config{URL: i.server.URL(), Prefix: "other", Storage: StorageMemory})
	require.NoError(t, dispatcher.Provision(testContext(t)))
	_, err := dispatcher.ServeRegistry(serving(t), WithAcceptance(func(f call.Function) error {
		if f.Name == "bad" {
			return errors.New("its parameters are not valid; mend them")
		}
		return nil
	}))
	require.NoError(t, err)
	executor := connect(t, Config{URL: i.server.URL(), Prefix: "other"})
	_, err = executor.Register(testContext(t), Registration{Pool: "p", Functions: declare("good")})
	require.NoError(t, err)
	_, err = executor.Register(testContext(t), Registration{Pool: "p", Functions: declare("bad")})
	requireRefused(t, err, CodeInvalidFunction)
	require.ErrorContains(t, err, `function "bad": its parameters are not valid; mend them`)
}
