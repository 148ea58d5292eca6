package redisstore

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// policyWanted is the one maxmemory-policy under which Redis never drops a key
// of its own accord: with any other, a full Redis silently forgets claims, and a
// forgotten claim is a call that runs twice.
const policyWanted = "noeviction"

// EvictionError says that a server would evict keys when its memory is full, or
// does not tell. New returns it before anything is written.
type EvictionError struct {
	// Policy is the server's maxmemory-policy; empty when it could not be read.
	Policy string
	// Err is why the policy could not be read; nil when it was.
	Err error
}

// Error names the policy and the remedy.
func (e *EvictionError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("cannot read maxmemory-policy of Redis: %v; allow the user CONFIG GET or INFO", e.Err)
	}
	return fmt.Sprintf("maxmemory-policy of Redis is %q, so it may forget calls when its memory is full; "+
		"set it to noeviction (CONFIG SET maxmemory-policy noeviction, and in redis.conf)", e.Policy)
}

// Unwrap gives the reason why the policy could not be read.
func (e *EvictionError) Unwrap() error { return e.Err }

// checkPolicy checks every master that client knows.
func checkPolicy(ctx context.Context, client redis.UniversalClient) error {
	cluster, ok := client.(*redis.ClusterClient)
	if !ok {
		return checkServer(ctx, client)
	}
	var mu sync.Mutex // ForEachMaster runs concurrently and keeps one error
	var first error
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		err := checkServer(ctx, master)
		mu.Lock()
		defer mu.Unlock()
		if first == nil {
			first = err
		}
		return err
	})
	if first != nil {
		return first
	}
	return err
}

func checkServer(ctx context.Context, client redis.Cmdable) error {
	policy, err := readPolicy(ctx, client)
	switch {
	case err != nil && isServerError(err):
		return &EvictionError{Err: err}
	case err != nil:
		return err
	case policy != policyWanted:
		return &EvictionError{Policy: policy}
	}
	return nil
}

// readPolicy asks CONFIG, and INFO where CONFIG is forbidden or removed, as
// managed services do.
func readPolicy(ctx context.Context, client redis.Cmdable) (string, error) {
	settings, err := client.ConfigGet(ctx, "maxmemory-policy").Result()
	if err == nil && settings["maxmemory-policy"] != "" {
		return settings["maxmemory-policy"], nil
	}
	if err != nil && !isServerError(err) {
		return "", err
	}
	info, err := client.Info(ctx, "memory").Result()
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(info) {
		if policy, ok := strings.CutPrefix(strings.TrimSpace(line), "maxmemory_policy:"); ok {
			return policy, nil
		}
	}
	return "", fmt.Errorf("no maxmemory_policy in INFO memory")
}
