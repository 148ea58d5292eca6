package redisstore

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"
)

// scanCount is how many keys Redis looks at in one step of a walk: enough to make
// few round trips of it, and few enough to hold up the calls of others for less
// than a millisecond.
const scanCount = 1000

// Unfinished visits the sessions with calls that have not ended; see
// results.Store. It looks at every key of every master, a step at a time. What it
// remembers is the sessions that it visited.
func (s *Store) Unfinished(ctx context.Context, each func(session string) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	masters, err := masters(ctx, s.client)
	if err != nil {
		return explain(err)
	}
	visited := map[string]bool{}
	for _, master := range masters {
		for cursor := uint64(0); ; {
			var keys []string
			keys, cursor, err = master.Scan(ctx, cursor, s.keys.everyTurn(), scanCount).Result()
			if err != nil {
				return explain(err)
			}
			sessions, err := s.unfinished(ctx, keys)
			if err != nil {
				return err
			}
			for _, session := range sessions {
				if visited[session] {
					continue
				}
				visited[session] = true
				if err := each(session); err != nil {
					return err
				}
			}
			if cursor == 0 {
				break
			}
		}
	}
	return nil
}

// masters are the servers that hold keys.
func masters(ctx context.Context, client redis.UniversalClient) ([]redis.Cmdable, error) {
	cluster, ok := client.(*redis.ClusterClient)
	if !ok {
		return []redis.Cmdable{client}, nil
	}
	var mu sync.Mutex // ForEachMaster runs concurrently
	var found []redis.Cmdable
	err := cluster.ForEachMaster(ctx, func(_ context.Context, master *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		found = append(found, master)
		return nil
	})
	return found, err
}

// unfinished are the sessions of those keys that are turns with calls that have
// not ended. It asks through the store's client: a key may have moved to another
// master since it was found.
func (s *Store) unfinished(ctx context.Context, keys []string) ([]string, error) {
	p := s.client.Pipeline()
	var sessions []string
	var counts []*redis.StringCmd
	for _, key := range keys {
		if session, ok := s.keys.sessionOf(key); ok {
			sessions, counts = append(sessions, session), append(counts, p.HGet(ctx, key, "n"))
		}
	}
	if len(counts) == 0 {
		return nil, nil
	}
	_, _ = p.Exec(ctx) // the error of each command is its own
	found := sessions[:0]
	for i, count := range counts {
		n, err := count.Result()
		if errors.Is(err, redis.Nil) { // forgotten meanwhile
			continue
		}
		if err != nil {
			return nil, explain(err)
		}
		if left, err := strconv.ParseInt(n, 10, 64); err == nil && left > 0 {
			found = append(found, sessions[i])
		}
	}
	return found, nil
}
