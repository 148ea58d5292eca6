package config

import "time"

// Dispatcher holds the settings of the dispatcher.
type Dispatcher struct {
	Common
	Name        string `help:"Name of this replica; every dispatcher needs its own. Defaults to the host's name and a random suffix." env:"CALLFAN_NAME" placeholder:"NAME"`
	CheckConfig bool   `help:"Check the settings, print nothing if they are right, and exit." commandline:""`

	Logging
	OpenAI       `embed:"" group:"OpenAI API"`
	NATS         `embed:"" group:"NATS"`
	Redis        `embed:"" group:"Results store"`
	Sessions     `embed:"" group:"Sessions to watch"`
	Calls        `embed:"" group:"Calls and results"`
	Replica      `embed:"" group:"Replicas"`
	Installation `embed:"" group:"Installation (the same for all replicas)"`
	Operations   `embed:"" group:"Operations"`
	Webhooks     `embed:"" group:"Webhooks"`
}

// OpenAI says which API to talk to, and as whom.
type OpenAI struct {
	OpenAIAPIKey       Secret        `name:"openai-api-key-file" help:"File with the API key. The key itself is taken from OPENAI_API_KEY." secret:"OPENAI_API_KEY" env:"OPENAI_API_KEY_FILE" placeholder:"FILE"`
	OpenAIBaseURL      Address       `name:"openai-base-url" help:"Address of the API with its version, such as that of callfan simulate. Defaults to the real one." env:"OPENAI_BASE_URL" placeholder:"URL"`
	OpenAIOrganization string        `name:"openai-organization" help:"Organization, where the key belongs to several." env:"OPENAI_ORG_ID" placeholder:"ID"`
	OpenAIProject      string        `name:"openai-project" help:"Project, where the key belongs to several." env:"OPENAI_PROJECT_ID" placeholder:"ID"`
	OpenAITimeout      time.Duration `name:"openai-timeout" help:"Bound of one request." default:"30s" env:"CALLFAN_OPENAI_TIMEOUT"`
}

// NATS says how to reach NATS. It serves dispatchers and executors.
type NATS struct {
	NATSURL         Address `name:"nats" help:"Address of NATS, or several with commas between them. With a password in it, by the environment only." default:"nats://127.0.0.1:4222" env:"NATS_URL"`
	NATSCreds       string  `name:"nats-creds" help:"Credentials file (JWT and seed)." env:"NATS_CREDS" placeholder:"FILE"`
	NATSNKey        string  `name:"nats-nkey" help:"File with an nkey seed." env:"NATS_NKEY" placeholder:"FILE"`
	NATSUser        string  `name:"nats-user" help:"User name." env:"NATS_USER" placeholder:"NAME"`
	NATSPassword    Secret  `name:"nats-password-file" help:"File with the user's password. The password itself is taken from NATS_PASSWORD." secret:"NATS_PASSWORD" env:"NATS_PASSWORD_FILE" placeholder:"FILE"`
	NATSToken       Secret  `name:"nats-token-file" help:"File with a token. The token itself is taken from NATS_TOKEN." secret:"NATS_TOKEN" env:"NATS_TOKEN_FILE" placeholder:"FILE"`
	NATSCA          string  `name:"nats-ca" help:"Certificates of the authorities that sign the server's; turns TLS on." env:"NATS_CA" placeholder:"FILE"`
	NATSCert        string  `name:"nats-cert" help:"Client certificate." env:"NATS_CERT" placeholder:"FILE"`
	NATSKey         string  `name:"nats-key" help:"Key of the client certificate." env:"NATS_KEY" placeholder:"FILE"`
	NATSInboxPrefix string  `name:"nats-inbox-prefix" help:"Subject prefix of replies, for users whose permissions name one. Defaults to _INBOX." env:"CALLFAN_NATS_INBOX_PREFIX" placeholder:"SUBJECT"`
	NATSAPIPrefix   string  `name:"nats-api-prefix" help:"Subject prefix of the JetStream API, for accounts that import it under another name. Defaults to $$JS.API." env:"CALLFAN_NATS_API_PREFIX" placeholder:"SUBJECT"`
	Prefix          string  `help:"First token of every subject and stream of the installation." default:"fn" env:"CALLFAN_PREFIX"`
}

// Redis says where results are kept.
type Redis struct {
	RedisURL      Address       `name:"redis" help:"Address of Redis: redis://, rediss:// (TLS) or unix://. With a password in it, by the environment only. Without an address, results are kept in JetStream." env:"REDIS_URL" placeholder:"URL"`
	RedisMode     string        `name:"redis-mode" help:"What the address leads to: single, cluster (further nodes as &addr=host:port) or sentinel (&master_name=NAME)." enum:"single,cluster,sentinel" default:"single" env:"CALLFAN_REDIS_MODE"`
	RedisUser     string        `name:"redis-user" help:"User name." env:"REDIS_USERNAME" placeholder:"NAME"`
	RedisPassword Secret        `name:"redis-password-file" help:"File with the password. The password itself is taken from REDIS_PASSWORD." secret:"REDIS_PASSWORD" env:"REDIS_PASSWORD_FILE" placeholder:"FILE"`
	RedisCA       string        `name:"redis-ca" help:"Certificates of the authorities that sign the server's; turns TLS on." env:"CALLFAN_REDIS_CA" placeholder:"FILE"`
	RedisCert     string        `name:"redis-cert" help:"Client certificate." env:"CALLFAN_REDIS_CERT" placeholder:"FILE"`
	RedisKey      string        `name:"redis-key" help:"Key of the client certificate." env:"CALLFAN_REDIS_KEY" placeholder:"FILE"`
	RedisPrefix   string        `name:"redis-prefix" help:"Start of every key, so that installations can share a Redis." default:"fx" env:"CALLFAN_REDIS_PREFIX"`
	Retention     time.Duration `help:"How long the markers of ended turns are kept." default:"1h" env:"CALLFAN_RETENTION"`
}

// Sessions says which sessions to watch, and how.
type Sessions struct {
	Session      []string      `help:"Watch this session; can be repeated. More are added by callfan sessions watch." env:"CALLFAN_SESSIONS" placeholder:"ID"`
	SessionsFile string        `help:"Watch the sessions in this file, one id in a line; changes of the file are followed." env:"CALLFAN_SESSIONS_FILE" placeholder:"FILE"`
	Select       []Selector    `help:"Watch the listed sessions that match: agent=ID, metadata.KEY=VALUE, or several of them with commas; can be repeated, then any may match." sep:";" env:"CALLFAN_SELECT" placeholder:"CONDITIONS"`
	PollInterval time.Duration `help:"How often sessions are listed for --select." default:"15s" env:"CALLFAN_POLL_INTERVAL"`
	Stream       bool          `help:"Subscribe to the events of each watched session. Without, only the watchdog looks at them." default:"true" negatable:"" env:"CALLFAN_STREAM"`
	Watchdog     time.Duration `help:"How often a session is looked at when nothing else asks for it." default:"1m" env:"CALLFAN_WATCHDOG"`
	Sweep        time.Duration `help:"How often the store is compared with what is served, to find what no event will mention." default:"5m" env:"CALLFAN_SWEEP"`
	AttachPoll   time.Duration `help:"How often the list of watched sessions is looked up in the store." default:"1s" env:"CALLFAN_ATTACH_POLL"`
}

// Calls says how calls are handed over and results submitted.
type Calls struct {
	Linger          time.Duration `help:"How long the first result of a batch waits for others while calls of its turn are outstanding." default:"10ms" zero:"" env:"CALLFAN_LINGER"`
	BatchCount      int           `help:"Most results in one submission." default:"32" env:"CALLFAN_BATCH_COUNT"`
	BatchBytes      Size          `help:"Most bytes in one submission; a larger result goes alone." default:"900KiB" env:"CALLFAN_BATCH_BYTES"`
	MaxResultBytes  Size          `help:"Most bytes of one result; a larger one is answered with an error." default:"4092KiB" env:"CALLFAN_MAX_RESULT_BYTES"`
	InvalidText     string        `help:"What happens to outputs that are not valid Unicode: replace the bad parts, or answer with an error." enum:"replace,error" default:"replace" env:"CALLFAN_INVALID_TEXT"`
	QueueTimeout    time.Duration `help:"How long a call waits for somebody to register its function. A registered function has its own." default:"1m" env:"CALLFAN_QUEUE_TIMEOUT"`
	Policies        string        `help:"YAML file of function names and the parts of their policies that overrule what executors declare: timeout, queue_timeout, total_deadline, attempts, backoff, effects, on_uncertain." env:"CALLFAN_POLICIES" placeholder:"FILE"`
	DeferredTimeout time.Duration `help:"How long a call waits for a result that its executor deferred." default:"24h" env:"CALLFAN_DEFERRED_TIMEOUT"`
	Resend          time.Duration `help:"First wait before an accepted result that is still listed is sent again; it doubles each time." default:"15s" env:"CALLFAN_RESEND"`
}

// Replica says how this replica shares the work with others.
type Replica struct {
	LeaseTTL    time.Duration `help:"How long the partitions of a dead replica stay with it." default:"10s" env:"CALLFAN_LEASE_TTL"`
	StopTimeout time.Duration `help:"Bound of the graceful stop." default:"10s" env:"CALLFAN_STOP_TIMEOUT"`
}

// Installation says what the streams look like that the dispatchers make.
type Installation struct {
	Partitions      int           `help:"Number of partitions of the sessions, 1 to 1024; fixed once an installation exists." default:"64" env:"CALLFAN_PARTITIONS"`
	Replicas        int           `help:"Copies of every stream: 1, 3 or 5." default:"1" env:"CALLFAN_REPLICAS"`
	Storage         string        `help:"Where JetStream keeps the streams: file or memory." enum:"file,memory" default:"file" env:"CALLFAN_STORAGE"`
	CallsMaxBytes   Size          `help:"Most bytes of calls that wait; more are refused until there is room. 0 means 1GiB, or 128MiB in memory." default:"0" zero:"" env:"CALLFAN_CALLS_MAX_BYTES"`
	ResultsMaxBytes Size          `help:"Most bytes of results that wait. 0 means 1GiB, or 128MiB in memory." default:"0" zero:"" env:"CALLFAN_RESULTS_MAX_BYTES"`
	DeadMaxBytes    Size          `help:"Most bytes of dead letters, the oldest of which go first. 0 means 256MiB, or 32MiB in memory." default:"0" zero:"" env:"CALLFAN_DEAD_MAX_BYTES"`
	DeadMaxAge      time.Duration `help:"How long dead letters are kept." default:"336h" env:"CALLFAN_DEAD_MAX_AGE"`
	RunsKeep        time.Duration `help:"How long a run of the Responses API can be read after its last change; more than 72h, which is the longest that one may take." default:"168h" env:"CALLFAN_RUNS_KEEP"`
	Backlog         int64         `help:"Most calls of one function that wait." default:"100000" env:"CALLFAN_BACKLOG"`
	AckWait         time.Duration `help:"Lease of a call that was handed to an executor." default:"30s" env:"CALLFAN_ACK_WAIT"`
	MaxAckPending   int           `help:"Most calls of a pool that are with executors." default:"20000" env:"CALLFAN_MAX_ACK_PENDING"`
	DuplicateWindow time.Duration `help:"How long JetStream recognises a repeated call." default:"2m" env:"CALLFAN_DUPLICATE_WINDOW"`
}

// Operations says where operators reach the program.
type Operations struct {
	Listen     string `help:"Address for health, metrics and the admin API; empty turns them off. Others than loopback need an admin token." default:"127.0.0.1:8420" env:"CALLFAN_LISTEN"`
	AdminToken Secret `name:"admin-token-file" help:"File with the token that the admin API asks for. The token itself is taken from CALLFAN_ADMIN_TOKEN." secret:"CALLFAN_ADMIN_TOKEN" env:"CALLFAN_ADMIN_TOKEN_FILE" placeholder:"FILE"`
}

// Webhooks says where OpenAI reaches the program.
type Webhooks struct {
	WebhookListen string `help:"Address on which OpenAI's webhooks are received, at /webhooks/openai; the only one that has to be reachable from outside. Empty turns them off." env:"CALLFAN_WEBHOOK_LISTEN" placeholder:"HOST:PORT"`
	WebhookSecret Secret `name:"webhook-secret-file" help:"File with the signing secret of the webhook endpoint. The secret itself is taken from OPENAI_WEBHOOK_SECRET." secret:"OPENAI_WEBHOOK_SECRET" env:"OPENAI_WEBHOOK_SECRET_FILE" placeholder:"FILE"`
}
