//go:build unix

package chaos

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/callfan/callfan/internal/simulator"
	"github.com/callfan/callfan/pkg/results/redisstore"
)

// Run makes one run and reports what it found. An error means that the run itself could not be made.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	cfg = cfg.withDefaults()
	if _, known := Bugs[cfg.Bug]; cfg.Bug != "" && !known {
		return nil, fmt.Errorf("no planted fault %q", cfg.Bug)
	}
	log := cfg.logger()
	temporary := cfg.Dir == ""
	if temporary {
		dir, err := os.MkdirTemp("", "callfan-chaos-")
		if err != nil {
			return nil, err
		}
		cfg.Dir = dir
	} else if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, err
	}
	log.Info("chaos", "seed", cfg.Seed, "for", cfg.Duration, "dir", cfg.Dir, "bug", cfg.Bug)
	report, err := run(ctx, cfg)
	if err == nil && report.Pass && temporary {
		return report, os.RemoveAll(cfg.Dir)
	}
	return report, err
}

func run(ctx context.Context, cfg Config) (*Report, error) {
	log := cfg.logger()
	programs, err := build(ctx, cfg.Dir, cfg.Bug)
	if err != nil {
		return nil, err
	}
	inst := &installation{dir: cfg.Dir, programs: programs}
	if inst.net.hosts, err = isolated(); err != nil {
		return nil, err
	}
	defer inst.stop()
	if err := inst.startServers(ctx); err != nil {
		return nil, err
	}
	api, err := serveAPI(inst.net.base())
	if err != nil {
		return nil, err
	}
	defer api.close()
	if err := inst.startCallfan(api.url); err != nil {
		return nil, err
	}
	if err := until(ctx, startPatience, "the streams are not whole", func() error { return inst.natsWhole(ctx) }); err != nil {
		return nil, err
	}
	log.Info("started")

	published := &outcomes{succeeded: map[string]bool{}}
	if err := published.listen(inst.conn); err != nil {
		return nil, err
	}
	w := newWorkload(api, cfg.random(1))
	n := &nemesis{cfg: cfg, inst: inst, api: api, log: log, counts: map[string]int{}}
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	go w.watch(watching)
	o := newOperator(inst.admins, inst.effectsDir(), cfg.random(2), log)
	go o.run(watching)
	began := time.Now()
	working, stop := context.WithDeadline(ctx, began.Add(cfg.Duration))
	defer stop()
	settling, giveUp := context.WithDeadline(ctx, began.Add(cfg.Duration+cfg.Settle))
	defer giveUp()
	posted := make(chan struct{})
	go func() { defer close(posted); w.run(working, settling, cfg.Rate) }()
	go progress(working, cfg, w)
	n.run(working)

	log.Info("healing")
	_ = api.sim.SetFaults(simulator.Faults{}) // the zero plan is valid
	if err := inst.heal(); err != nil {
		return nil, err
	}
	healed := time.Now()
	<-posted
	err = until(settling, cfg.Settle, "turns have not ended", func() error {
		stats := api.sim.Stats()
		if open := w.look(time.Now()); open > 0 || stats.Pending > 0 || stats.TurnsCompleted < stats.Turns {
			return fmt.Errorf("%d calls are open", open)
		}
		return nil
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		log.Error("calls are lost", "error", err)
	}
	end := time.Now()
	stopWatching()
	r := &Report{Bug: cfg.Bug, Seed: cfg.Seed, Seconds: cfg.Duration.Seconds(), SettleSeconds: end.Sub(healed).Seconds()}
	r.FaultsBy = n.injected()
	for _, c := range r.FaultsBy {
		r.Faults += c
	}
	r.Decisions, r.Exits = o.made(), inst.exits()
	if cfg.Bug == "" {
		inst.leftovers(ctx, log, r, w)
	}
	if err := published.read(ctx, inst.js); err != nil {
		log.Warn("it is not known which outcomes are left", "error", err)
	}
	if err := check(r, w, api, published, inst.effectsDir(), end); err != nil {
		return nil, err
	}
	r.judge()
	return r, ctx.Err()
}

// progress says now and then how far the run is.
func progress(ctx context.Context, cfg Config, w *workload) {
	began := time.Now()
	for sleep(ctx, 15*time.Second) {
		w.mu.Lock()
		asked, answered := len(w.planned), 0
		for _, p := range w.planned {
			if !p.answered.IsZero() {
				answered++
			}
		}
		w.mu.Unlock()
		cfg.logger().Info("progress", "after", time.Since(began).Round(time.Second), "calls", asked, "answered", answered)
	}
}

// leftovers counts what is left in the streams and in Redis after a while.
func (i *installation) leftovers(ctx context.Context, log *slog.Logger, r *Report, w *workload) {
	_ = until(ctx, 45*time.Second, "something is left", func() error { // what is left is in the report
		counts := map[string]uint64{}
		list := i.js.ListStreams(ctx)
		for s := range list.Info() {
			counts[s.Config.Name] = s.State.Msgs
		}
		if list.Err() != nil {
			return list.Err()
		}
		r.LeftCalls, r.LeftResults = counts["FN_CALLS"], counts["FN_RESULTS"]
		var err error
		if r.Unsettled, err = i.unsettled(ctx, w); err != nil {
			return err
		}
		if r.LeftCalls+r.LeftResults > 0 || r.Unsettled > 0 {
			return errors.New("not empty")
		}
		return nil
	})
	var err error
	if r.DeadBy, err = i.letters(ctx); err != nil {
		log.Warn("dead letters are not all counted", "error", err)
	}
	for _, n := range r.DeadBy {
		r.Dead += n
	}
	r.LateResults = r.DeadBy[lateResult]
}

// unsettled counts the calls that Redis does not hold for ended.
func (i *installation) unsettled(ctx context.Context, w *workload) (int, error) {
	store, err := redisstore.New(ctx, redisstore.Config{Partitions: partitions, Universal: &redis.UniversalOptions{
		Addrs: []string{i.sentinelAddr}, MasterName: masterName,
	}})
	if err != nil {
		return 0, err
	}
	defer store.Close()
	w.mu.Lock()
	var ids []string
	for _, c := range w.sessions {
		ids = append(ids, c.id)
	}
	w.mu.Unlock()
	n := 0
	for _, id := range ids {
		recs, err := store.Session(ctx, id)
		if err != nil {
			return 0, err
		}
		for _, rec := range recs {
			if !rec.State.Final() {
				n++
			}
		}
	}
	return n, nil
}
