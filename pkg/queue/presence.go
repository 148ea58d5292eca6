package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/callfan/callfan/pkg/call"
)

// maxHeard bounds how many executors of one function are remembered.
const maxHeard = 1000

// Executor is an executor that was heard declaring a function.
type Executor struct {
	// ID, Language, Version and Host are what it says of itself; all may be empty.
	ID, Language, Version, Host string
	// Seen is when it last registered, to this dispatcher or to another.
	Seen time.Time
	// Current says that its definition is the one in force.
	Current bool
}

// presence remembers which executors were heard registering. Executors register again
// every RegistryCheck, and every dispatcher listens to all of these requests, so that
// who is there is known without a write anywhere (ADR 0020).
type presence struct {
	// keep is how long an executor counts after it was heard.
	keep time.Duration
	// since is when listening began; what came before was not heard.
	since time.Time

	mu    sync.Mutex
	seed  maphash.Seed
	heard map[string]map[string]heard // by token, then by executor
}

type heard struct {
	who executorInfo
	// raw is a hash of the definition's bytes, so that only one that changed is read.
	raw         uint64
	fingerprint string
	at          time.Time
}

// key tells executors apart; those that say nothing of themselves count as one.
func (e executorInfo) key() string {
	return cmp.Or(e.ID, fmt.Sprintf("%s/%s/%s", e.Host, e.Language, e.Version))
}

func newPresence(refresh time.Duration) *presence {
	return &presence{keep: 3 * refresh, since: time.Now(), seed: maphash.MakeSeed(), heard: map[string]map[string]heard{}}
}

// listen has the presence hear all registrations until ctx ends.
func (p *presence) listen(ctx context.Context, c *Conn) error {
	subject := c.names.register("*")
	sub, err := c.nc.Subscribe(subject, func(m *nats.Msg) { p.hear(lastToken(m.Subject), m.Data) })
	if err != nil {
		return fmt.Errorf("queue: listen on %s: %w", subject, err)
	}
	context.AfterFunc(ctx, func() { _ = sub.Drain() })
	return nil
}

// hear notes who sent a request. What is no registration is ignored.
func (p *presence) hear(token string, body []byte) {
	var req registerRequest
	if err := json.Unmarshal(body, &req); err != nil || req.Protocol != 1 || len(req.Function) == 0 {
		return
	}
	p.note(token, req)
}

func (p *presence) note(token string, req registerRequest) {
	h := heard{who: req.Executor, raw: maphash.Bytes(p.seed, req.Function), at: time.Now()}
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.heard[token]
	before, known := of[h.who.key()]
	switch {
	case known && before.raw == h.raw:
		h.fingerprint = before.fingerprint
	case !known && len(of) >= maxHeard:
		return
	default:
		var f call.Function
		if json.Unmarshal(req.Function, &f) != nil || f.Validate() != nil || call.Token(f.Name) != token {
			return
		}
		h.fingerprint = f.Fingerprint()
	}
	if of == nil {
		of = map[string]heard{}
		p.heard[token] = of
	}
	of[h.who.key()] = h
}

// prune forgets who was not heard for long.
func (p *presence) prune() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for token, of := range p.heard {
		maps.DeleteFunc(of, func(_ string, h heard) bool { return time.Since(h.at) > p.keep })
		if len(of) == 0 {
			delete(p.heard, token)
		}
	}
}

// executors lists who serves a function, by id.
func (p *presence) executors(token, fingerprint string) []Executor {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []Executor
	for _, h := range p.heard[token] {
		if time.Since(h.at) <= p.keep {
			list = append(list, Executor{
				ID: h.who.ID, Language: h.who.Language, Version: h.who.Version, Host: h.who.Host,
				Seen: h.at, Current: h.fingerprint == fingerprint,
			})
		}
	}
	slices.SortFunc(list, func(a, b Executor) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Host, b.Host)) })
	return list
}

// others are the executors besides one that hold a definition. complete says that none
// can have been missed, because listening began long enough ago.
func (p *presence) others(token, fingerprint string, besides executorInfo) (others []heard, complete bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, h := range p.heard[token] {
		if key != besides.key() && h.fingerprint == fingerprint && time.Since(h.at) <= p.keep {
			others = append(others, h)
		}
	}
	return others, time.Since(p.since) > p.keep
}
