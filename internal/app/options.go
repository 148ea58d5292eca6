package app

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/callfan/callfan/internal/agents"
	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/internal/ops"
	"github.com/callfan/callfan/internal/runs"
	"github.com/callfan/callfan/internal/sources"
	"github.com/callfan/callfan/internal/webhooks"
	"github.com/callfan/callfan/pkg/queue"
	"github.com/callfan/callfan/pkg/results"
	"github.com/callfan/callfan/pkg/results/kvstore"
	"github.com/callfan/callfan/pkg/results/redisstore"
)

// Options say what a dispatcher works with. Every zero field has a working default,
// but for the API, which needs a key or a base URL.
type Options struct {
	// Name of this replica. Defaults to the host's name and a random suffix.
	Name string
	// Version is shown to operators. Defaults to "devel".
	Version string

	// API is the OpenAI API. Its logger is set by the dispatcher.
	API agents.Config
	// Queue says how to reach NATS and what the installation looks like. Its name
	// and logger are set by the dispatcher, its partitions and duplicate window hold
	// for all parts.
	Queue queue.Config
	// Redis keeps the results when it is set; otherwise KV does, on the same NATS.
	Redis *redisstore.Config
	KV    kvstore.Config
	// Dispatcher tunes the dispatcher. Its name, partitions, duplicate window,
	// secret, logger and observer are set from the rest.
	Dispatcher dispatcher.Config

	// Sessions are watched from the start.
	Sessions []string
	// SessionsFile is a file of session ids that is followed; empty means none.
	SessionsFile string
	// Selectors choose the listed sessions to watch; PollInterval is how often they
	// are listed, 15 s by default.
	Selectors    []sources.Selector
	PollInterval time.Duration
	// NoStream leaves it to the watchdog to look at the sessions.
	NoStream bool

	// RunsKeep is how long a run can be read after its last change, 7 days by default. It
	// has to be longer than runs.MaxTime.
	RunsKeep time.Duration

	// Listen is the address of health, metrics and the admin API; empty means none.
	Listen string
	// AdminToken guards the admin API; needed when Listen is not loopback.
	AdminToken string
	// WebhookListen is the address on which OpenAI's webhooks are received; empty means
	// none. WebhookSecret is their signing secret, needed then.
	WebhookListen, WebhookSecret string
	// Logger defaults to slog.Default.
	Logger *slog.Logger

	// Conn, Store and Observer are for programs that embed a dispatcher: a connection
	// and a store that are open already, and stay open, and somebody else who is told
	// what happens. Conn's own configuration must agree with Queue.
	Conn     *queue.Conn
	Store    results.Store
	Observer dispatcher.Observer
}

func (o Options) withDefaults() Options {
	o.Name = cmp.Or(o.Name, DefaultName())
	o.Version = cmp.Or(o.Version, "devel")
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Queue.Name == "" {
		o.Queue.Name = "callfan-dispatcher " + o.Name
	}
	o.Queue.Logger = o.Logger
	o.Queue = o.Queue.WithDefaults()
	o.API.Logger = o.Logger
	o.Dispatcher.Name = o.Name
	o.Dispatcher.Logger = o.Logger
	o.Dispatcher.Partitions = o.Queue.Partitions
	o.Dispatcher.DuplicateWindow = o.Queue.DuplicateWindow
	o.Dispatcher.OutcomeLease = o.Queue.OutcomeLease()
	o.Dispatcher.StopTimeout = cmp.Or(o.Dispatcher.StopTimeout, 10*time.Second)
	o.KV.Partitions = o.Queue.Partitions
	o.KV.Replicas = cmp.Or(o.KV.Replicas, o.Queue.Replicas)
	o.KV.Bucket = cmp.Or(o.KV.Bucket, strings.ToUpper(o.Queue.Prefix)+"_STORE")
	if o.Redis != nil {
		redis := *o.Redis
		redis.Partitions = o.Queue.Partitions
		o.Redis = &redis
	}
	return o
}

func (o Options) validate() error {
	var errs []error
	if strings.ContainsFunc(o.Name, func(r rune) bool { return r <= ' ' || r > '~' }) || len(o.Name) > 128 {
		errs = append(errs, fmt.Errorf("the name %q: use 1 to 128 printable ASCII characters without spaces", o.Name))
	}
	if o.Listen != "" {
		errs = append(errs, ops.CheckAddress(o.Listen, o.AdminToken))
	}
	if o.WebhookListen != "" {
		errs = append(errs, webhooks.Check(o.WebhookListen, o.WebhookSecret))
	}
	if o.RunsKeep != 0 && o.RunsKeep <= runs.MaxTime {
		errs = append(errs, fmt.Errorf("--runs-keep is %v; use more than %v, which a run may take", o.RunsKeep, runs.MaxTime))
	}
	if o.SessionsFile != "" {
		_, err := sources.File{Path: o.SessionsFile}.Load()
		errs = append(errs, err)
	}
	cfg := o.Dispatcher
	cfg.Secret = make([]byte, 32) // the real one comes from NATS
	_, err := dispatcher.New(cfg, dispatcher.Parts{API: noParts{}, Queue: noParts{}, Store: noStore{}, Functions: noFunctions{}})
	return errors.Join(append(errs, err)...)
}

// The parts that a configuration is tried with; nothing calls them.
type (
	noParts struct {
		dispatcher.API
		dispatcher.Queue
	}
	noStore     struct{ dispatcher.Store }
	noFunctions struct{ dispatcher.Functions }
)

// DefaultName is the name of a replica that was given none: the host's name and a
// random suffix, which tells replicas on one host apart.
func DefaultName() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "dispatcher"
	}
	clean := strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '-'
		}
		return r
	}, host)
	return clean[:min(len(clean), 64)] + "-" + strings.ToLower(rand.Text()[:6])
}
