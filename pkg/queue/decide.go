package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/callfan/callfan/pkg/call"
)

// staleReservation is how long a name stays reserved by a registration that did
// not finish.
const staleReservation = 30 * time.Second

// recentCheck is how long a look at a pool's consumer stays good enough.
const recentCheck = time.Second

// maxRaces bounds how often a decision starts again because another dispatcher
// changed something; after that the executor asks again.
const maxRaces = 20

// decide accepts or refuses a claim to a function and leaves the pool's consumer
// taking its calls.
func (r *Registry) decide(ctx context.Context, token string, claim record, who executorInfo, functions []string) error {
	r.deciding.Lock()
	defer r.deciding.Unlock()
	if have, ok := r.known(token); ok && have.Bound && have.same(claim) && time.Since(r.checked[claim.Pool]) < recentCheck {
		return nil
	}
	for range maxRaces {
		err := r.tryDecide(ctx, token, claim, who, functions)
		if !errors.Is(err, errRaced) {
			return err
		}
		if err := sleep(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	return errRaced
}

func (r *Registry) tryDecide(ctx context.Context, token string, claim record, who executorInfo, functions []string) error {
	have, err := r.get(ctx, token)
	if err != nil {
		return err
	}
	if have.revision != 0 && have.Pool != claim.Pool {
		if have.Bound || time.Since(have.At) < staleReservation {
			return &RegisterError{Function: claim.Function.Name, Code: CodeFunctionTaken, Message: fmt.Sprintf(
				"function %q belongs to pool %q; stop registering it there and have an operator forget it, or give this one another name",
				claim.Function.Name, have.Pool)}
		}
		if err := r.leavePool(ctx, have.Pool, token); err != nil {
			return err
		}
	}
	changes := have.revision == 0 || have.Pool != claim.Pool
	if !changes && !have.same(claim) {
		if changes, err = r.replaces(ctx, token, have, claim, who); err != nil {
			return err
		}
		if changes {
			claim = r.replacing(token, have, claim)
		}
	}
	if changes {
		// A function that is bound stays so: its calls flow while its definition changes.
		claim.Bound = have.Bound && have.Pool == claim.Pool
		if have, err = r.put(ctx, token, claim, have.revision); err != nil {
			return err
		}
	}
	if err := r.joinPool(ctx, claim, token, functions); err != nil {
		var refused *RegisterError
		if errors.As(err, &refused) && !have.Bound {
			_ = r.kv.Delete(ctx, functionKey(token), jetstream.LastRevision(have.revision)) // or it goes stale
		}
		return err
	}
	if err := r.applyPool(ctx, claim.Pool); err != nil {
		return err
	}
	if !have.Bound {
		have.Bound = true
		if _, err := r.put(ctx, token, have, have.revision); err != nil {
			return err
		}
	}
	return nil
}

// joinPool adds the function to the pool's agreed set. An executor that serves none
// of the functions that the pool already has belongs to somebody else.
func (r *Registry) joinPool(ctx context.Context, claim record, token string, functions []string) error {
	tokens, revision, err := r.poolTokens(ctx, claim.Pool)
	if err != nil || slices.Contains(tokens, token) {
		return err
	}
	if len(tokens) > 0 && !slices.ContainsFunc(functions, func(f string) bool { return slices.Contains(tokens, call.Token(f)) }) {
		return &RegisterError{Function: claim.Function.Name, Code: CodePoolTaken, Message: fmt.Sprintf(
			"pool %q serves other functions and this executor none of them; two teams must not share a pool, choose another name for this one",
			claim.Pool)}
	}
	return r.setPoolTokens(ctx, claim.Pool, append(tokens, token), revision)
}

// leavePool takes the function out of a pool and of the pool's consumer.
func (r *Registry) leavePool(ctx context.Context, pool, token string) error {
	tokens, revision, err := r.poolTokens(ctx, pool)
	if err != nil {
		return err
	}
	if at := slices.Index(tokens, token); at >= 0 {
		if err := r.setPoolTokens(ctx, pool, slices.Delete(tokens, at, at+1), revision); err != nil {
			return err
		}
	}
	return r.applyPool(ctx, pool)
}

// Forget removes a function, so that another pool may register it. Its waiting
// calls stay in the stream and go to the next pool that registers it. Executors
// that still serve it will register it again: stop them first.
func (r *Registry) Forget(ctx context.Context, function string) error {
	token, err := functionToken(function)
	if err != nil {
		return err
	}
	r.deciding.Lock()
	defer r.deciding.Unlock()
	for range maxRaces {
		if err = r.forget(ctx, token); !errors.Is(err, errRaced) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("forget %q: %w", function, err)
	}
	return nil
}

func (r *Registry) forget(ctx context.Context, token string) error {
	have, err := r.get(ctx, token)
	if err != nil || have.revision == 0 {
		return err
	}
	err = r.kv.Delete(ctx, functionKey(token), jetstream.LastRevision(have.revision))
	if errors.Is(err, jetstream.ErrKeyRevisionMismatch) || errors.Is(err, jetstream.ErrKeyExists) {
		return errRaced
	}
	if err != nil {
		return err
	}
	r.remember(token, record{revision: have.revision + 1, deleted: true})
	return r.leavePool(ctx, have.Pool, token)
}
