package queue

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/call"
)

const patience = 30 * time.Second

// testContext ends with the test, or when patience is over.
func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// testLog gives the log to the test.
func testLog(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
}

func connect(t testing.TB, cfg Config) *Conn {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = testLog(t)
	}
	c, err := Connect(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// installation is a real server with the streams on it and one dispatcher.
type installation struct {
	server     *testservers.NATSServer
	cfg        Config
	dispatcher *Conn
	registry   *Registry
	nonces     call.Nonces
	repairs    repairs
}

// repairs counts what the registry tells of.
type repairs struct {
	mu    sync.Mutex
	count map[string]int
}

func (r *repairs) told(kind string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count == nil {
		r.count = map[string]int{}
	}
	r.count[kind] += n
}

func (r *repairs) of(kind string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count[kind]
}

func install(t testing.TB, cfg Config, opts ...testservers.NATSOption) *installation {
	t.Helper()
	return installOn(t, testservers.NATS(t, opts...), cfg)
}

func installOn(t testing.TB, server *testservers.NATSServer, cfg Config) *installation {
	t.Helper()
	ctx := testContext(t)
	cfg.URL = server.URL()
	if cfg.Partitions == 0 {
		cfg.Partitions = 4
	}
	i := &installation{server: server, cfg: cfg, dispatcher: connect(t, cfg)}
	require.NoError(t, i.dispatcher.Provision(ctx))
	secret, err := i.dispatcher.Secret(ctx)
	require.NoError(t, err)
	i.nonces = call.NewNonces(secret)
	serving, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	i.registry, err = i.dispatcher.ServeRegistry(serving, WithRepairs(i.repairs.told))
	require.NoError(t, err)
	return i
}

// executor registers functions of a pool and binds to it.
func (i *installation) executor(t testing.TB, pool string, functions ...string) (*Conn, *Puller) {
	t.Helper()
	c := connect(t, Config{URL: i.server.URL(), Prefix: i.cfg.Prefix, Name: "executor " + pool})
	return c, bind(t, c, pool, functions...)
}

func bind(t testing.TB, c *Conn, pool string, functions ...string) *Puller {
	t.Helper()
	ctx := testContext(t)
	binding, err := c.Register(ctx, Registration{Pool: pool, Functions: declare(functions...), Language: "go"})
	require.NoError(t, err)
	puller, err := c.Bind(ctx, binding)
	require.NoError(t, err)
	t.Cleanup(puller.Close)
	return puller
}

func declare(names ...string) []call.Function {
	functions := make([]call.Function, len(names))
	for i, name := range names {
		functions[i] = call.Function{Name: name}
	}
	return functions
}

// dispatch is a hand-over of the n-th call of a session.
func (i *installation) dispatch(session, function string, n int, arguments string) call.Dispatch {
	key := call.Key{Session: session, Turn: "turn_1", Call: fmt.Sprintf("call_%d", n)}
	return call.Dispatch{
		Call:    call.Call{Key: key, Function: function, Arguments: []byte(arguments)},
		Attempt: 1, Handover: 1, Nonce: i.nonces.For(key, call.Token(function), 1),
		Partition: call.Partition(session, i.cfg.Partitions), Timeout: 30 * time.Second,
		Deadline: time.Now().Add(time.Minute),
	}
}

// requireSame compares large texts without printing them.
func requireSame(t testing.TB, want string, got []byte) {
	t.Helper()
	if want != string(got) {
		t.Fatalf("got other bytes: %d instead of %d", len(got), len(want))
	}
}

func requireNoErrors(t testing.TB, errs []error) {
	t.Helper()
	for _, err := range errs {
		require.NoError(t, err)
	}
}

// collector gathers outcomes of all partitions and acks them.
type collector struct {
	mu       sync.Mutex
	outcomes map[call.Key][]call.Delivered
	invalid  []call.Delivered
}

func (i *installation) collect(t testing.TB) *collector {
	t.Helper()
	c := &collector{outcomes: map[call.Key][]call.Delivered{}}
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	for partition := range i.cfg.Partitions {
		group.Go(func() { _ = i.dispatcher.Consume(ctx, partition, c.handle) })
	}
	t.Cleanup(func() { cancel(); group.Wait() })
	return c
}

func (c *collector) handle(batch []call.Delivered) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range batch {
		if d.Invalid != nil {
			c.invalid = append(c.invalid, d)
		} else {
			c.outcomes[d.Outcome.Key] = append(c.outcomes[d.Outcome.Key], d)
		}
		d.Ack()
	}
}

func (c *collector) of(key call.Key) []call.Delivered {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.outcomes[key]
}

func (c *collector) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.outcomes)
}

// answer serves calls with their own arguments as output until ctx ends.
func answer(ctx context.Context, c *Conn, p *Puller) {
	for ctx.Err() == nil {
		_ = p.Pull(ctx, 64, func(taken *Taken) {
			if taken.Invalid != nil {
				_ = taken.Term("invalid")
				return
			}
			go func() {
				output := append(append([]byte{'['}, taken.Dispatch.Arguments...), ']')
				if c.Report(ctx, taken.Dispatch, call.Outcome{Kind: call.Success, Output: output}) == nil {
					_ = taken.Ack()
				}
			}()
		})
	}
}
