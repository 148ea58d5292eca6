package dispatcher

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/callfan/callfan/pkg/call"
)

// Config sets a dispatcher up. Every zero field has a working default.
type Config struct {
	// Name identifies this replica among the dispatchers. Required.
	Name string
	// Partitions is the number of partitions of the installation; all replicas and
	// the queue must agree. Defaults to 64.
	Partitions int
	// LeaseTTL is how long a partition stays with a silent replica: the time after
	// which others take over from a dead one. Defaults to 10 s.
	LeaseTTL time.Duration
	// AttachPoll is how often the list of watched sessions is looked up. Defaults to 1 s.
	AttachPoll time.Duration
	// Watchdog is how often a session is retrieved when nothing else asks for it.
	// Defaults to 60 s.
	Watchdog time.Duration
	// Sweep is how often the store's unfinished calls are compared with those that are
	// served, so that what no event will ever mention goes on. Defaults to 5 min.
	Sweep time.Duration
	// Linger is how long the first saved result of a batch waits for others while
	// calls of its turn are outstanding. Defaults to 10 ms.
	Linger time.Duration
	// BatchCount and BatchBytes cap one submission. Defaults to 32 results and
	// 900 KiB; a single larger result goes alone.
	BatchCount, BatchBytes int
	// MaxResultBytes caps one output or error text; larger ones are answered with
	// an error. Defaults to 4 MiB less 4 KiB, the API's limit less the envelope.
	MaxResultBytes int
	// Resend is the first wait before an accepted result that is still listed is
	// sent again; it doubles each time. Defaults to 15 s.
	Resend time.Duration
	// DuplicateWindow is how long the queue recognises a repeated publication.
	// Defaults to 2 min.
	DuplicateWindow time.Duration
	// OutcomeLease is how long the queue waits for the ack of an outcome before it
	// hands it out again. Defaults to 10 s.
	OutcomeLease time.Duration
	// UnknownAfter is how long a call waits for somebody to register its function.
	// Defaults to 60 s.
	UnknownAfter time.Duration
	// DeferredTimeout bounds the wait for the result of a deferred call. Defaults to 24 h.
	DeferredTimeout time.Duration
	// StopTimeout bounds the graceful stop. Defaults to 10 s.
	StopTimeout time.Duration
	// InvalidText decides about outputs with invalid UTF-8 or lone surrogates:
	// "replace" them by U+FFFD, the default, or answer with an "error".
	InvalidText string
	// Policies overrule what executors declare about functions, by name: fields that
	// are set win.
	Policies map[string]call.Policy
	// Secret is the installation's secret for nonces. Required.
	Secret []byte
	// Logger defaults to slog.Default.
	Logger *slog.Logger
	// Observer defaults to none.
	Observer Observer
}

func (c Config) withDefaults() Config {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	num := func(n *int, v int) {
		if *n == 0 {
			*n = v
		}
	}
	num(&c.Partitions, 64)
	num(&c.BatchCount, 32)
	num(&c.BatchBytes, 900<<10)
	num(&c.MaxResultBytes, 4<<20-4<<10)
	def(&c.LeaseTTL, 10*time.Second)
	def(&c.AttachPoll, time.Second)
	def(&c.Watchdog, time.Minute)
	def(&c.Sweep, 5*time.Minute)
	def(&c.Linger, 10*time.Millisecond)
	def(&c.Resend, 15*time.Second)
	def(&c.DuplicateWindow, 2*time.Minute)
	def(&c.OutcomeLease, 10*time.Second)
	def(&c.UnknownAfter, call.DefaultQueueTimeout)
	def(&c.DeferredTimeout, 24*time.Hour)
	def(&c.StopTimeout, 10*time.Second)
	if c.InvalidText == "" {
		c.InvalidText = "replace"
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Observer == nil {
		c.Observer = noObserver{}
	}
	return c
}

func (c Config) validate() error {
	var errs []error
	bad := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	bad(c.Name != "", "name is empty: every dispatcher needs its own")
	bad(len(c.Secret) >= 16, "secret has %d bytes, want at least 16", len(c.Secret))
	bad(c.Partitions >= 1 && c.Partitions <= 1024, "partitions is %d, want 1 to 1024", c.Partitions)
	bad(c.BatchCount >= 1, "batch count is %d, want at least 1", c.BatchCount)
	bad(c.BatchBytes >= 1<<10, "batch bytes is %d, want at least 1024", c.BatchBytes)
	bad(c.LeaseTTL >= 300*time.Millisecond, "lease TTL is %v, want at least 300ms", c.LeaseTTL)
	bad(c.Sweep > 0, "sweep is %v, want a positive time", c.Sweep)
	bad(c.Watchdog > 0, "watchdog is %v, want a positive time", c.Watchdog)
	bad(c.InvalidText == "replace" || c.InvalidText == "error",
		"invalid text is %q, use replace or error", c.InvalidText)
	return errors.Join(errs...)
}

// dedupeSafe is until when after its first try a publication can be repeated and still be
// recognised by the queue, with a margin for what is sent then and arrives later.
func (c Config) dedupeSafe() time.Duration { return c.DuplicateWindow * 5 / 6 }
