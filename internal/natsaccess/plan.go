// Package natsaccess writes down who may do what at NATS, one user for the executors of each pool, in the forms that
// servers and their tools read. What a user needs is known to pkg/queue.
package natsaccess

import (
	"fmt"
	"slices"
	"strings"

	"github.com/callfan/callfan/pkg/queue"
)

// Pool is a deployment of executors.
type Pool struct {
	Name      string
	Functions []string
}

// ParsePool reads POOL=FUNCTION,FUNCTION,…
func ParsePool(text string) (Pool, error) {
	name, functions, found := strings.Cut(text, "=")
	if !found || functions == "" {
		return Pool{}, fmt.Errorf("%q: say POOL=FUNCTION,FUNCTION", text)
	}
	return Pool{Name: name, Functions: strings.Split(functions, ",")}, nil
}

// Options say how access is arranged.
type Options struct {
	// Installation has the Prefix, and the APIPrefix and InboxPrefix where they are not the defaults; see
	// queue.ExecutorPermissions. With Accounts the APIPrefix defaults to the prefix in upper case and ".API".
	Installation queue.Config
	// Account is the one that holds the streams. Defaults to "CALLFAN".
	Account string
	// Accounts gives each pool an account of its own, which imports what it needs, instead of a user in Account.
	Accounts bool
	// NKeys has users prove themselves by nkeys, instead of passwords.
	NKeys bool
}

// Plan is who may do what.
type Plan struct {
	Options
	Grants []Grant
}

// Grant is what the executors of one pool are given.
type Grant struct {
	Pool        string            `json:"pool"`
	Permissions queue.Permissions `json:"permissions"`
	// Account is the pool's own, if it has one, and Exports what that imports from the account with the streams.
	Account string         `json:"account,omitempty"`
	Exports []queue.Export `json:"exports,omitempty"`
}

// New makes the plan for these pools. A pool that comes twice has the functions of both.
func New(pools []Pool, options Options) (Plan, error) {
	if options.Account == "" {
		options.Account = "CALLFAN"
	}
	if options.Accounts && options.Installation.APIPrefix == "" {
		options.Installation.APIPrefix = strings.ToUpper(options.Installation.WithDefaults().Prefix) + ".API"
	}
	if options.Installation.InboxPrefix != "" && len(pools) > 1 {
		return Plan{}, fmt.Errorf("one inbox prefix for %d pools lets each read the replies of the others", len(pools))
	}
	plan := Plan{Options: options}
	owner, identifiers := map[string]string{}, map[string]string{variable(dispatcher): dispatcher, options.Account: "the streams"}
	for _, pool := range merge(pools) {
		for _, function := range pool.Functions {
			if other, taken := owner[function]; taken {
				return Plan{}, fmt.Errorf("function %q is in the pools %s and %s: it belongs to exactly one", function, other, pool.Name)
			}
			owner[function] = pool.Name
		}
		grant, err := options.grant(pool)
		if err != nil {
			return Plan{}, err
		}
		if other, taken := identifiers[variable(pool.Name)]; taken {
			return Plan{}, fmt.Errorf("pool %s cannot be told from %s where only capitals, digits and underscores are allowed: rename it", pool.Name, other)
		}
		identifiers[variable(pool.Name)] = pool.Name
		plan.Grants = append(plan.Grants, grant)
	}
	return plan, nil
}

func merge(pools []Pool) (merged []Pool) {
	for _, pool := range pools {
		at := slices.IndexFunc(merged, func(have Pool) bool { return have.Name == pool.Name })
		if at < 0 {
			merged, at = append(merged, Pool{Name: pool.Name}), len(merged)
		}
		for _, function := range pool.Functions {
			if !slices.Contains(merged[at].Functions, function) {
				merged[at].Functions = append(merged[at].Functions, function)
			}
		}
	}
	return merged
}

func (o Options) grant(pool Pool) (Grant, error) {
	permissions, err := queue.ExecutorPermissions(o.Installation, pool.Name, pool.Functions)
	if err != nil || !o.Accounts {
		return Grant{Pool: pool.Name, Permissions: permissions}, err
	}
	exports, err := queue.ExecutorExports(o.Installation, pool.Name, pool.Functions)
	return Grant{Pool: pool.Name, Permissions: permissions, Account: variable(pool.Name), Exports: exports}, err
}

// dispatcher is the user of the dispatchers.
const dispatcher = "dispatcher"

// variable is a name in the alphabet of environment variables and of accounts.
func variable(name string) string {
	return strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}
