package app

import (
	"time"

	"github.com/callfan/callfan/internal/agents"
	"github.com/callfan/callfan/internal/config"
	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/internal/sources"
	"github.com/callfan/callfan/pkg/queue"
	"github.com/callfan/callfan/pkg/results/kvstore"
)

// FromConfig turns the settings of the program into options. Its errors are about
// the settings and the files that they name.
func FromConfig(c config.Dispatcher) (Options, error) {
	redis, err := redisConfig(c.Redis)
	if err != nil {
		return Options{}, err
	}
	policies, err := config.LoadPolicies(c.Policies)
	if err != nil {
		return Options{}, err
	}
	o := Options{
		Name: c.Name,
		API: agents.Config{
			APIKey: c.OpenAIAPIKey.Reveal(), BaseURL: c.OpenAIBaseURL.Reveal(),
			Organization: c.OpenAIOrganization, Project: c.OpenAIProject, Timeout: c.OpenAITimeout,
		},
		Queue: queueConfig(c.NATS, c.Installation),
		Redis: redis,
		KV:    kvstore.Config{Retention: c.Retention, Storage: natsStorage(c.Storage)},
		Dispatcher: dispatcher.Config{
			LeaseTTL: c.LeaseTTL, AttachPoll: c.AttachPoll, Watchdog: c.Watchdog, Sweep: c.Sweep,
			// To the dispatcher zero means the default.
			Linger:     max(c.Linger, time.Nanosecond),
			BatchCount: c.BatchCount, BatchBytes: int(c.BatchBytes), MaxResultBytes: int(c.MaxResultBytes),
			Resend: c.Resend, UnknownAfter: c.QueueTimeout, DeferredTimeout: c.DeferredTimeout,
			StopTimeout: c.StopTimeout, InvalidText: c.InvalidText,
			Policies: policies,
		},
		Sessions: c.Session, SessionsFile: c.SessionsFile, PollInterval: c.PollInterval, NoStream: !c.Stream,
		RunsKeep: c.RunsKeep,
		Listen:   c.Listen, AdminToken: c.AdminToken.Reveal(),
		WebhookListen: c.WebhookListen, WebhookSecret: c.WebhookSecret.Reveal(),
	}
	for _, s := range c.Select {
		o.Selectors = append(o.Selectors, sources.Selector(s))
	}
	return o, nil
}

func queueConfig(n config.NATS, i config.Installation) queue.Config {
	return queue.Config{
		URL: n.NATSURL.Reveal(), Prefix: n.Prefix,
		CredsFile: n.NATSCreds, NKeyFile: n.NATSNKey,
		User: n.NATSUser, Password: n.NATSPassword.Reveal(), Token: n.NATSToken.Reveal(),
		CAFile: n.NATSCA, CertFile: n.NATSCert, KeyFile: n.NATSKey,
		InboxPrefix: n.NATSInboxPrefix, APIPrefix: n.NATSAPIPrefix,
		Replicas: i.Replicas, Storage: queue.Storage(i.Storage), Partitions: i.Partitions,
		CallsMaxBytes: int64(i.CallsMaxBytes), ResultsMaxBytes: int64(i.ResultsMaxBytes),
		DeadMaxBytes: int64(i.DeadMaxBytes), DeadMaxAge: i.DeadMaxAge,
		Backlog: i.Backlog, AckWait: i.AckWait, MaxAckPending: i.MaxAckPending, DuplicateWindow: i.DuplicateWindow,
	}
}
