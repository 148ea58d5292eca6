//go:build chaosbug_ackbeforesave

package app

import (
	"context"
	"time"

	"github.com/callfan/callfan/internal/dispatcher"
	"github.com/callfan/callfan/pkg/call"
)

// planted removes outcomes from their stream before their results are saved.
func planted(parts dispatcher.Parts) dispatcher.Parts {
	parts.Queue = hastyQueue{parts.Queue}
	return parts
}

type hastyQueue struct{ dispatcher.Queue }

// saveLate is how long an outcome is nowhere but in memory.
const saveLate = 500 * time.Millisecond

// Consume acks before the handler.
func (q hastyQueue) Consume(ctx context.Context, partition int, handle func([]call.Delivered)) error {
	return q.Queue.Consume(ctx, partition, func(batch []call.Delivered) {
		for _, d := range batch {
			d.Ack()
		}
		time.Sleep(saveLate)
		handle(batch)
	})
}
