package architecture

// Paths inside this module are written without its name: "pkg/call". A rule for a path holds for the packages below it.

// planned holds packages that rules name before they exist. A package leaves the list when it is there.
var planned = []string{
	"cmd/callfan",
	"cmd/dispatcher",
	"cmd/executor",
	"internal/app",
}

// adapters speak to one outside system each.
var adapters = []string{
	"pkg/queue",              // NATS JetStream
	"pkg/results/redisstore", // Redis
	"pkg/results/kvstore",    // JetStream KV
	"internal/agents",        // the OpenAI Agents API
	"internal/responses",     // the OpenAI Responses API
	"internal/webhooks",      // OpenAI's webhooks
}

// wiring holds the packages that put adapters together.
var wiring = []string{
	"cmd",
	"internal/app",
	"internal/demo", // a whole installation in one process, as cmd/callfan shows it
}

// embedsNATSServer holds the programs that run a nats-server in process.
var embedsNATSServer = []string{"cmd/callfan"}

// onlyImports says what a package may import beside the standard library and itself.
var onlyImports = map[string][]string{
	"pkg/call": {},
	"internal/dispatcher": {
		"pkg/call",
		"pkg/results", // the contract of the store, not an implementation
		"github.com/cenkalti/backoff/v4",
	},
	"internal/runs": {
		"pkg/call",
		"internal/toollist",
		"golang.org/x/sync/errgroup",
		"github.com/cenkalti/backoff/v4",
	},
	"internal/responses": {
		"pkg/call",
		"internal/apiclient",
		"internal/runs", // whose Model it is
		openai + "/openai-go/v3",
		openai + "/openai-go/v3/conversations",
		openai + "/openai-go/v3/option",
		openai + "/openai-go/v3/packages/ssestream",
		openai + "/openai-go/v3/responses",
	},
	"internal/webhooks": {
		"internal/httpserver",
		openai + "/openai-go/v3/option",
		openai + "/openai-go/v3/webhooks",
	},
}

const (
	redis      = "github.com/redis"
	openai     = "github.com/openai"
	nats       = "github.com/nats-io"
	prometheus = "github.com/prometheus"
	natsServer = "github.com/nats-io/nats-server"
)

// neverLinks says what must not be linked into a package, neither directly nor through another package.
var neverLinks = []struct {
	packages []string
	links    []string
	because  string
}{
	{
		packages: []string{"internal/dispatcher"},
		links:    []string{nats, redis, openai, prometheus},
		because:  "the dispatcher declares the interfaces it needs, and adapters implement them",
	},
	{
		packages: []string{"internal/runs"},
		links:    []string{nats, redis, openai, prometheus},
		because:  "the loop declares the interfaces it needs, and adapters implement them",
	},
	{
		packages: []string{"pkg/queue"},
		links:    []string{redis, openai, natsServer},
		because:  "pkg/queue is the adapter to NATS",
	},
	{
		packages: []string{"pkg/results/redisstore"},
		links:    []string{nats, openai},
		because:  "redisstore is the adapter to Redis",
	},
	{
		packages: []string{"pkg/results/kvstore"},
		links:    []string{redis, openai, natsServer},
		because:  "kvstore is the adapter to JetStream KV",
	},
	{
		packages: []string{"internal/agents"},
		links:    []string{nats, redis},
		because:  "agents is the adapter to the OpenAI Agents API",
	},
	{
		packages: []string{"internal/responses"},
		links:    []string{nats, redis, prometheus, "internal/dispatcher"},
		because:  "responses is the adapter to the OpenAI Responses API",
	},
	{
		packages: []string{"internal/webhooks"},
		links:    []string{nats, redis, prometheus, "internal/dispatcher", "internal/runs"},
		because:  "webhooks receives, and whoever wires it says what follows",
	},
	{
		packages: []string{"internal/apiclient"},
		links:    []string{nats, redis, prometheus, "internal/dispatcher", "internal/runs"},
		because:  "apiclient is what the adapters to OpenAI share",
	},
	{
		packages: []string{"pkg/executor", "cmd/executor"},
		links:    []string{redis, openai},
		because:  "an executor speaks NATS and nothing else",
	},
	{
		packages: []string{"internal/simulator"},
		links:    []string{nats, redis, "internal/dispatcher", "internal/agents", "pkg/queue", "pkg/executor"},
		because:  "the simulator stands for the service and is used through its HTTP API",
	},
}

// testOnly holds what production code does not import.
var testOnly = []string{
	"github.com/stretchr/testify", "go.uber.org/goleak", "pgregory.net/rapid", "internal/testservers", "testing",
}

// named returns the packages of this module that rules name.
func named() map[string]bool {
	names := map[string]bool{}
	add := func(paths ...string) {
		for _, path := range paths {
			if isStd(path) && path != "testing" {
				names[path] = true
			}
		}
	}
	add(adapters...)
	add(embedsNATSServer...)
	add(wiring[1:]...) // cmd is a folder, not a package
	add(testOnly...)
	for name, allowed := range onlyImports {
		add(name)
		add(allowed...)
	}
	for _, rule := range neverLinks {
		add(rule.packages...)
		add(rule.links...)
	}
	return names
}
