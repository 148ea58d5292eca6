//go:build unix

package chaos

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// reasonHeader is where a dead letter says why it is one.
const reasonHeader = "Fn-Reason"

// lateResult is the reason of letters with results that came after the call had one. They are evidence, not losses.
const lateResult = "late_result"

// letters counts the dead letters by reason.
func (i *installation) letters(ctx context.Context) (map[string]int, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	stream, err := i.js.Stream(ctx, "FN_DEAD")
	if err != nil {
		return nil, err
	}
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{HeadersOnly: true})
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for {
		m, err := consumer.Next(jetstream.FetchMaxWait(2 * time.Second))
		if errors.Is(err, nats.ErrTimeout) {
			return counts, nil
		}
		if err != nil {
			return counts, err
		}
		counts[m.Headers().Get(reasonHeader)]++
		if meta, err := m.Metadata(); err == nil && meta.NumPending == 0 {
			return counts, nil
		}
	}
}
