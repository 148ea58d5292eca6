package conformance

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"

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
	// tapped has the processes reach the server through a tap.
	tapped bool
	// server changes the server's options; defaults to no change.
	server func(*server.Options)
	// dispatcher has the suite's own credentials. Defaults to none, or to the user of the suite.
	dispatcher queue.Config
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
	tap       *tap
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

// executorURL is where the processes find the server.
func (r *rig) executorURL() string {
	if r.tap != nil {
		return "nats://" + r.tap.address
	}
	return r.url()
}

// file is the path of a file of the scene.
func (r *rig) file(name string) string { return filepath.Join(r.dir, name) }

// startServer brings the server up, also again, with what it had stored.
func (t *trial) startServer() {
	s, err := embedded.Start(embedded.Config{
		Dir: filepath.Join(t.dir, "nats"), Listen: t.address, Logger: quiet(),
		Adjust: func(o *server.Options) {
			o.MaxPayload = maxPayload
			o.Users = t.config.users
			if t.config.server != nil {
				t.config.server(o)
			}
		},
	})
	t.must(err, "start a NATS server")
	t.server = s
	if t.config.tapped && t.tap == nil {
		t.tap, err = tapBefore(t.address)
		t.must(err, "listen before the NATS server")
	}
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
	cfg := t.config.dispatcher
	cfg.URL, cfg.Logger = t.url(), quiet()
	cfg.Partitions, cfg.AckWait, cfg.RegistryCheck, cfg.ResultConsumersOnFile = partitions, t.config.ackWait, t.config.refresh, true
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
	if r.tap != nil {
		r.tap.close()
	}
	if r.server != nil {
		r.server.Stop()
	}
}
