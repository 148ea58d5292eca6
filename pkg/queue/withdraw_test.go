package queue

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/call"
)

func (i *installation) withdraw(t *testing.T, d call.Dispatch) bool {
	t.Helper()
	got, err := i.dispatcher.Withdraw(testContext(t), d)
	require.NoError(t, err)
	return got
}

// publish gives the dispatches their sequences.
func (i *installation) publish(t *testing.T, ds ...call.Dispatch) []call.Dispatch {
	t.Helper()
	requireNoErrors(t, i.dispatcher.Publish(testContext(t), ds))
	return ds
}

func TestACallThatNobodyTookIsWithdrawn(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	ctx := testContext(t)
	_, puller := i.executor(t, "p", "f", "my function")
	ds := i.publish(t, i.dispatch("s", "f", 1, `{}`), i.dispatch("s", "my function", 2, `{}`), i.dispatch("s", "f", 3, `{}`))
	require.True(t, i.withdraw(t, ds[0]))
	require.True(t, i.withdraw(t, ds[1]))
	require.False(t, i.withdraw(t, ds[1]), "it is not there any more")

	var taken []call.Dispatch
	require.NoError(t, puller.Pull(ctx, 1, func(x *Taken) { taken = append(taken, x.Dispatch) }))
	require.Len(t, taken, 1)
	require.Equal(t, ds[2].Key, taken[0].Key)
	require.False(t, i.withdraw(t, ds[2]))
	require.EqualValues(t, 1, i.messages(t, "FN_CALLS"), "a call that an executor has stays")

	unknown := i.publish(t, i.dispatch("s", "f", 4, `{}`))[0]
	unknown.Sequence = 0
	require.False(t, i.withdraw(t, unknown))
	next := i.publish(t, i.dispatch("s", "f", 5, `{}`))[0]
	next.Handover = 2
	require.False(t, i.withdraw(t, next), "another hand-over has this number")
	next.Function = "my function"
	require.False(t, i.withdraw(t, next))
	require.EqualValues(t, 3, i.messages(t, "FN_CALLS"))
}

func TestWhatAnEarlierConsumerMayHaveHandedOutIsNotWithdrawn(t *testing.T) {
	t.Parallel()
	i := install(t, Config{})
	ctx := testContext(t)
	_, puller := i.executor(t, "p", "f")
	_, _ = i.executor(t, "q", "g")
	d := i.publish(t, i.dispatch("s", "f", 1, `{}`))[0]
	require.NoError(t, puller.Pull(ctx, 1, func(*Taken) {}))
	require.NoError(t, i.dispatcher.js.DeleteConsumer(ctx, "FN_CALLS", poolDurable("p")))
	require.False(t, i.withdraw(t, d), "no consumer")
	require.NoError(t, i.registry.checkPool(ctx, "p"))
	require.False(t, i.withdraw(t, d), "a consumer made anew")
	other := i.publish(t, i.dispatch("s", "f", 2, `{}`))[0]
	require.True(t, i.withdraw(t, other), "one that came after it")

	waits := i.publish(t, i.dispatch("s", "g", 3, `{}`))[0]
	require.NoError(t, i.registry.Forget(ctx, "g"))
	require.False(t, i.withdraw(t, waits), "nobody is known to take it")
	require.EqualValues(t, 2, i.messages(t, "FN_CALLS"))
}

// Every call is either withdrawn or delivered, but for those that the consumer passes in
// the moment between their deletion and the look at it. None is both.
func TestWithdrawalAndDeliveryExcludeEachOther(t *testing.T) {
	t.Parallel()
	withdrawAgainstPullers(t, install(t, Config{AckWait: time.Minute}), 2000)
}

func withdrawAgainstPullers(t *testing.T, i *installation, calls int) {
	t.Helper()
	_, puller := i.executor(t, "p", "f", "g")
	ds := make([]call.Dispatch, calls)
	for n := range ds {
		ds[n] = i.dispatch(fmt.Sprintf("s%d", n%9), []string{"f", "g"}[n%2], n, `{}`)
	}
	ds = i.publish(t, ds...)

	var mu sync.Mutex
	delivered := map[call.Key]int{}
	count := func() (n int) {
		mu.Lock()
		defer mu.Unlock()
		return len(delivered)
	}
	// The first half is raced for; the pullers are too fast to leave anything else.
	rest := make(chan struct{})
	pulling, stop := context.WithCancel(context.Background())
	var pullers sync.WaitGroup
	for range 2 {
		pullers.Go(func() {
			for pulling.Err() == nil {
				if count() >= calls/2 {
					select {
					case <-rest:
					case <-pulling.Done():
						return
					}
				}
				_ = puller.Pull(pulling, 3, func(x *Taken) {
					mu.Lock()
					delivered[x.Dispatch.Key]++
					mu.Unlock()
					_ = x.Ack()
				})
			}
		})
	}
	defer func() { stop(); pullers.Wait() }()

	withdrawn := make([]bool, calls)
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for n := calls - 1 - worker; n >= 0; n -= 8 { // towards the pullers
				got, err := i.dispatcher.Withdraw(testContext(t), ds[n])
				if err != nil {
					t.Error(err)
				}
				withdrawn[n] = got
			}
		})
	}
	group.Wait()
	close(rest)
	back := 0
	for _, w := range withdrawn {
		if w {
			back++
		}
	}
	require.Eventually(t, func() bool { return i.messages(t, "FN_CALLS") == 0 }, patience, 10*time.Millisecond)
	stop()
	pullers.Wait()
	unsure := 0
	for n, d := range ds {
		switch {
		case withdrawn[n]:
			require.Zero(t, delivered[d.Key], "call %d is withdrawn", n)
		case delivered[d.Key] == 0:
			unsure++
		default:
			require.Equal(t, 1, delivered[d.Key], "call %d", n)
		}
	}
	require.Equal(t, calls, back+count()+unsure)
	require.NotZero(t, back)
	require.NotZero(t, count())
	t.Logf("%d withdrawn, %d delivered, %d passed while they were being deleted", back, count(), unsure)
	require.Less(t, unsure, calls/20)
}

func TestOnlyAMajorityHeardSinceIsSure(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	info := func(active ...time.Duration) *jetstream.ConsumerInfo {
		cluster := &jetstream.ClusterInfo{}
		for _, a := range active {
			cluster.Replicas = append(cluster.Replicas, &jetstream.PeerInfo{Active: a, Offline: a < 0})
		}
		return &jetstream.ConsumerInfo{Cluster: cluster}
	}
	require.True(t, heardSince(info(90*ms, time.Hour), 100*ms))
	require.False(t, heardSince(info(110*ms, time.Hour), 100*ms))
	require.False(t, heardSince(info(-1, 0), 100*ms), "offline, and never heard of")
	require.False(t, heardSince(info(1*ms, 200*ms, 200*ms, 200*ms), 100*ms))
	require.True(t, heardSince(info(1*ms, 2*ms, 200*ms, 200*ms), 100*ms))
	require.False(t, replicated(info()))
	require.False(t, replicated(&jetstream.ConsumerInfo{}))
}

// clustered are three servers as one cluster.
func clustered(t *testing.T) []*testservers.NATSServer {
	t.Helper()
	routes := make([]string, 3)
	for n := range routes {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		routes[n] = l.Addr().String()
		require.NoError(t, l.Close())
	}
	servers := make([]*testservers.NATSServer, len(routes))
	for n, route := range routes {
		servers[n] = testservers.NATS(t, testservers.NATSConfig(fmt.Sprintf(
			"cluster { name: c, listen: %q, routes: [nats://%s] }\n", route, strings.Join(routes, ", nats://"))))
	}
	return servers
}

func TestWithdrawalIsExactInACluster(t *testing.T) {
	t.Parallel()
	servers := clustered(t)
	withdrawAgainstPullers(t, installOn(t, servers[0], Config{AckWait: time.Minute, Replicas: 3}), 100)
}
