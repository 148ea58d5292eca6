package app

import (
	"context"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/internal/sources"
)

// attachSessions attaches the sessions that the options name.
func (d *Dispatcher) attachSessions(ctx context.Context, running *dispatcher.Dispatcher) {
	if len(d.opts.Sessions) == 0 {
		return
	}
	waits := backoff.NewExponentialBackOff(backoff.WithInitialInterval(250*time.Millisecond),
		backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(0))
	for said := false; ; said = true {
		err := running.Attach(ctx, d.opts.Sessions...)
		if err == nil || ctx.Err() != nil {
			return
		}
		if !said {
			d.log.Warn("sessions cannot be attached yet; trying until they are", "sessions", len(d.opts.Sessions), "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(waits.NextBackOff()):
		}
	}
}

func (d *Dispatcher) followFile(ctx context.Context, running *dispatcher.Dispatcher) {
	if d.opts.SessionsFile != "" {
		sources.File{Path: d.opts.SessionsFile, Logger: d.log}.Run(ctx, running)
	}
}

// pollSelectors lists sessions while this replica owns partition 0: one replica is
// enough.
func (d *Dispatcher) pollSelectors(ctx context.Context, running *dispatcher.Dispatcher) {
	if len(d.opts.Selectors) == 0 {
		return
	}
	poll := sources.Poll{API: d.api, Selectors: d.opts.Selectors, Interval: d.opts.PollInterval, Logger: d.log}
	for awaitOwner(ctx, running, true) {
		owning, lost := context.WithCancel(ctx)
		var watch sync.WaitGroup
		watch.Go(func() { awaitOwner(owning, running, false); lost() })
		poll.Run(owning, running)
		lost()
		watch.Wait()
	}
}

// awaitOwner waits until this replica owns partition 0, or does not any more. It is
// false when ctx ended before.
func awaitOwner(ctx context.Context, running *dispatcher.Dispatcher, owner bool) bool {
	look := time.NewTicker(500 * time.Millisecond)
	defer look.Stop()
	for ctx.Err() == nil {
		if running.Owns(0) == owner {
			return true
		}
		select {
		case <-ctx.Done():
		case <-look.C:
		}
	}
	return false
}
