package main

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/queue"
)

const (
	partitions = 8
	// turn is how many calls are published at once.
	turn = 32
	// inFlight bounds the calls without an outcome: enough that the queue is never empty.
	inFlight = 512
)

// dispatcher publishes calls and takes their outcomes, as the real one does, without a store and an API.
type dispatcher struct {
	conn     *queue.Conn
	registry *queue.Registry
	nonces   call.Nonces

	mu   sync.Mutex
	load *load // that is under way
}

// load is what is published in one go.
type load struct {
	number   int
	answered chan int // the numbers of its calls
	wrong    error    // the first outcome that is no success
	seen     map[int]bool
}

func newDispatcher(ctx context.Context, url string, log *slog.Logger) (*dispatcher, error) {
	conn, err := queue.Connect(ctx, queue.Config{URL: url, Partitions: partitions, Logger: log})
	if err != nil {
		return nil, err
	}
	if err := conn.Provision(ctx); err != nil {
		return nil, err
	}
	secret, err := conn.Secret(ctx)
	if err != nil {
		return nil, err
	}
	d := &dispatcher{conn: conn, nonces: call.NewNonces(secret)}
	if d.registry, err = conn.ServeRegistry(ctx); err != nil {
		return nil, err
	}
	for partition := range partitions {
		go func() { _ = conn.Consume(ctx, partition, d.take) }()
	}
	return d, nil
}

func (d *dispatcher) take(batch []call.Delivered) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range batch {
		batch[i].Ack()
		if d.load != nil {
			d.load.take(&batch[i])
		}
	}
}

func (l *load) take(d *call.Delivered) {
	of, text, _ := strings.Cut(strings.TrimPrefix(d.Outcome.Key.Call, "call_"), "_")
	n, err := strconv.Atoi(text)
	switch {
	case d.Invalid != nil:
		l.wrong = fmt.Errorf("an outcome is invalid: %w", d.Invalid)
	case err != nil || of != strconv.Itoa(l.number):
		l.wrong = fmt.Errorf("an outcome is of call %q, which nobody waits for", d.Outcome.Key.Call)
	case d.Outcome.Kind != call.Success:
		l.wrong = fmt.Errorf("call %d came to %s: %s", n, d.Outcome.Kind, d.Outcome.Error)
	case l.seen[n]:
		l.wrong = fmt.Errorf("call %d has two outcomes", n)
	}
	l.seen[n] = true
	l.answered <- n
}

// begin is a load without calls; it ends the one before.
func (d *dispatcher) begin() *load {
	d.mu.Lock()
	defer d.mu.Unlock()
	number := 1
	if d.load != nil {
		number = d.load.number + 1
	}
	d.load = &load{number: number, answered: make(chan int, 2*inFlight), seen: map[int]bool{}}
	return d.load
}

// failure is the first outcome that was no success.
func (d *dispatcher) failure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.load.wrong
}

// publish publishes calls of a load, from the first one on.
func (d *dispatcher) publish(ctx context.Context, l *load, function string, first, count int) error {
	dispatches := make([]call.Dispatch, count)
	for i := range dispatches {
		n := first + i
		key := call.Key{Session: fmt.Sprintf("sess_%d_%d", l.number, n/turn), Turn: "turn_1", Call: fmt.Sprintf("call_%d_%d", l.number, n)}
		dispatches[i] = call.Dispatch{
			Call:    call.Call{Key: key, Function: function, Arguments: []byte(`{"text":"nothing to do"}`)},
			Attempt: 1, Handover: 1, Nonce: d.nonces.For(key, call.Token(function), 1),
			Partition: call.Partition(key.Session, partitions), Timeout: 30 * time.Second, Deadline: time.Now().Add(5 * time.Minute),
			OnUncertain: call.UncertainRerun,
		}
	}
	for _, err := range d.conn.Publish(ctx, dispatches) {
		if err != nil {
			return err
		}
	}
	return nil
}

// silence is how long no outcome may come while some are awaited.
const silence = 30 * time.Second

// await takes one outcome.
func (l *load) await(ctx context.Context) error {
	timeout := time.NewTimer(silence)
	defer timeout.Stop()
	select {
	case <-l.answered:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timeout.C:
		return fmt.Errorf("no outcome came for %v", silence)
	}
}

// run publishes calls of a function until there were enough or the time is over, and waits for all outcomes.
func (d *dispatcher) run(ctx context.Context, function string, calls int, within time.Duration) (done int, took time.Duration, err error) {
	l, began := d.begin(), time.Now()
	var publishing sync.WaitGroup
	failed := make(chan error, 1)
	waiting := 0
	for done < calls && time.Since(began) < within {
		for waiting+turn > inFlight {
			if err := l.await(ctx); err != nil {
				return 0, 0, err
			}
			waiting--
		}
		first, count := done, min(turn, calls-done)
		publishing.Go(func() {
			if err := d.publish(ctx, l, function, first, count); err != nil {
				select {
				case failed <- err:
				default:
				}
			}
		})
		done += count
		waiting += count
	}
	publishing.Wait()
	select {
	case err := <-failed:
		return 0, 0, err
	default:
	}
	for ; waiting > 0; waiting-- {
		if err := l.await(ctx); err != nil {
			return 0, 0, err
		}
	}
	return done, time.Since(began), d.failure()
}

// one publishes calls one after the other, and gives how long each took from its publication to its outcome.
func (d *dispatcher) one(ctx context.Context, function string, calls int, within time.Duration) ([]time.Duration, error) {
	l, began := d.begin(), time.Now()
	var took []time.Duration
	for n := 0; n < calls && time.Since(began) < within; n++ {
		at := time.Now()
		if err := d.publish(ctx, l, function, n, 1); err != nil {
			return nil, err
		}
		if err := l.await(ctx); err != nil {
			return nil, err
		}
		took = append(took, time.Since(at))
	}
	return took, d.failure()
}
