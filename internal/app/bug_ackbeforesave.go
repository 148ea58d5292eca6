//go:build chaosbug_ackbeforesave

package app

import (
	"context"

	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/pkg/call"
)

// planted removes outcomes from their stream before their results are saved.
func planted(parts dispatcher.Parts) dispatcher.Parts {
	parts.Queue = hastyQueue{parts.Queue}
	return parts
}

type hastyQueue struct{ dispatcher.Queue }

// Consume acks before the handler.
func (q hastyQueue) Consume(ctx context.Context, partition int, handle func([]call.Delivered)) error {
	return q.Queue.Consume(ctx, partition, func(batch []call.Delivered) {
		for _, d := range batch {
			d.Ack()
		}
		handle(batch)
	})
}
