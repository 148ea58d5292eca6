package app

import (
	"context"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	"golang.org/x/sync/errgroup"

	"github.com/callfan/callfan/pkg/queue"
	"github.com/callfan/callfan/pkg/results"
)

// openTimeout bounds one try to open the store.
const openTimeout = 10 * time.Second

// open connects to NATS and opens the store, and makes what the installation needs.
// What is not there yet is waited for, until ctx ends.
func (d *Dispatcher) open(ctx context.Context) (parts, error) {
	conn := d.opts.Conn
	if conn == nil {
		var err error
		if conn, err = queue.Connect(ctx, d.opts.Queue); err != nil {
			return parts{}, err
		}
		d.closes.push("NATS connection", func(context.Context) error { conn.Close(); return nil })
	}
	d.state.setConn(conn)
	p := parts{conn: conn}
	group, within := errgroup.WithContext(ctx)
	provisioned := make(chan struct{})
	group.Go(func() (err error) {
		if err = conn.Provision(within); err != nil {
			return err
		}
		close(provisioned)
		p.secret, err = conn.Secret(within)
		return err
	})
	group.Go(func() (err error) {
		if d.opts.Redis == nil && d.opts.Store == nil { // the store is in JetStream
			select {
			case <-provisioned:
			case <-within.Done():
				return within.Err()
			}
		}
		p.store, err = d.awaitStore(within, conn)
		return err
	})
	err := group.Wait()
	if p.store != nil && d.opts.Store == nil {
		d.closes.push("results store", func(context.Context) error { return p.store.Close() })
	}
	return p, err
}

// awaitStore opens the store, however long that takes, unless it is unfit.
func (d *Dispatcher) awaitStore(ctx context.Context, conn *queue.Conn) (results.Store, error) {
	if d.opts.Store != nil {
		d.state.setStore(d.opts.Store)
		return d.opts.Store, nil
	}
	waits := backoff.NewExponentialBackOff(backoff.WithInitialInterval(250*time.Millisecond),
		backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(0))
	said := ""
	for {
		try, cancel := context.WithTimeout(ctx, openTimeout)
		store, err := d.opts.openStore(try, conn)
		cancel()
		switch {
		case err == nil:
			d.state.setStore(store)
			d.log.Info("the results store is open", "kind", d.opts.storeKind())
			return store, nil
		case unfit(err):
			return nil, fmt.Errorf("results store: %w", err)
		case ctx.Err() != nil:
			return nil, ctx.Err()
		}
		d.state.noStore(err)
		if text := err.Error(); text != said {
			said = text
			d.log.Warn("the results store cannot be used yet; trying until it can", "kind", d.opts.storeKind(), "error", err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(waits.NextBackOff()):
		}
	}
}

func (o Options) storeKind() string {
	if o.Redis != nil {
		return "redis"
	}
	return "jetstream"
}
