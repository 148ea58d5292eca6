//go:build unix

package chaos

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// nemesis makes things fail. Its rule is that the installation can survive everything by design:
//
//   - each dispatcher and each executor fails on its own, so any number of them may be gone at once;
//   - one NATS server at a time, and the next one only after all streams have two replicas that are up to date;
//   - one fault of Redis at a time, and the next one only after the master has a replica in step;
//   - one burst of faults of the API at a time.
//
// Domains do not wait for each other.
type nemesis struct {
	cfg  Config
	inst *installation
	api  *api
	log  *slog.Logger

	mu     sync.Mutex
	counts map[string]int
}

// run makes faults until ctx ends, and leaves the last ones as they are.
func (n *nemesis) run(ctx context.Context) {
	var wg sync.WaitGroup
	part := uint64(10)
	domain := func(name string, gap time.Duration, fault func(context.Context, *rand.Rand)) {
		part++
		rng := n.cfg.random(part) // drawn for disabled domains too, so that a seed means the same for the others
		if len(n.cfg.Faults) > 0 && !slices.Contains(n.cfg.Faults, name) {
			return
		}
		wg.Go(func() {
			for sleep(ctx, time.Duration((0.3+1.4*rng.Float64())*float64(gap))) {
				fault(ctx, rng)
			}
		})
	}
	for _, p := range n.inst.executors {
		domain("executor", n.cfg.Gap, func(ctx context.Context, rng *rand.Rand) { n.program(ctx, rng, "executor", p) })
	}
	for _, p := range n.inst.dispatchers {
		domain("dispatcher", n.cfg.Gap, func(ctx context.Context, rng *rand.Rand) { n.program(ctx, rng, "dispatcher", p) })
	}
	domain("nats", n.cfg.Gap, n.natsFault)
	domain("redis", n.cfg.Gap, n.redisFault)
	domain("api", n.cfg.Gap, n.burst)
	wg.Wait()
	<-ctx.Done()
}

// did counts and logs a fault.
func (n *nemesis) did(kind, whom string, args ...any) {
	n.mu.Lock()
	n.counts[kind]++
	n.mu.Unlock()
	n.log.Info("fault", append([]any{"kind", kind, "whom", whom}, args...)...)
}

func (n *nemesis) injected() map[string]int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.counts)
}

// program kills, freezes or stops a dispatcher or an executor.
func (n *nemesis) program(ctx context.Context, rng *rand.Rand, kind string, p *process) {
	switch choice := rng.IntN(10); {
	case choice < 4:
		n.kill(ctx, rng, kind+"_kill", p)
	case choice < 6 && p.host != "":
		n.cutOff(ctx, rng, kind+"_cut_off", p)
	case choice < 8:
		n.freeze(ctx, rng, kind+"_freeze", p)
	default:
		down := spread(rng, 0, 3*time.Second)
		n.did(kind+"_term", p.name, "down", down)
		if !p.terminate(15 * time.Second) {
			n.did(kind+"_term_too_slow", p.name)
		}
		sleep(ctx, down)
		n.restart(p)
	}
}

// kill ends a process without warning and starts it again after 0 to 10 s.
func (n *nemesis) kill(ctx context.Context, rng *rand.Rand, kind string, p *process) {
	down := spread(rng, 0, 10*time.Second)
	if rng.IntN(4) == 0 {
		down = 0
	}
	n.did(kind, p.name, "down", down)
	p.kill()
	sleep(ctx, down)
	n.restart(p)
}

// freeze stops a process for 1 to 20 s: its connections stay, and it does not know.
func (n *nemesis) freeze(ctx context.Context, rng *rand.Rand, kind string, p *process) {
	down := spread(rng, time.Second, 20*time.Second)
	n.did(kind, p.name, "down", down)
	p.signal(syscall.SIGSTOP)
	sleep(ctx, down)
	resume(p)
}

// cutOff takes a process off the network for 1 to 20 s. It works on with what it has.
func (n *nemesis) cutOff(ctx context.Context, rng *rand.Rand, kind string, p *process) {
	off := spread(rng, time.Second, 20*time.Second)
	n.did(kind, p.name, "down", off)
	if err := cut(p.host, true); err != nil {
		n.log.Error("cannot cut off", "whom", p.name, "error", err)
	}
	sleep(ctx, off)
	if err := cut(p.host, false); err != nil {
		n.log.Error("cannot put back", "whom", p.name, "error", err)
	}
}

func resume(p *process) { p.signal(syscall.SIGCONT) }

func (n *nemesis) restart(p *process) {
	if err := p.start(); err != nil {
		n.log.Error("cannot start again", "whom", p.name, "error", err)
	}
}

// natsFault hits the leader of a stream or any server, then waits for the cluster to be whole.
func (n *nemesis) natsFault(ctx context.Context, rng *rand.Rand) {
	p, kind := n.inst.nats[rng.IntN(natsServers)], "nats"
	choice, stream := rng.IntN(3), []string{"FN_CALLS", "FN_RESULTS"}[rng.IntN(2)]
	if leader := n.inst.natsLeader(ctx, stream); choice > 0 && leader != nil {
		p, kind = leader, "nats_leader"
	}
	switch way := rng.IntN(4); {
	case way < 2:
		n.kill(ctx, rng, kind+"_kill", p)
	case way == 2 && p.host != "":
		n.cutOff(ctx, rng, kind+"_cut_off", p)
	default:
		n.freeze(ctx, rng, kind+"_freeze", p)
	}
	n.whole(ctx, "nats", n.inst.natsWhole)
}

// redisFault hits a role of Redis, then waits until it is whole.
func (n *nemesis) redisFault(ctx context.Context, rng *rand.Rand) {
	choice := rng.IntN(10)
	master, err := n.inst.redisMaster(ctx)
	if err != nil {
		n.log.Warn("no fault: Sentinel does not answer", "error", err)
		return
	}
	node := n.inst.redis[master]
	switch {
	case choice < 2:
		client := n.inst.redisClient(master)
		defer client.Close()
		flushing, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		if err := client.FlushAll(flushing).Err(); err == nil {
			n.did("redis_flushall", node.name)
		}
	case choice < 5:
		n.kill(ctx, rng, "redis_master_kill", node)
	case choice < 7:
		n.freeze(ctx, rng, "redis_master_freeze", node)
	case choice < 9:
		n.kill(ctx, rng, "redis_replica_kill", n.inst.redis[1-master])
	default:
		n.kill(ctx, rng, "sentinel_kill", n.inst.sentinel)
	}
	n.whole(ctx, "redis", n.inst.redisWhole)
}

// whole waits until what was hit can take the next fault.
func (n *nemesis) whole(ctx context.Context, what string, check func(context.Context) error) {
	began := time.Now()
	if err := until(ctx, 2*time.Minute, what+" did not become whole", func() error { return check(ctx) }); err != nil && ctx.Err() == nil {
		n.log.Error("waiting longer than it should", "error", err)
		return
	}
	n.log.Info("whole again", "whom", what, "after", time.Since(began).Round(time.Millisecond))
}

func spread(rng *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(rng.Int64N(int64(most-least)+1)).Round(time.Millisecond)
}

// describe lists the faults by kind.
func describe(counts map[string]int) string {
	var text strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&text, "  %-28s %6d\n", kind, counts[kind])
	}
	return text.String()
}
