package sources

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// newBackoff gives waits that double from first to most, each spread by half of itself.
func newBackoff(first, most time.Duration) *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(first),
		backoff.WithMaxInterval(most),
		backoff.WithMultiplier(2),
		backoff.WithRandomizationFactor(0.5),
		backoff.WithMaxElapsedTime(0),
	)
}

// spread is d and up to a quarter more, so that what began together does not
// stay together.
func spread(d time.Duration) time.Duration {
	return d + rand.N(d/4+1) //nolint:gosec // jitter
}

// sleep waits for d and reports true, or false as soon as ctx ends.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 || ctx.Err() != nil {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
