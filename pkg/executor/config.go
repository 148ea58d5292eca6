package executor

import (
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/callfan/callfan/pkg/queue"
)

// The defaults of Config.
const (
	DefaultConcurrency = 32
	DefaultStopTimeout = 25 * time.Second
)

// Config describes an executor.
type Config struct {
	// Queue says how to reach NATS; see its own comment. Its name and logger default to
	// those of the executor.
	Queue queue.Config
	// Pool is the name of the deployment: 1 to 64 characters of [A-Za-z0-9_-]. All
	// processes with one pool name must serve the same functions, since any of them
	// may get any call of the pool. Required.
	Pool string
	// Concurrency is how many calls run at once. Calls are pulled only into free
	// slots. With 16 or more, calls are pulled in batches, which is cheaper; handlers
	// that keep a CPU busy want fewer. Defaults to 32.
	Concurrency int
	// ID names this process in logs, in registrations and in what it reports, so that
	// operators see who ran a call: at most 128 bytes of printable UTF-8. Defaults to the
	// host name, the process id and four random characters.
	ID string
	// Version is the version of the program, for operators. Defaults to empty.
	Version string
	// Language is what the functions are written in or run by, for operators: a program
	// that passes calls on to something else names that. Defaults to "go".
	Language string
	// StopTimeout bounds the soft stop: how long running handlers may go on after the
	// context of Run was cancelled. Keep it below the time that the platform gives
	// (Kubernetes: terminationGracePeriodSeconds, 30 s). Defaults to 25 s; negative
	// means that handlers are interrupted at once.
	StopTimeout time.Duration
	// Middleware wraps every handler; the first one is the outermost.
	Middleware []Middleware
	// Observer is told about calls, for metrics. Defaults to none.
	Observer Observer
	// Logger gets one line per noteworthy event. Arguments and outputs are never
	// logged. Defaults to slog.Default().
	Logger *slog.Logger
}

// maxID bounds Config.ID, in bytes: it goes with every outcome.
const maxID = 128

var poolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func (c Config) validate() error {
	switch {
	case c.Pool == "":
		return fmt.Errorf("%w: Pool is empty; name the deployment that serves these functions", ErrInvalidConfig)
	case !poolName.MatchString(c.Pool):
		return fmt.Errorf("%w: Pool is %q; use 1 to 64 letters, digits, underscores and dashes", ErrInvalidConfig, c.Pool)
	case len(c.ID) > maxID || !printable(c.ID):
		return fmt.Errorf("%w: ID is %q; use at most %d bytes of printable characters, or leave it empty", ErrInvalidConfig, c.ID, maxID)
	case c.Concurrency < 0:
		return fmt.Errorf("%w: Concurrency is %d; use 1 or more, or 0 for %d", ErrInvalidConfig, c.Concurrency, DefaultConcurrency)
	}
	for i, m := range c.Middleware {
		if m == nil {
			return fmt.Errorf("%w: Middleware[%d] is nil", ErrInvalidConfig, i)
		}
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Concurrency == 0 {
		c.Concurrency = DefaultConcurrency
	}
	if c.Language == "" {
		c.Language = "go"
	}
	if c.ID == "" {
		host, _ := os.Hostname()
		c.ID = defaultID(host)
	}
	switch {
	case c.StopTimeout == 0:
		c.StopTimeout = DefaultStopTimeout
	case c.StopTimeout < 0:
		c.StopTimeout = 0
	}
	if c.Observer == nil {
		c.Observer = noObserver{}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// defaultID is a name for this process on that host. A host name has no limit on every
// system.
func defaultID(host string) string {
	process := "-" + strconv.Itoa(os.Getpid()) + "-" + uuid.NewString()[:4]
	host = strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, host)
	return host[:min(len(host), maxID-len(process))] + process
}

func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}
