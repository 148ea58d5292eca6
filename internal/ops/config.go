package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/pkg/call"
)

// DefaultListen is the address that a server listens on unless told otherwise.
const DefaultListen = "127.0.0.1:8420"

// ErrNoToken is returned by New for an address that others can reach, without a
// token for the admin API.
var ErrNoToken = errors.New("the admin API would be open to everybody who reaches this address; " +
	"set an admin token (CALLFAN_ADMIN_TOKEN), or listen on 127.0.0.1")

// ErrNotStarted is what Admin returns while there is nothing to administer yet.
var ErrNotStarted = errors.New("the dispatcher has not started yet; /readyz says what it waits for")

// Admin is what the admin API works on. Its methods may return ErrNotStarted.
type Admin interface {
	// Sessions lists the watched sessions of the installation, and those that this
	// replica still serves.
	Sessions(ctx context.Context) ([]Session, error)
	// Attach watches sessions; Detach stops that. Both are idempotent.
	Attach(ctx context.Context, ids ...string) error
	Detach(ctx context.Context, ids ...string) error
	// Functions lists what executors have registered.
	Functions(ctx context.Context) ([]Function, error)
	// Calls lists the recorded calls of a session, Call shows one; an unknown one has
	// the state call.Absent.
	Calls(ctx context.Context, session string) ([]Call, error)
	Call(ctx context.Context, key call.Key) (Call, error)
	// CallsIn lists up to limit calls of the whole installation that are in one of the
	// states, open or saved ones, the oldest first.
	CallsIn(ctx context.Context, states []call.State, limit int) (CallList, error)
	// Decide takes an operator's decision about a call without a result. Errors wrap
	// dispatcher.ErrNoCall, ErrAnswered, ErrNotParked or ErrUnusable.
	Decide(ctx context.Context, key call.Key, d Decision) error
	DeadLetters
	Runs
}

// Check is one condition of readiness.
type Check struct {
	// Name of the part, such as "nats".
	Name string
	// Run says what is missing, nil when nothing is.
	Run func(context.Context) error
}

// Config sets a server up.
type Config struct {
	// Listen is the host:port to listen on. Defaults to DefaultListen.
	Listen string
	// AdminToken is the bearer token of the admin API. Required when Listen is not
	// loopback; without it the admin API is open on this machine.
	AdminToken string
	// Checks decide about readiness; they run at the same time, for CheckTimeout at
	// most, which defaults to 3 s.
	Checks       []Check
	CheckTimeout time.Duration
	// Admin is what the admin API works on. Required.
	Admin Admin
	// Metrics serves /metrics. Required.
	Metrics http.Handler
	// Logger defaults to no logging.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Listen = cmp.Or(c.Listen, DefaultListen)
	c.CheckTimeout = cmp.Or(c.CheckTimeout, 3*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c
}

// CheckAddress says whether a server may listen on the address with this token. An
// address without a host, such as ":8420", is every address of the machine.
func CheckAddress(listen, token string) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("listen address %q: want host:port: %w", listen, err)
	}
	if token != "" && len(token) < minToken {
		return fmt.Errorf("the admin token has %d characters; use at least %d, such as those of: openssl rand -hex 32", len(token), minToken)
	}
	if token == "" && !isLoopback(host) {
		return fmt.Errorf("listen address %q: %w", listen, ErrNoToken)
	}
	return nil
}

// minToken keeps guessable tokens out.
const minToken = 16

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// Session is one watched session, as the admin API shows it.
type Session struct {
	ID        string `json:"id"`
	Partition int    `json:"partition"`
	// Watched is false for a session that is detached and still has open calls.
	Watched bool `json:"watched"`
	// Served says whether the replica that was asked serves the session; the rest
	// is only known then.
	Served bool   `json:"served"`
	Status string `json:"status,omitempty"`
	// Parked calls wait for an operator; they are not among the open ones.
	Open      int        `json:"open_calls"`
	Parked    int        `json:"parked_calls"`
	Saved     int        `json:"saved_results"`
	Retrieved *time.Time `json:"retrieved_at,omitempty"`
	Trouble   string     `json:"trouble,omitempty"`
	// Drift names the functions whose tools in the session differ from what is
	// registered.
	Drift []string `json:"drift,omitempty"`
}

// Served makes the Session that describes one that this replica serves.
func Served(info dispatcher.SessionInfo) Session {
	s := Session{
		ID: info.ID, Partition: info.Partition, Watched: info.Watched, Served: true,
		Status: info.Status, Open: info.Open, Parked: info.Parked, Saved: info.Saved, Trouble: info.Trouble, Drift: info.Drift,
	}
	if !info.Retrieved.IsZero() {
		s.Retrieved = &info.Retrieved
	}
	return s
}
