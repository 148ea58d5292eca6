// Package executorapp wires the generic executor: a file of functions, the
// executor that serves them, its health and its metrics.
package executorapp

import (
	"time"

	"github.com/callfan/callfan/internal/config"
	"github.com/callfan/callfan/pkg/queue"
)

// Settings are those of the program.
type Settings struct {
	config.Common
	File     string `arg:"" help:"YAML file of functions; see docs/functions-file.md." placeholder:"FUNCTIONS.YAML"`
	Check    bool   `help:"Check the file and the settings, print nothing if they are right, and exit." commandline:""`
	Register bool   `help:"Register the functions once a dispatcher answers, and exit. For executors that start when calls wait for them." commandline:""`

	config.Logging
	config.NATS `embed:"" group:"NATS"`
	Work        `embed:"" group:"Calls"`
}

// Work says how calls are run.
type Work struct {
	Name          string        `help:"Name of this process in logs, registrations and the history of calls: at most 128 printable bytes. Defaults to the host's name, the process id and a random suffix." env:"CALLFAN_NAME" placeholder:"NAME"`
	Concurrency   int           `help:"How many calls run at once; only as many are taken from the queue." default:"32" env:"CALLFAN_CONCURRENCY"`
	StopTimeout   time.Duration `help:"How long running calls may go on after SIGTERM or an interrupt. Keep it below the time that the platform gives." default:"25s" zero:"" env:"CALLFAN_STOP_TIMEOUT"`
	MetricsListen string        `help:"Address for /healthz, /readyz and /metrics, such as :8421. Without it they are off." env:"CALLFAN_METRICS_LISTEN" placeholder:"ADDRESS"`
}

func (s Settings) queue() queue.Config {
	n := s.NATS
	return queue.Config{
		URL: n.NATSURL.Reveal(), Prefix: n.Prefix,
		CredsFile: n.NATSCreds, NKeyFile: n.NATSNKey,
		User: n.NATSUser, Password: n.NATSPassword.Reveal(), Token: n.NATSToken.Reveal(),
		CAFile: n.NATSCA, CertFile: n.NATSCert, KeyFile: n.NATSKey,
		InboxPrefix: n.NATSInboxPrefix, APIPrefix: n.NATSAPIPrefix,
	}
}
