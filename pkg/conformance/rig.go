package conformance

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/callfan/callfan/internal/embedded"
	"github.com/callfan/callfan/internal/schema"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/queue"
)

const (
	// pool is the executor's pool.
	pool       = "conformance"
	partitions = 4
	// patience is how long what should happen at once may take on a busy computer.
	patience = 20 * time.Second
	// maxPayload is the limit of the servers, in bytes.
	maxPayload = 2 << 20
)

// rigConfig sets a scene's server and processes up.
type rigConfig struct {
	// ackWait is the lease; defaults to 5 s.
	ackWait time.Duration
	// refresh is how often executors register again; defaults to 30 s.
	refresh time.Duration
	// concurrency of the processes; defaults to 16.
	concurrency int
	// stopTimeout of the processes; defaults to 10 s.
	stopTimeout time.Duration
	// users of the server; none means that everybody may do everything.
	users []*server.User
}

func (c rigConfig) withDefaults() rigConfig {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&c.ackWait, 5*time.Second)
	set(&c.refresh, 30*time.Second)
	set(&c.stopTimeout, 10*time.Second)
	if c.concurrency == 0 {
		c.concurrency = 16
	}
	return c
}

// rig is a server, the suite's dispatcher on it, and the executor's processes.
type rig struct {
	play        *play
	scene       string
	config      rigConfig
	dir         string
	journalPath string
	address     string
	nonces      call.Nonces
	calls       atomic.Int64

	// ctx ends with the scene.
	ctx  context.Context
	end  context.CancelFunc
	jobs sync.WaitGroup

	server    *embedded.Server
	conn      *queue.Conn
	consuming context.CancelFunc

	observed
}

func newRig(p *play, s scene, dir string) *rig {
	ctx, end := context.WithCancel(context.Background())
	return &rig{
		play: p, scene: s.name, config: s.config.withDefaults(), dir: dir,
		journalPath: filepath.Join(dir, "events.jsonl"), address: freeAddress(),
		nonces: call.NewNonces([]byte("conformance")), ctx: ctx, end: end, observed: newObserved(),
	}
}

// freeAddress is a loopback address that nobody listens on, below the range from which
// systems hand out ports by themselves, so that it stays free while its server is down.
func freeAddress() string {
	for {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(20000+rand.IntN(12000)))
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			return address
		}
	}
}

func (r *rig) url() string { return "nats://" + r.address }

// startServer brings the server up, also again, with what it had stored.
func (t *trial) startServer() {
	s, err := embedded.Start(embedded.Config{
		Dir: filepath.Join(t.dir, "nats"), Listen: t.address, Logger: quiet(),
		Adjust: func(o *server.Options) {
			o.MaxPayload = maxPayload
			o.Users = t.config.users
		},
	})
	t.must(err, "start a NATS server")
	t.server = s
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// dispatcher is the user of the suite, where a scene has users.
const dispatcher = "dispatcher"

// serve brings up the server and the suite's dispatcher on it.
func (t *trial) serve() {
	t.startServer()
	t.dispatch()
}

// dispatch brings the suite's dispatcher up.
func (t *trial) dispatch() {
	cfg := queue.Config{
		URL: t.url(), Logger: quiet(), Partitions: partitions, AckWait: t.config.ackWait, RegistryCheck: t.config.refresh,
		ResultConsumersOnFile: true,
	}
	if len(t.config.users) > 0 {
		cfg.User, cfg.Password = dispatcher, dispatcher
	}
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	conn, err := queue.Connect(ctx, cfg)
	t.must(err, "connect the dispatcher")
	t.conn = conn
	t.must(conn.Provision(ctx), "provision the streams")
	t.must(t.observe(conn.NATS()), "observe the executor")
	registry, err := conn.ServeRegistry(t.rig.ctx, queue.WithAcceptance((&schema.Validator{Logger: quiet()}).Accept))
	t.must(err, "serve the registry")
	t.mu.Lock()
	t.registry = registry
	t.mu.Unlock()
	t.must(conn.ServeOutcomes(t.rig.ctx, t.answer), "serve look-ups")
	t.consume()
}

// consume collects outcomes until stopConsuming or the end of the scene.
func (r *rig) consume() {
	ctx, cancel := context.WithCancel(r.ctx)
	r.consuming = cancel
	for partition := range partitions {
		r.jobs.Go(func() {
			_ = r.conn.Consume(ctx, partition, func(batch []call.Delivered) {
				for _, d := range batch {
					r.collect(d)
					d.Ack()
				}
			})
		})
	}
}

func (r *rig) close() {
	r.mu.Lock()
	processes := r.processes
	r.mu.Unlock()
	for _, p := range processes {
		p.kill()
	}
	r.end()
	r.jobs.Wait()
	if r.conn != nil {
		r.conn.Close()
	}
	if r.server != nil {
		r.server.Stop()
	}
}

// placed is a call that was handed over.
type placed struct {
	call.Dispatch
	// published says when.
	published time.Time
}

// placing changes a call before it is handed over.
type placing func(*call.Dispatch)

func timeout(d time.Duration) placing { return func(c *call.Dispatch) { c.Timeout = d } }
func deadline(d time.Duration) placing {
	return func(c *call.Dispatch) { c.Deadline = time.Now().Add(d) }
}
func choice(o call.OnUncertain) placing { return func(c *call.Dispatch) { c.OnUncertain = o } }
func uncertain() placing                { return func(c *call.Dispatch) { c.Uncertain = true } }
func traceparent(parent string) placing { return func(c *call.Dispatch) { c.Traceparent = parent } }
func (t *trial) again(p *placed) placing {
	return func(c *call.Dispatch) { c.Key, c.Attempt = p.Key, p.Attempt+1 }
}

// draft is a call that is not handed over yet. The choice for uncertain calls is left to
// the function.
func (t *trial) draft(function, arguments string, how ...placing) *placed {
	n := t.calls.Add(1)
	p := &placed{Dispatch: call.Dispatch{
		Call: call.Call{
			Key: call.Key{
				Session: fmt.Sprintf("sess_%s_%d", t.scene, n), Turn: fmt.Sprintf("turn_%d", n), Call: fmt.Sprintf("call_%s_%d", t.scene, n),
			},
			Function: function, Arguments: []byte(arguments),
		},
		Attempt: 1, Handover: 1, Timeout: 30 * time.Second, Deadline: time.Now().Add(2 * time.Minute),
	}}
	for _, change := range how {
		change(&p.Dispatch)
	}
	p.Partition = call.Partition(p.Session, partitions)
	p.Nonce = t.nonces.For(p.Key, call.Token(function), p.Attempt)
	return p
}

// call hands a call over.
func (t *trial) call(function, arguments string, how ...placing) *placed {
	p := t.draft(function, arguments, how...)
	t.publish(p)
	return p
}

func (t *trial) publish(p *placed) {
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	batch := []call.Dispatch{p.Dispatch}
	p.published = time.Now()
	t.must(t.conn.Publish(ctx, batch)[0], "publish a call")
	p.Sequence = batch[0].Sequence
}

// publishRaw hands a call over as a message that the caller has changed.
func (t *trial) publishRaw(p *placed, change func(*nats.Msg)) {
	token := call.Token(p.Function)
	m := &nats.Msg{
		Subject: "fn.call." + token,
		Data: fmt.Appendf(nil, `{"type":"function_call","session_id":%q,"turn_id":%q,"call_id":%q,"name":%q,"arguments":%s}`,
			p.Session, p.Turn, p.Key.Call, p.Function, p.Arguments),
		Header: nats.Header{
			"Nats-Msg-Id": {p.MessageID()}, "Fn-Protocol": {"1"}, "Fn-Key": {p.Key.String()}, "Fn-Attempt": {strconv.Itoa(p.Attempt)},
			"Fn-Handover": {strconv.Itoa(p.Handover)}, "Fn-Nonce": {p.Nonce}, "Fn-Idempotency-Key": {p.IdempotencyKey()},
			"Fn-Result-Subject": {fmt.Sprintf("fn.result.%s.p%02d", token, p.Partition)},
			"Fn-Timeout-Ms":     {strconv.FormatInt(p.Timeout.Milliseconds(), 10)}, "Fn-Deadline": {strconv.FormatInt(p.Deadline.UnixMilli(), 10)},
		},
	}
	change(m)
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	p.published = time.Now()
	stored, err := t.conn.JetStream().PublishMsg(ctx, m)
	t.must(err, "publish a message")
	p.Sequence = stored.Sequence
}

// queued says whether the call is in the queue, unacknowledged.
func (t *trial) queued(p *placed) bool {
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	stream, err := t.conn.JetStream().Stream(ctx, "FN_CALLS")
	if err != nil {
		return false
	}
	_, err = stream.GetMsg(ctx, p.Sequence)
	return err == nil
}

// cancel sends a cancel notice.
func (t *trial) cancel(p *placed) {
	t.must(t.conn.Cancel(t.ctx, p.Key, p.Function, "the turn has ended"), "send a cancel notice")
	t.must(t.conn.NATS().FlushTimeout(patience), "send a cancel notice")
}
