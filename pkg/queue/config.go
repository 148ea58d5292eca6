package queue

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Storage is where JetStream keeps the streams.
type Storage string

// The kinds of storage.
const (
	// StorageFile survives a restart of the server. The default.
	StorageFile Storage = "file"
	// StorageMemory loses everything with the server: for tests and demos.
	StorageMemory Storage = "memory"
)

// Config says how to reach NATS and what an installation looks like. Its zero
// value connects to a server on this machine. Executors need only the first part;
// the second part matters to Provision and to the registry.
type Config struct {
	// URL is one address or a comma-separated list. Defaults to nats://127.0.0.1:4222.
	URL string
	// Prefix is the first token of every subject and, in upper case, of every stream:
	// 1 to 32 of [A-Za-z0-9_-]. Defaults to "fn".
	Prefix string
	// Name shows in the server's list of connections. Defaults to "callfan".
	Name string
	// CredsFile is a .creds file with JWT and seed; NKeyFile a seed file. At most one
	// of CredsFile, NKeyFile, User and Token.
	CredsFile, NKeyFile string
	User, Password      string
	Token               string
	// TLS is used when not nil, or when a file below is named. CAFile holds the
	// authorities that sign the server; CertFile and KeyFile are the client's own.
	TLS                       *tls.Config
	CAFile, CertFile, KeyFile string
	// InboxPrefix is where replies arrive, for users whose permissions name one.
	// Defaults to _INBOX.
	InboxPrefix string
	// APIPrefix is the subject prefix of the JetStream API, for accounts that import
	// it under another name. Defaults to $JS.API.
	APIPrefix string
	// InProcess connects to a server in this process instead of URL.
	InProcess nats.InProcessConnProvider
	// Logger gets state changes, each once. Defaults to slog.Default().
	Logger *slog.Logger
	// OnPermissionError is told, beside the log, what the server refused. It must not
	// block.
	OnPermissionError func(*PermissionError)
	// RetryFor bounds how long Publish and Report go on when NATS does not confirm.
	// It should outlast the election of a leader. Defaults to 30 s.
	RetryFor time.Duration

	// Replicas of every stream and consumer: 1, 3 or 5. Defaults to 1.
	Replicas int
	// Storage of every stream. Defaults to StorageFile.
	Storage Storage
	// Partitions is fixed once an installation exists: 1 to 1024. Defaults to 64.
	Partitions int
	// CallsMaxBytes and ResultsMaxBytes bound the two work queues; a full one refuses
	// new messages. Default to 1 GiB, or 128 MiB in memory.
	CallsMaxBytes, ResultsMaxBytes int64
	// DeadMaxBytes bounds the dead letters, the oldest of which go first. Defaults to
	// 256 MiB, or 32 MiB in memory.
	DeadMaxBytes int64
	// Backlog is how many calls of one function wait at most. Defaults to 100,000.
	Backlog int64
	// AckWait is the lease of a delivered call. Defaults to 30 s.
	AckWait time.Duration
	// MaxAckPending is how many calls of a pool may be out at once. Defaults to 20,000.
	MaxAckPending int
	// DuplicateWindow is how long the ids of calls are remembered, and
	// ResultsDuplicateWindow those of outcomes. Default to 2 min and 30 s.
	DuplicateWindow, ResultsDuplicateWindow time.Duration
	// DeadMaxAge is how long dead letters are kept. Defaults to 14 days.
	DeadMaxAge time.Duration
	// ResultConsumersOnFile keeps the state of the partitions' consumers on file too.
	// Without it a server that restarts delivers the unacknowledged outcomes again,
	// which does no harm, and the consumers cost much less.
	ResultConsumersOnFile bool
	// RegistryCheck is how often the registry compares the pools' consumers with what
	// is registered, and how often executors should register again. Defaults to 30 s.
	RegistryCheck time.Duration
}

const defaultAPIPrefix = "$JS.API"

const (
	mib = int64(1) << 20
	gib = int64(1) << 30
)

// WithDefaults is the configuration with every unset field at its default.
func (c Config) WithDefaults() Config {
	large, small := gib, 256*mib
	if c.Storage == StorageMemory {
		large, small = 128*mib, 32*mib
	}
	c.URL = cmp.Or(c.URL, nats.DefaultURL)
	c.Prefix = cmp.Or(c.Prefix, "fn")
	c.Name = cmp.Or(c.Name, "callfan")
	c.APIPrefix = cmp.Or(c.APIPrefix, defaultAPIPrefix)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.RetryFor = cmp.Or(c.RetryFor, 30*time.Second)
	c.Replicas = cmp.Or(c.Replicas, 1)
	c.Storage = cmp.Or(c.Storage, StorageFile)
	c.Partitions = cmp.Or(c.Partitions, 64)
	c.CallsMaxBytes = cmp.Or(c.CallsMaxBytes, large)
	c.ResultsMaxBytes = cmp.Or(c.ResultsMaxBytes, large)
	c.DeadMaxBytes = cmp.Or(c.DeadMaxBytes, small)
	c.Backlog = cmp.Or(c.Backlog, 100_000)
	c.AckWait = cmp.Or(c.AckWait, 30*time.Second)
	c.MaxAckPending = cmp.Or(c.MaxAckPending, 20_000)
	c.DuplicateWindow = cmp.Or(c.DuplicateWindow, 2*time.Minute)
	c.ResultsDuplicateWindow = cmp.Or(c.ResultsDuplicateWindow, 30*time.Second)
	c.DeadMaxAge = cmp.Or(c.DeadMaxAge, 14*24*time.Hour)
	c.RegistryCheck = cmp.Or(c.RegistryCheck, 30*time.Second)
	return c
}

func (c Config) validate() error {
	identities := 0
	for _, s := range []string{c.CredsFile, c.NKeyFile, c.User, c.Token} {
		if s != "" {
			identities++
		}
	}
	if c.InProcess == nil {
		if err := validAddresses(c.URL); err != nil {
			return err
		}
	}
	switch {
	case !validPrefix.MatchString(c.Prefix):
		return fmt.Errorf("queue: prefix %q: use 1 to 32 of A-Z a-z 0-9 _ -", c.Prefix)
	case identities > 1:
		return fmt.Errorf("queue: more than one of credentials file, nkey file, user and token is set; keep one")
	case (c.CertFile == "") != (c.KeyFile == ""):
		return fmt.Errorf("queue: a client certificate needs both its certificate file and its key file")
	case c.Partitions < 1 || c.Partitions > 1024:
		return fmt.Errorf("queue: %d partitions: use 1 to 1024", c.Partitions)
	case c.Replicas < 1 || c.Replicas > 5:
		return fmt.Errorf("queue: %d replicas: use 1, 3 or 5", c.Replicas)
	case c.Storage != StorageFile && c.Storage != StorageMemory:
		return fmt.Errorf("queue: storage %q: use file or memory", c.Storage)
	case c.AckWait < time.Second:
		return fmt.Errorf("queue: ack wait %s: use at least 1s", c.AckWait)
	case c.RetryFor < 0 || c.DuplicateWindow < 0 || c.ResultsDuplicateWindow < 0 || c.DeadMaxAge < 0 || c.RegistryCheck < 0:
		return fmt.Errorf("queue: durations must not be negative")
	case c.CallsMaxBytes < 0 || c.ResultsMaxBytes < 0 || c.DeadMaxBytes < 0 || c.Backlog < 0 || c.MaxAckPending < 0:
		return fmt.Errorf("queue: limits must not be negative")
	}
	return nil
}

// validAddresses refuses what the client would try to reach for ever as an address that
// it is not.
func validAddresses(list string) error {
	for address := range strings.SplitSeq(list, ",") {
		scheme, _, ok := strings.Cut(strings.TrimSpace(address), "://")
		if !ok {
			continue // a host, with or without a port
		}
		switch strings.ToLower(scheme) {
		case "nats", "tls", "ws", "wss":
		default:
			return fmt.Errorf("queue: address %s: NATS is not reached by %s; use nats://, tls://, ws:// or wss://", redact(address), scheme)
		}
	}
	return nil
}
