package executor

import (
	"context"
	"errors"
	"fmt"
)

// Run connects, registers the functions and runs their calls until ctx is
// cancelled, then stops in order, see the package comment. While NATS or every
// dispatcher is away it waits and tries on. It gives nil after an orderly stop.
//
// Its errors are ErrNoFunctions and ErrAlreadyRunning; an error of the queue's
// configuration, which wraps ErrInvalidConfig; a *queue.RegisterError when a
// dispatcher refuses a function, as for one that belongs to another pool; a
// *queue.PermissionError when the NATS server does; and ErrHandlersLeft.
func (ex *Executor) Run(ctx context.Context) error {
	if err := ex.seal(); err != nil {
		return err
	}
	l, err := connect(ctx, ex.cfg)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidConfig, err)
	}
	err = ex.serve(ctx, l)
	return errors.Join(err, l.Close())
}

// Register declares the functions as Run does at its start, and ends. It is for a step
// of a deployment that comes before the first executor: calls of a function that nobody
// has registered are not published, so they would never start one that is scaled from
// zero. It waits while NATS or every dispatcher is away, until ctx ends. Its errors are
// those of Run.
func (ex *Executor) Register(ctx context.Context) error {
	functions := ex.Functions()
	if len(functions) == 0 {
		return ErrNoFunctions
	}
	l, err := connect(ctx, ex.cfg)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidConfig, err)
	}
	_, err = l.Register(ctx, functions)
	return errors.Join(err, l.Close())
}

// Ready says whether the executor is registered and NATS answers. The error names
// what is missing.
func (ex *Executor) Ready(ctx context.Context) error {
	ex.mu.Lock()
	l := ex.link
	ex.mu.Unlock()
	if l == nil {
		return errors.New("the functions are not registered: no dispatcher has answered yet")
	}
	return l.Ready(ctx)
}

// seal closes the set of functions.
func (ex *Executor) seal() error {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	switch {
	case ex.running:
		return ErrAlreadyRunning
	case len(ex.functions) == 0:
		return ErrNoFunctions
	}
	ex.running = true
	return nil
}

// serving publishes the link of a registered executor to Ready; nil takes it back.
func (ex *Executor) serving(l link) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.link = l
}
