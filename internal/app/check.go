package app

import (
	"context"
	"log/slog"

	"github.com/callfan/callfan/pkg/queue"
)

// Check finds what New cannot: settings of NATS that do not go together, and files
// that cannot be read. It may try to connect, and does not mind when that fails.
func (d *Dispatcher) Check(ctx context.Context) error {
	if d.opts.Conn != nil {
		return nil
	}
	quiet := d.opts.Queue
	quiet.Logger = slog.New(slog.DiscardHandler)
	conn, err := queue.Connect(ctx, quiet)
	if err != nil {
		return err
	}
	conn.Close()
	return nil
}
