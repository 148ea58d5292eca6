package kvstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/callfan/callfan/pkg/results"
)

// ErrContended is returned when a value changed at each of many tries to change
// it. Nothing was written; try again.
var ErrContended = errors.New("too many writers changed the same value")

// ErrClosed is returned by the methods of a closed store.
var ErrClosed = errors.New("the results store is closed")

var errBodyLost = errors.New("a saved result is missing from the bucket")

var errMalformed = errors.New("a value in the bucket is malformed")

// Codes of the server that nats.go has no names for.
const (
	codeStoreFailed      jetstream.ErrorCode = 10077
	codeAccountResources jetstream.ErrorCode = 10002
	codeInsufficient     jetstream.ErrorCode = 10023
	codeMemoryExceeded   jetstream.ErrorCode = 10028
	codeStorageExceeded  jetstream.ErrorCode = 10047
)

// explain gives an error of NATS the name that the contract has for it.
func explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	if errors.Is(err, nats.ErrMaxPayload) {
		return fmt.Errorf("larger than the server's max_payload; raise it or lower the limit of results: %w", err)
	}
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		switch api.ErrorCode {
		case codeAccountResources, codeInsufficient, codeMemoryExceeded, codeStorageExceeded:
			return fmt.Errorf("%w: raise the limits of JetStream or wait for turns to end: %w", results.ErrFull, err)
		case codeStoreFailed:
			if strings.Contains(api.Description, "maximum bytes") {
				return fmt.Errorf("%w: raise the bucket's MaxBytes or wait for turns to end: %w", results.ErrFull, err)
			}
		}
	}
	return fmt.Errorf("jetstream: %w", err)
}

// conflict says that a value was changed since it was read.
func conflict(err error) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok &&
		(api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
			api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}
