package natsaccess_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/natsaccess"
	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/queue"
)

// access is a server that was set up by a form of the plan, and how to be somebody there.
type access struct {
	server  *testservers.NATSServer
	user    func(name string) queue.Config
	grants  map[string]natsaccess.Grant
	options natsaccess.Options
}

// forms are all that the package writes.
var forms = map[string]func(testing.TB) access{
	"passwords":             func(t testing.TB) access { return byConfig(t, natsaccess.Options{}) },
	"nkeys":                 func(t testing.TB) access { return byConfig(t, natsaccess.Options{NKeys: true}) },
	"accounts":              func(t testing.TB) access { return byConfig(t, natsaccess.Options{Accounts: true}) },
	"accounts with a name":  func(t testing.TB) access { return byConfig(t, other) },
	"JWT":                   func(t testing.TB) access { return byNSC(t, natsaccess.Options{}) },
	"JWT with own accounts": func(t testing.TB) access { return byNSC(t, natsaccess.Options{Accounts: true}) },
}

var other = natsaccess.Options{Accounts: true, Account: "STREAMS", Installation: queue.Config{Prefix: "Team-1", APIPrefix: "js.imported"}}

func plan(t testing.TB, options natsaccess.Options) (natsaccess.Plan, map[string]natsaccess.Grant) {
	t.Helper()
	p, err := natsaccess.New([]natsaccess.Pool{{Name: "weather", Functions: []string{"get_weather", "a weather.map"}}, {Name: "billing", Functions: []string{"charge"}}}, options)
	require.NoError(t, err)
	grants := map[string]natsaccess.Grant{}
	for _, grant := range p.Grants {
		grants[grant.Pool] = grant
	}
	return p, grants
}

// config is how the executors of a pool, or the dispatcher, connect but for who they are.
func config(o natsaccess.Options, name string) queue.Config {
	c := o.Installation
	c.InboxPrefix = "_INBOX_" + name
	if name == "dispatcher" {
		c.APIPrefix = ""
	} else if o.Accounts && c.APIPrefix == "" {
		c.APIPrefix = "FN.API"
	}
	return c
}

// byConfig gives the server the configuration, with the variables that it reads from its environment defined before it.
func byConfig(t testing.TB, options natsaccess.Options, edits ...func(string) string) access {
	t.Helper()
	p, grants := plan(t, options)
	text, seeds := "", map[string]string{}
	for _, name := range []string{"dispatcher", "weather", "billing"} {
		if !options.NKeys {
			text += fmt.Sprintf("%s_PASSWORD: secret\n", strings.ToUpper(name))
			continue
		}
		pair, err := nkeys.CreateUser()
		require.NoError(t, err)
		public, err := pair.PublicKey()
		require.NoError(t, err)
		seed, err := pair.Seed()
		require.NoError(t, err)
		seeds[name] = filepath.Join(t.TempDir(), "seed")
		require.NoError(t, os.WriteFile(seeds[name], seed, 0o600))
		text += fmt.Sprintf("%s_NKEY: %s\n", strings.ToUpper(name), public)
	}
	text += p.Config()
	for _, edit := range edits {
		text = edit(text)
	}
	return access{
		server: testservers.NATS(t, testservers.NATSConfig(text)), grants: grants, options: p.Options,
		user: func(name string) queue.Config {
			c := config(options, name)
			if options.NKeys {
				c.NKeyFile = seeds[name]
			} else {
				c.User, c.Password = name, "secret"
			}
			return c
		},
	}
}

// byNSC runs the commands, and gives the server what nsc makes of it.
func byNSC(t testing.TB, options natsaccess.Options) access {
	t.Helper()
	p, grants := plan(t, options)
	dir := t.TempDir()
	script := `nsc add operator --name operator --sys
nsc add account --name CALLFAN
nsc edit account --name CALLFAN --js-mem-storage -1 --js-disk-storage -1
nsc add user --account CALLFAN --name dispatcher
` + p.NSC() + `
nsc generate config --mem-resolver --config-file resolver.conf
`
	cmd := exec.Command("sh", "-euc", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+testservers.NSC(t)+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+dir, "TMPDIR="+dir,
		"NSC_HOME="+dir+"/nsc", "NKEYS_PATH="+dir+"/keys", "XDG_DATA_HOME="+dir+"/data", "XDG_CONFIG_HOME="+dir+"/config")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	resolver, err := os.ReadFile(filepath.Join(dir, "resolver.conf"))
	require.NoError(t, err)
	return access{
		server: testservers.NATS(t, testservers.NATSConfig(string(resolver))), grants: grants, options: p.Options,
		user: func(name string) queue.Config {
			c := config(options, name)
			account := "CALLFAN"
			if options.Accounts && name != "dispatcher" {
				account = strings.ToUpper(name)
			}
			c.CredsFile = filepath.Join(dir, "keys/creds/operator", account, name+".creds")
			return c
		},
	}
}
