package redisstore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/callfan/callfan/pkg/results"
)

// isServerError says that Redis answered, with an error.
func isServerError(err error) bool {
	_, ok := errors.AsType[redis.Error](err)
	return ok && !errors.Is(err, redis.Nil)
}

func isNoScript(err error) bool { return redis.HasErrorPrefix(err, "NOSCRIPT") }

// explain gives an error of Redis the name that the contract has for it.
func explain(err error) error {
	// Servers before 7 put the error of a script's command inside a text of
	// their own.
	if redis.IsOOMError(err) || (isServerError(err) && strings.Contains(err.Error(), "OOM command not allowed")) {
		return fmt.Errorf("%w: raise maxmemory or wait for turns to end: %w", results.ErrFull, err)
	}
	return fmt.Errorf("redis: %w", err)
}
