package conformance

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/callfan/callfan/pkg/call"
)

// backlogScene has a stream of results that takes nothing for a while.
func backlogScene() scene {
	return scene{
		name:   "backlog",
		config: rigConfig{ackWait: shortLease, concurrency: 4},
		checks: []check{core("outcomes/ack-after-stored", ackAfterStored)},
	}
}

func ackAfterStored(t *trial) {
	limit := t.resultsLimit(1)
	p := t.call("sleep", `{"ms":10}`)
	q := t.call("fail", `{"text":"no"}`)
	t.started(p)
	for _, one := range []*placed{p, q} {
		t.never(shortLease*3/2, func() bool { return len(t.sent(one, "+ACK")) > 0 || !t.queued(one) },
			"%s was acknowledged before its outcome was stored", one.Function)
	}
	t.runs(p, 1)
	if len(t.sent(p, "+WPI")) < 3 {
		t.failf("the lease was extended %d times while the outcome could not be stored", len(t.sent(p, "+WPI")))
	}
	t.resultsLimit(limit)
	t.succeeds(p, "slept")
	t.runs(p, 1)
	if o := t.only(q); o.Kind != call.Failure {
		t.failf("the outcome is %s; want the failure", describe(o))
	}
}

// resultsLimit bounds the stream of results, and gives the limit that it had.
func (t *trial) resultsLimit(bytes int64) int64 {
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	js := t.conn.JetStream()
	stream, err := js.Stream(ctx, "FN_RESULTS")
	t.must(err, "look at the stream of results")
	cfg := stream.CachedInfo().Config
	before := cfg.MaxBytes
	cfg.MaxBytes, cfg.Discard = bytes, jetstream.DiscardNew
	_, err = js.UpdateStream(ctx, cfg)
	t.must(err, "bound the stream of results")
	return before
}

// settleTime is how long to look for what should not happen.
const settleTime = 500 * time.Millisecond
