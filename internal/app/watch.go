package app

import (
	"context"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/internal/sources"
)

// attachAgain is how often the sessions that the options name are attached once more: a
// store that lost its data has lost the list of watched sessions too.
const attachAgain = time.Minute

// attachSessions keeps the sessions that the options name attached.
func (d *Dispatcher) attachSessions(ctx context.Context, running *dispatcher.Dispatcher) {
	if len(d.opts.Sessions) == 0 {
		return
	}
	waits := backoff.NewExponentialBackOff(backoff.WithInitialInterval(250*time.Millisecond),
		backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(0))
	for said := false; ; {
		err := running.Attach(ctx, d.opts.Sessions...)
		if ctx.Err() != nil {
			return
		}
		wait := waits.NextBackOff()
		if err == nil {
			waits.Reset()
			said, wait = false, attachAgain
		} else if !said {
			said = true
			d.log.Warn("sessions cannot be attached yet; trying until they are", "sessions", len(d.opts.Sessions), "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
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
