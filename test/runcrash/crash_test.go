//go:build unix

package runcrash

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/programtest"
	"github.com/callfan/callfan/internal/simulator"
	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
)

const (
	// atOnce is how many runs go on at a time.
	atOnce = 8
	// patience is how long a run may take, with all the kills in it.
	patience = 3 * time.Minute
	leaseTTL = time.Second
)

// world is the installation under test.
type world struct {
	sim      *simulator.Simulator
	gate     *gate
	trap     *trap
	replicas *replicas
	journal  *journal
}

func build(t *testing.T) *world {
	t.Helper()
	nats, redis := testservers.NATS(t), testservers.Redis(t)
	sim, err := simulator.New(simulator.Config{ModelDelay: 20 * time.Millisecond, StreamDelay: 2 * time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(sim.Close)
	w := &world{sim: sim, replicas: &replicas{t: t, living: map[string]*process{}, died: map[string]time.Time{}, froze: map[string][]time.Time{}}}
	w.trap = newTrap()
	w.gate = &gate{api: sim.Handler(), trap: w.trap, process: w.replicas.process}
	front := httptest.NewServer(w.gate)
	t.Cleanup(func() { front.CloseClientConnections(); front.Close() })
	w.replicas.command = func(replica, name string) programtest.Command {
		level := "info"
		if *logs != "" {
			level = "debug"
		}
		return programtest.Command{
			Path: programtest.Build(t, "cmd/dispatcher"), Quiet: true,
			Args: []string{"--log-level", level, "--name", name, "--listen", "127.0.0.1:0", "--partitions", "8", "--lease-ttl", leaseTTL.String(), "--ack-wait", "5s"},
			Env: []string{
				"OPENAI_BASE_URL=" + front.URL + "/" + replica + "/v1", "OPENAI_API_KEY=test",
				"NATS_URL=" + nats.URL(), "REDIS_URL=" + redis.URL(),
			},
		}
	}
	w.journal = &journal{trap: w.trap, byCall: map[call.Key]int{}, byRun: map[string]int{}}
	w.execute(t, nats.URL())
	return w
}

// execute runs the executor until the test ends.
func (w *world) execute(t *testing.T, nats string) {
	t.Helper()
	cfg := executor.Config{Pool: "squares", Logger: slog.New(slog.DiscardHandler)}
	cfg.Queue.URL = nats
	ex, err := executor.New(cfg)
	require.NoError(t, err)
	require.NoError(t, executor.HandleRaw(ex, "square", w.journal.square))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- ex.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	w.replicas.revive(rand.New(rand.NewPCG(0, 0))) //nolint:gosec // a test
	require.Eventually(t, func() bool { return ex.Ready(ctx) == nil }, patience, 10*time.Millisecond, "the executor is not ready")
}

func TestRunsSurviveTheDeathOfDispatchers(t *testing.T) {
	seed := *seed
	if seed == 0 {
		seed = rand.Uint64N(1_000_000) //nolint:gosec // a test
	}
	t.Logf("again with: go test ./test/runcrash -args -kills %d -seed %d; with -logs DIR it keeps what the dispatchers log", *kills, seed)
	w := build(t)
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test
	plans, finish := w.load(t, seed)
	where := map[point]int{}
	for n := range *kills {
		if n%8 == 7 {
			w.freezeOnce(random)
		}
		where[w.killOnce(random)]++
		if random.IntN(3) == 0 {
			rest(t.Context(), time.Duration(random.IntN(1000))*time.Millisecond)
		}
		w.replicas.revive(random)
		if t.Context().Err() != nil {
			t.Fatalf("no time for more than %d kills", n)
		}
	}
	finish()
	w.judge(t, plans(), where)
}

// killOnce kills at a point of the runs, or at any moment when the point is not reached soon. It says where.
func (w *world) killOnce(random *rand.Rand) point {
	wait := time.Duration(random.IntN(1500)) * time.Millisecond
	both := random.IntN(6) == 0
	if random.IntN(5) > 0 {
		w.trap.arm(random, w.replicas.kill)
		select {
		case at := <-w.trap.fired:
			if both {
				w.replicas.kill("")
			}
			return at
		case <-time.After(2*leaseTTL + wait):
		}
		if !w.trap.disarm() {
			return <-w.trap.fired
		}
		wait = 0
	}
	<-time.After(wait)
	victim := replicaNames[random.IntN(len(replicaNames))]
	if both {
		victim = ""
	}
	w.replicas.kill(victim)
	return "any moment"
}

// freezeOnce freezes a replica at a point, until others have taken over what it did.
func (w *world) freezeOnce(random *rand.Rand) {
	w.trap.arm(random, w.replicas.freeze)
	select {
	case <-w.trap.fired:
	case <-time.After(2 * leaseTTL):
		if w.trap.disarm() {
			return
		}
		<-w.trap.fired
	}
	<-time.After(leaseTTL + time.Duration(random.IntN(1000))*time.Millisecond)
	w.replicas.thaw()
}

// load keeps runs going until finish is called, which waits for their ends.
func (w *world) load(t *testing.T, seed uint64) (plans func() []*plan, finish func()) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // a test
	var mu sync.Mutex
	var all []*plan
	stop := make(chan struct{})
	next := func() *plan {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, planned(len(all), seed, random))
		return all[len(all)-1]
	}
	var work sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	for range atOnce {
		work.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				run, done := context.WithTimeout(ctx, patience)
				next().do(run, w.replicas.admin, func() { w.trap.reach(started, "") })
				done()
			}
		})
	}
	t.Cleanup(func() { cancel(); work.Wait() })
	return func() []*plan { return all }, sync.OnceFunc(func() { close(stop); work.Wait() })
}

// judge reports and fails the test for what must not be.
func (w *world) judge(t *testing.T, plans []*plan, where map[point]int) {
	t.Helper()
	modesOf, ended, longest := map[string]string{}, map[string]int{}, time.Duration(0)
	for _, p := range plans {
		modesOf[p.id] = p.mode
		ended[p.mode]++
		longest = max(longest, p.took)
		if wrong := p.verdict(); wrong != "" {
			t.Errorf("run %s (%s, %s): %s", p.id, p.key, p.mode, wrong)
		}
		w.journal.mu.Lock()
		if ran := w.journal.byRun[p.id]; ran != len(p.numbers) {
			t.Errorf("run %s (%s, %s) had %d executions, want %d", p.id, p.key, p.mode, ran, len(p.numbers))
		}
		w.journal.mu.Unlock()
	}
	w.journal.mu.Lock()
	defer w.journal.mu.Unlock()
	for key, n := range w.journal.byCall {
		if n > 1 {
			t.Errorf("the call %s was run %d times", key, n)
		}
	}
	sent := 0
	for _, out := range w.sim.ReceivedOutputs() {
		if len(out.Contents) > 1 {
			t.Errorf("call %s of response %s has %d different outputs: %s", out.CallID, out.ResponseID, len(out.Contents), contents(out))
		}
		sent += min(1, len(out.Contents))
	}
	t.Logf("%d runs %v, %d calls run, %d answered; killed at %v; the longest run took %s", len(plans), ended, w.journal.total, sent, where, longest.Round(time.Millisecond))
	again := w.askedAgain(t, modesOf)
	t.Logf("responses: %d; asked for again, by mode: %v", len(w.sim.Responses()), again)
}

func contents(out simulator.ReceivedOutput) string {
	var text []string
	for _, c := range out.Contents {
		text = append(text, string(c.Output))
	}
	return strings.Join(text, " and ")
}

// askedAgain counts the responses that were asked for once more, and checks that a kill explains each.
func (w *world) askedAgain(t *testing.T, modesOf map[string]string) map[string]int {
	t.Helper()
	again := map[string]int{}
	for at, requests := range w.gate.requests() {
		for i, later := range requests[1:] {
			earlier := requests[i]
			mode := modesOf[at[0]]
			when, ailed := w.replicas.ailed(earlier.process, earlier.at, later.at)
			again[mode]++
			if earlier.process == "" { // it was dead before its request was read
				continue
			}
			switch {
			case !ailed:
				again[mode+", as its partition moved"]++
			case earlier.stored && !earlier.told.IsZero() && when.Sub(earlier.told) > leaseTTL:
				t.Errorf("%s round %s was asked for again although the response was known for %s", at[0], at[1], when.Sub(earlier.told))
			}
			if earlier.stored && earlier.body != later.body {
				t.Errorf("%s round %s was asked for in other words:\n%s\n%s", at[0], at[1], earlier.body, later.body)
			}
		}
	}
	return again
}
