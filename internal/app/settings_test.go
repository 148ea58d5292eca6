package app_test

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/app"
	"github.com/callfan/callfan/internal/config"
	"github.com/callfan/callfan/internal/sources"
	"github.com/callfan/callfan/pkg/queue"
	"github.com/callfan/callfan/pkg/results/redisstore"
)

// settings says, for every flag, what it changes in the options. A value that
// starts with @ goes into a file, and the flag names the file.
var settings = map[string]struct {
	value string
	got   func(o app.Options) any
	want  any
}{
	"name":                {"replica-1", func(o app.Options) any { return o.Name }, "replica-1"},
	"openai-api-key-file": {"@sk-1", func(o app.Options) any { return o.API.APIKey }, "sk-1"},
	"openai-base-url":     {"http://h/v1", func(o app.Options) any { return o.API.BaseURL }, "http://h/v1"},
	"openai-organization": {"org", func(o app.Options) any { return o.API.Organization }, "org"},
	"openai-project":      {"proj", func(o app.Options) any { return o.API.Project }, "proj"},
	"openai-timeout":      {"7s", func(o app.Options) any { return o.API.Timeout }, 7 * time.Second},

	"nats":               {"nats://a,nats://b", func(o app.Options) any { return o.Queue.URL }, "nats://a,nats://b"},
	"nats-creds":         {"f", func(o app.Options) any { return o.Queue.CredsFile }, "f"},
	"nats-nkey":          {"f", func(o app.Options) any { return o.Queue.NKeyFile }, "f"},
	"nats-user":          {"u", func(o app.Options) any { return o.Queue.User }, "u"},
	"nats-password-file": {"@pw", func(o app.Options) any { return o.Queue.Password }, "pw"},
	"nats-token-file":    {"@tok", func(o app.Options) any { return o.Queue.Token }, "tok"},
	"nats-ca":            {"f", func(o app.Options) any { return o.Queue.CAFile }, "f"},
	"nats-cert":          {"f", func(o app.Options) any { return o.Queue.CertFile }, "f"},
	"nats-key":           {"f", func(o app.Options) any { return o.Queue.KeyFile }, "f"},
	"nats-inbox-prefix":  {"_IN", func(o app.Options) any { return o.Queue.InboxPrefix }, "_IN"},
	"nats-api-prefix":    {"$JS.x.API", func(o app.Options) any { return o.Queue.APIPrefix }, "$JS.x.API"},
	"prefix":             {"p", func(o app.Options) any { return o.Queue.Prefix }, "p"},

	"redis":               {"redis://h:1", func(o app.Options) any { return o.Redis.URL }, "redis://h:1"},
	"redis-mode":          {"cluster", func(o app.Options) any { return o.Redis.Universal.IsClusterMode }, true},
	"redis-user":          {"u", func(o app.Options) any { return o.Redis.Username }, "u"},
	"redis-password-file": {"@pw", func(o app.Options) any { return o.Redis.Password }, "pw"},
	"redis-ca":            {"@certificate", func(o app.Options) any { return o.Redis.TLS.RootCAs != nil }, true},
	"redis-cert":          {"@certificate", func(o app.Options) any { return len(o.Redis.TLS.Certificates) }, 1},
	"redis-key":           {"@key", func(o app.Options) any { return len(o.Redis.TLS.Certificates) }, 1},
	"redis-prefix":        {"p", func(o app.Options) any { return o.Redis.Prefix }, "p"},
	"retention":           {"2h", func(o app.Options) any { return []any{o.KV.Retention, o.Redis.Retention} }, []any{2 * time.Hour, 2 * time.Hour}},

	"webhook-listen":      {"127.0.0.1:1", func(o app.Options) any { return o.WebhookListen }, "127.0.0.1:1"},
	"webhook-secret-file": {"@0123456789abcdef", func(o app.Options) any { return o.WebhookSecret }, "0123456789abcdef"},

	"session":       {"a,b", func(o app.Options) any { return o.Sessions }, []string{"a", "b"}},
	"sessions-file": {"f", func(o app.Options) any { return o.SessionsFile }, "f"},
	"select":        {"agent=A", func(o app.Options) any { return o.Selectors }, []sources.Selector{{AgentID: "A"}}},
	"poll-interval": {"3s", func(o app.Options) any { return o.PollInterval }, 3 * time.Second},
	"stream":        {"false", func(o app.Options) any { return o.NoStream }, true},
	"sweep":         {"5s", func(o app.Options) any { return o.Dispatcher.Sweep }, 5 * time.Second},
	"watchdog":      {"5s", func(o app.Options) any { return o.Dispatcher.Watchdog }, 5 * time.Second},
	"attach-poll":   {"5s", func(o app.Options) any { return o.Dispatcher.AttachPoll }, 5 * time.Second},

	"linger":           {"0s", func(o app.Options) any { return o.Dispatcher.Linger }, time.Nanosecond},
	"batch-count":      {"7", func(o app.Options) any { return o.Dispatcher.BatchCount }, 7},
	"batch-bytes":      {"64KiB", func(o app.Options) any { return o.Dispatcher.BatchBytes }, 64 << 10},
	"max-result-bytes": {"1MiB", func(o app.Options) any { return o.Dispatcher.MaxResultBytes }, 1 << 20},
	"invalid-text":     {"error", func(o app.Options) any { return o.Dispatcher.InvalidText }, "error"},
	"queue-timeout":    {"5s", func(o app.Options) any { return o.Dispatcher.UnknownAfter }, 5 * time.Second},
	"deferred-timeout": {"5h", func(o app.Options) any { return o.Dispatcher.DeferredTimeout }, 5 * time.Hour},
	"resend":           {"5s", func(o app.Options) any { return o.Dispatcher.Resend }, 5 * time.Second},
	"lease-ttl":        {"5s", func(o app.Options) any { return o.Dispatcher.LeaseTTL }, 5 * time.Second},
	"stop-timeout":     {"5s", func(o app.Options) any { return o.Dispatcher.StopTimeout }, 5 * time.Second},

	"partitions":        {"8", func(o app.Options) any { return o.Queue.Partitions }, 8},
	"replicas":          {"3", func(o app.Options) any { return o.Queue.Replicas }, 3},
	"storage":           {"memory", func(o app.Options) any { return []any{o.Queue.Storage, o.KV.Storage} }, []any{queue.StorageMemory, jetstream.MemoryStorage}},
	"calls-max-bytes":   {"2GiB", func(o app.Options) any { return o.Queue.CallsMaxBytes }, int64(2 << 30)},
	"results-max-bytes": {"2GiB", func(o app.Options) any { return o.Queue.ResultsMaxBytes }, int64(2 << 30)},
	"dead-max-bytes":    {"2GiB", func(o app.Options) any { return o.Queue.DeadMaxBytes }, int64(2 << 30)},
	"dead-max-age":      {"1h", func(o app.Options) any { return o.Queue.DeadMaxAge }, time.Hour},
	"runs-keep":         {"100h", func(o app.Options) any { return o.RunsKeep }, 100 * time.Hour},
	"backlog":           {"5", func(o app.Options) any { return o.Queue.Backlog }, int64(5)},
	"ack-wait":          {"5s", func(o app.Options) any { return o.Queue.AckWait }, 5 * time.Second},
	"max-ack-pending":   {"5", func(o app.Options) any { return o.Queue.MaxAckPending }, 5},
	"duplicate-window":  {"5m", func(o app.Options) any { return o.Queue.DuplicateWindow }, 5 * time.Minute},

	"policies": {"@f: {attempts: 7}", func(o app.Options) any { return o.Dispatcher.Policies["f"].Attempts }, 7},

	"listen":           {":1", func(o app.Options) any { return o.Listen }, ":1"},
	"admin-token-file": {"@a-token-of-16-and-more", func(o app.Options) any { return o.AdminToken }, "a-token-of-16-and-more"},
}

// elsewhere are the flags that the program itself acts on.
var elsewhere = map[string]bool{
	"config": true, "help": true, "version": true, "check-config": true, "log-format": true, "log-level": true,
}

func TestEveryFlagReachesTheOptions(t *testing.T) {
	t.Parallel()
	model, err := config.Model(config.Program{Name: "dispatcher", Stdout: &bytes.Buffer{}}, &config.Dispatcher{})
	require.NoError(t, err)
	certificate, key := selfSigned()
	defaults := fromArgs(t, "--redis=redis://127.0.0.1:6379")
	for _, flag := range model.Flags {
		if elsewhere[flag.Name] {
			continue
		}
		s, ok := settings[flag.Name]
		if !ok {
			t.Errorf("flag --%s has no line in the table of this test", flag.Name)
			continue
		}
		t.Run(flag.Name, func(t *testing.T) {
			t.Parallel()
			args := []string{"--redis=redis://127.0.0.1:6379"}
			switch flag.Name {
			case "redis":
				args = nil
			case "redis-cert":
				args = append(args, "--redis-key="+writeFile(t, key))
			case "redis-key":
				args = append(args, "--redis-cert="+writeFile(t, certificate))
			}
			if text, ok := strings.CutPrefix(s.value, "@"); ok {
				s.value = writeFile(t, strings.NewReplacer("certificate", certificate, "key", key).Replace(text))
			}
			o := fromArgs(t, append(args, "--"+flag.Name+"="+s.value)...)
			require.Equal(t, s.want, s.got(o))
			require.NotEqual(t, defaults, o)
		})
	}
	require.Len(t, settings, len(model.Flags)-len(elsewhere), "the table names a flag that does not exist")
}

func fromArgs(t *testing.T, args ...string) app.Options {
	t.Helper()
	var c config.Dispatcher
	_, err := config.Parse(config.Program{Name: "dispatcher", Stdout: &bytes.Buffer{}}, &c, args)
	require.NoError(t, err)
	o, err := app.FromConfig(c)
	require.NoError(t, err)
	return o
}

// TestDefaultsAreThoseOfTheParts: what --help prints is what happens without a flag
// in programs that do not read flags.
func TestDefaultsAreThoseOfTheParts(t *testing.T) {
	t.Parallel()
	got := fromArgs(t).Queue.WithDefaults()
	want := queue.Config{}.WithDefaults()
	got.Logger, want.Logger = nil, nil
	require.Equal(t, want, got)
}

func TestRedisModes(t *testing.T) {
	t.Parallel()
	require.Nil(t, fromArgs(t).Redis)
	cluster := fromArgs(t, "--redis-mode=cluster", "--redis=redis://a:1?addr=b:2").Redis.Universal
	require.Equal(t, []string{"a:1", "b:2"}, cluster.Addrs)
	sentinel := fromArgs(t, "--redis-mode=sentinel", "--redis=redis://a:1/2?master_name=m&addr=b:2").Redis.Universal
	require.Equal(t, []string{"a:1", "b:2"}, sentinel.Addrs)
	require.Equal(t, "m", sentinel.MasterName)
	require.Equal(t, 2, sentinel.DB)

	_, err := app.FromConfig(config.Dispatcher{Redis: config.Redis{RedisURL: "http://h"}})
	require.ErrorIs(t, err, redisstore.ErrInvalidURL)
	_, err = app.FromConfig(config.Dispatcher{Redis: config.Redis{RedisURL: "redis://h", RedisMode: "sentinel"}})
	require.ErrorContains(t, err, "master_name")
	_, err = app.FromConfig(config.Dispatcher{Redis: config.Redis{RedisURL: "redis://h", RedisCA: writeFile(t, "no certificate")}})
	require.ErrorContains(t, err, "PEM")
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"no key":              {nil, "OPENAI_API_KEY"},
		"open door":           {[]string{"--listen=:8420"}, "CALLFAN_ADMIN_TOKEN"},
		"no port":             {[]string{"--listen=localhost"}, "want host:port"},
		"no file of sessions": {[]string{"--sessions-file=missing"}, "missing"},
		"partitions":          {[]string{"--partitions=2000"}, "partitions is 2000"},
		"lease":               {[]string{"--lease-ttl=1ms"}, "lease TTL"},
		"batch":               {[]string{"--batch-bytes=1"}, "batch bytes"},
		"runs":                {[]string{"--runs-keep=72h"}, "use more than 72h"},
		"name":                {[]string{"--name=a b"}, "without spaces"},
		"base URL":            {[]string{"--openai-base-url=ftp://h"}, "base URL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name != "no key" && name != "base URL" {
				tt.args = append(tt.args, "--openai-base-url=http://127.0.0.1:1/v1")
			}
			_, err := app.New(fromArgs(t, tt.args...))
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestNamesDiffer(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	require.NoError(t, err)
	a, b := app.DefaultName(), app.DefaultName()
	require.NotEqual(t, a, b)
	require.Contains(t, a, host)
}
