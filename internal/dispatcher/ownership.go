package dispatcher

import (
	"context"
	"hash/fnv"
	"strconv"
	"sync"
	"time"

	"github.com/callfan/callfan/pkg/results"
)

// own keeps the leases of this replica's share of the partitions until ctx ends,
// then stops and releases them.
//
// Each partition has one wanted owner among the announced replicas, found by all
// of them alike (rendezvous hashing); a replica lets go of partitions that another
// one should have and takes those it should have itself as they become free.
func (d *Dispatcher) own(ctx context.Context) {
	tick := time.NewTicker(d.cfg.LeaseTTL / 10)
	defer tick.Stop()
	var nextRenewal time.Time
	failing := false
	for {
		if now := time.Now(); !now.Before(nextRenewal) {
			err := d.renew(ctx)
			switch {
			case err == nil:
				nextRenewal = now.Add(d.cfg.LeaseTTL / 3)
				if failing {
					d.log.Info("leases renewed again")
				}
			case ctx.Err() == nil && !failing:
				d.log.Error("cannot renew the leases; partitions stop when they run out", "error", err)
			}
			failing = err != nil
		}
		d.stopExpired(time.Now())
		select {
		case <-ctx.Done():
			d.resign()
			return
		case <-tick.C:
		}
	}
}

// renew announces this replica and takes or renews the partitions it should own.
func (d *Dispatcher) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.LeaseTTL/3)
	defer cancel()
	start := time.Now()
	members, err := d.store.Join(ctx, d.cfg.Name, d.cfg.LeaseTTL)
	if err != nil {
		return err
	}
	wanted := share(d.cfg.Name, members, d.cfg.Partitions)
	isWanted := make(map[int]bool, len(wanted))
	for _, n := range wanted {
		isWanted[n] = true
	}
	if unwanted := d.ownedBut(isWanted); len(unwanted) > 0 {
		d.handOver(unwanted)
	}
	leases, err := d.store.Acquire(ctx, d.cfg.Name, wanted, d.cfg.LeaseTTL)
	if err != nil {
		return err
	}
	held := make(map[int]bool, len(leases))
	for _, l := range leases {
		held[l.Partition] = true
		d.hold(l, start.Add(l.Left))
	}
	if lost := d.ownedBut(held); len(lost) > 0 {
		d.stop(lost, false)
	}
	d.report()
	return nil
}

// hold starts the partition of a lease, or prolongs it. A changed fence means that
// somebody else owned it meanwhile: start afresh.
func (d *Dispatcher) hold(l results.Lease, until time.Time) {
	d.mu.Lock()
	p := d.partitions[l.Partition]
	d.mu.Unlock()
	if p != nil && p.fence == l.Fence {
		p.until.Store(until.UnixNano())
		return
	}
	if p != nil {
		d.stop([]int{l.Partition}, false)
	}
	p = newPartition(d, l, until)
	d.mu.Lock()
	d.partitions[l.Partition] = p
	d.mu.Unlock()
	d.obs.Count(EventTakeover)
	p.start()
}

// ownedBut lists the owned partitions that are not in keep.
func (d *Dispatcher) ownedBut(keep map[int]bool) []int {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []int
	for n := range d.partitions {
		if !keep[n] {
			out = append(out, n)
		}
	}
	return out
}

// stopExpired stops partitions whose lease has run out or that were fenced off.
func (d *Dispatcher) stopExpired(now time.Time) {
	d.mu.Lock()
	var expired, fenced []int
	for n, p := range d.partitions {
		if p.fenced.Load() || now.UnixNano() >= p.until.Load() {
			expired = append(expired, n)
		}
		if p.fenced.Load() {
			fenced = append(fenced, n)
		}
	}
	d.mu.Unlock()
	if len(expired) == 0 {
		return
	}
	d.log.Warn("partitions lost", "count", len(expired))
	for range expired {
		d.obs.Count(EventPartitionLost)
	}
	d.stop(expired, false)
	d.report()
	d.renounce(fenced)
}

// renounce gives up the leases of partitions whose fence was refused. When another replica
// owns them, it has no effect. But a store that fails over can forget a lease, and with it
// the fence that calls were stamped with, and give this replica its last lease back: only
// a new one has a fence above all others.
func (d *Dispatcher) renounce(fenced []int) {
	if len(fenced) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), d.cfg.LeaseTTL/3)
	defer cancel()
	if err := d.store.Release(ctx, d.cfg.Name, fenced); err != nil {
		d.log.Warn("cannot renounce partitions", "error", err)
	}
}

// handOver lets go of partitions that another replica should have. It runs beside
// the renewals, which must not wait for submissions under way.
func (d *Dispatcher) handOver(numbers []int) {
	parts := d.remove(numbers)
	d.handOvers.Go(func() {
		stopAll(parts, true)
		ctx, cancel := context.WithTimeout(context.Background(), d.cfg.StopTimeout)
		defer cancel()
		if err := d.store.Release(ctx, d.cfg.Name, numbers); err != nil {
			d.log.Warn("cannot release partitions; they are free when the lease runs out", "error", err)
		}
	})
}

// stop ends the work on partitions and waits for it. A graceful stop finishes
// submissions under way first.
func (d *Dispatcher) stop(numbers []int, graceful bool) { stopAll(d.remove(numbers), graceful) }

// remove takes partitions out of those that are served.
func (d *Dispatcher) remove(numbers []int) []*partition {
	d.mu.Lock()
	defer d.mu.Unlock()
	var parts []*partition
	for _, n := range numbers {
		if p := d.partitions[n]; p != nil {
			delete(d.partitions, n)
			parts = append(parts, p)
		}
	}
	return parts
}

func stopAll(parts []*partition, graceful bool) {
	var wg sync.WaitGroup
	for _, p := range parts {
		wg.Go(func() { p.stop(graceful) })
	}
	wg.Wait()
}

// resign stops everything and gives the partitions to whoever comes next.
func (d *Dispatcher) resign() {
	owned := d.ownedBut(nil)
	d.stop(owned, true)
	d.handOvers.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), d.cfg.StopTimeout)
	defer cancel()
	if err := d.store.Release(ctx, d.cfg.Name, owned); err != nil {
		d.log.Warn("cannot release the partitions; they are free when the lease runs out", "error", err)
	}
	if err := d.store.Leave(ctx, d.cfg.Name); err != nil {
		d.log.Warn("cannot withdraw from the dispatchers", "error", err)
	}
}

func (d *Dispatcher) report() {
	d.mu.Lock()
	n, sessions := len(d.partitions), 0
	for _, p := range d.partitions {
		sessions += p.size()
	}
	d.mu.Unlock()
	d.obs.Owned(n, sessions)
}

// share is the partitions that name should own among members: each partition goes
// to the member with the highest hash of the pair.
func share(name string, members []string, partitions int) []int {
	var mine []int
	for n := range partitions {
		best, owner := uint64(0), name
		for _, m := range members {
			h := fnv.New64a()
			_, _ = h.Write([]byte(strconv.Itoa(n) + "/" + m))
			// The last bytes of FNV hardly reach its high bits: mix once more.
			if w := h.Sum64() * 0x9E3779B97F4A7C15; w > best || w == best && m < owner {
				best, owner = w, m
			}
		}
		if owner == name {
			mine = append(mine, n)
		}
	}
	return mine
}
