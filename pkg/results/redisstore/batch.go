package redisstore

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// operation is one run of a script. err and reply may be read once its request
// is done.
type operation struct {
	script *script
	keys   []string
	args   []any
	size   int // bytes of the arguments that may be large
	wanted *request
	reply  any
	err    error
}

// request is the operations that one caller waits for.
type request struct {
	ctx  context.Context
	left atomic.Int64
	done chan struct{}
}

func (r *request) finish(n int) {
	if r.left.Add(-int64(n)) == 0 {
		close(r.done)
	}
}

// batcher merges the operations of concurrent callers into pipelines, as a
// database groups commits: while a lane's pipeline is under way, what arrives
// waits and then leaves together. A lone caller waits for nobody.
type batcher struct {
	client  redis.UniversalClient
	lanes   int
	size    int
	timeout time.Duration

	mu      sync.Mutex
	pending []*operation
	running int
	closed  bool
	flushes sync.WaitGroup
}

// maxBatchBytes bounds the results in one pipeline; a single larger one still
// goes, alone.
const maxBatchBytes = 8 << 20

// do runs the operations in shared pipelines and waits for all of them. It
// returns early when ctx ends; what has left by then still runs. The answers of
// the operations are theirs, not part of the error.
func (b *batcher) do(ctx context.Context, operations []*operation) error {
	if err := ctx.Err(); err != nil || len(operations) == 0 {
		return err
	}
	r := &request{ctx: ctx, done: make(chan struct{})}
	r.left.Store(int64(len(operations)))
	for _, op := range operations {
		op.wanted = r
	}
	if err := b.enqueue(operations); err != nil {
		return err
	}
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *batcher) enqueue(operations []*operation) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return redis.ErrClosed
	}
	b.pending = append(b.pending, operations...)
	if b.running < b.lanes {
		b.running++
		b.flushes.Go(b.run)
	}
	return nil
}

// run is one lane: it flushes until nothing is left.
func (b *batcher) run() {
	for {
		batch := b.take()
		if batch == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), b.timeout)
		execute(ctx, b.client, batch)
		cancel()
		for _, op := range batch {
			op.wanted.finish(1)
		}
	}
}

// take removes the next batch from the queue, and ends the lane when there is none.
func (b *batcher) take() []*operation {
	b.mu.Lock()
	defer b.mu.Unlock()
	var batch []*operation
	taken, size := 0, 0
	for _, op := range b.pending {
		if len(batch) == b.size || (len(batch) > 0 && size+op.size > maxBatchBytes) {
			break
		}
		taken++
		if op.err = op.wanted.ctx.Err(); op.err != nil { // its caller has left
			op.wanted.finish(1)
			continue
		}
		batch = append(batch, op)
		size += op.size
	}
	clear(b.pending[:taken])
	b.pending = b.pending[taken:]
	if batch == nil {
		b.pending = nil
		b.running--
	}
	return batch
}

// close refuses further operations and waits for those under way.
func (b *batcher) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.flushes.Wait()
}

// execute runs the operations in one pipeline, and once more, with their source,
// those that Redis had no script for: a server that restarted or took over knows
// none, and go-redis does not fall back inside pipelines.
func execute(ctx context.Context, client redis.UniversalClient, operations []*operation) {
	unknown := pipeline(ctx, client, operations, func(p redis.Pipeliner, op *operation) *redis.Cmd {
		return p.EvalSha(ctx, op.script.hash, op.keys, op.args...)
	})
	if len(unknown) == 0 {
		return
	}
	pipeline(ctx, client, unknown, func(p redis.Pipeliner, op *operation) *redis.Cmd {
		return p.Eval(ctx, op.script.source, op.keys, op.args...)
	})
}

func pipeline(
	ctx context.Context, client redis.UniversalClient, operations []*operation,
	send func(redis.Pipeliner, *operation) *redis.Cmd,
) (unknown []*operation) {
	p := client.Pipeline()
	commands := make([]*redis.Cmd, len(operations))
	for i, op := range operations {
		commands[i] = send(p, op)
	}
	_, _ = p.Exec(ctx) // the error of each command is its own
	for i, op := range operations {
		op.reply, op.err = commands[i].Result()
		if op.err != nil && isNoScript(op.err) {
			unknown = append(unknown, op)
		}
	}
	return unknown
}
