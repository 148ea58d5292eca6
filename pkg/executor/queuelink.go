package executor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/queue"
)

// rebindDelay is the wait before registering again when the pool's consumer is not
// there yet.
const rebindDelay = 500 * time.Millisecond

// queueLink is the link over NATS.
type queueLink struct {
	conn         *queue.Conn
	registration queue.Registration

	mu      sync.Mutex
	current queue.Binding
	puller  *queue.Puller
}

func connect(ctx context.Context, cfg Config) (*queueLink, error) {
	if cfg.Queue.Logger == nil {
		cfg.Queue.Logger = cfg.Logger
	}
	if cfg.Queue.Name == "" {
		cfg.Queue.Name = "executor " + cfg.Pool + " " + cfg.ID
	}
	conn, err := queue.Connect(ctx, cfg.Queue)
	if err != nil {
		return nil, err
	}
	return &queueLink{
		conn:         conn,
		registration: queue.Registration{Pool: cfg.Pool, ID: cfg.ID, Language: cfg.Language, Version: cfg.Version},
	}, nil
}

func (l *queueLink) Ready(ctx context.Context) error { return l.conn.Ready(ctx) }

func (l *queueLink) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.puller != nil {
		l.puller.Close()
	}
	l.conn.Close()
	return nil
}

func (l *queueLink) Register(ctx context.Context, functions []call.Function) (binding, error) {
	r := l.registration
	r.Functions = functions
	for {
		b, err := l.conn.Register(ctx, r)
		if err != nil {
			return binding{}, err
		}
		p, err := l.bind(ctx, b)
		switch {
		case err == nil:
			return binding{puller: queuePuller{p}, ackWait: b.AckWait, refresh: b.Refresh}, nil
		case !errors.Is(err, queue.ErrUnbound) || !pause(ctx, rebindDelay):
			return binding{}, fmt.Errorf("bind to the consumer %s: %w", b.Consumer, err)
		}
	}
}

// bind keeps the puller while the binding stays the same.
func (l *queueLink) bind(ctx context.Context, b queue.Binding) (*queue.Puller, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.puller != nil && l.current == b {
		return l.puller, nil
	}
	p, err := l.conn.Bind(ctx, b)
	if err != nil {
		return nil, err
	}
	if l.puller != nil {
		l.puller.Close()
	}
	l.current, l.puller = b, p
	return p, nil
}

func (l *queueLink) Report(ctx context.Context, d call.Dispatch, o call.Outcome) error {
	err := l.conn.Report(ctx, d, o)
	var large *queue.TooLargeError
	switch {
	case errors.As(err, &large):
		return &tooLargeError{size: large.Size, limit: large.Limit}
	case errors.Is(err, queue.ErrInvalidOutcome):
		return fmt.Errorf("%w: %w", errInvalidOutcome, err)
	case errors.Is(err, queue.ErrPermission):
		return fmt.Errorf("%w: %w", errDenied, err)
	}
	return err
}

func (l *queueLink) Lookup(ctx context.Context, d call.Dispatch) (call.Standing, error) {
	return l.conn.Lookup(ctx, d)
}

func (l *queueLink) OnCancel(functions []call.Function, f func(call.Key, string)) (func(), error) {
	names := make([]string, len(functions))
	for i, fn := range functions {
		names[i] = fn.Name
	}
	return l.conn.OnCancel(names, f)
}

type queuePuller struct{ *queue.Puller }

func (p queuePuller) Pull(ctx context.Context, n int, each func(taken)) error {
	err := p.Puller.Pull(ctx, n, func(t *queue.Taken) { each(queueTaken{t}) })
	if errors.Is(err, queue.ErrInterrupted) {
		return fmt.Errorf("%w: %w", errPullAgain, err)
	}
	return err
}

type queueTaken struct{ t *queue.Taken }

func (t queueTaken) Dispatch() call.Dispatch  { return t.t.Dispatch }
func (t queueTaken) Deliveries() int          { return t.t.Deliveries }
func (t queueTaken) Transit() time.Duration   { return t.t.Transit }
func (t queueTaken) Invalid() error           { return t.t.Invalid }
func (t queueTaken) InProgress() error        { return t.t.InProgress() }
func (t queueTaken) Ack() error               { return t.t.Ack() }
func (t queueTaken) Term(reason string) error { return t.t.Term(reason) }
