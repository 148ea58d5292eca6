package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/callfan/callfan/pkg/call"
)

// record is what the bucket keeps about a function.
type record struct {
	Pool     string        `json:"pool"`
	Function call.Function `json:"function"`
	// Bound says that the pool's consumer takes the function's calls. Until then the
	// record only reserves the name.
	Bound    bool      `json:"bound"`
	Language string    `json:"language,omitempty"`
	Version  string    `json:"version,omitempty"`
	At       time.Time `json:"at"`
	// Superseded are definitions that this one took the place of, the latest last.
	Superseded []superseded `json:"superseded,omitempty"`

	fingerprint string // of Function
	revision    uint64
	deleted     bool
}

// same says whether the definitions say the same.
func (r record) same(other record) bool {
	return r.Pool == other.Pool && r.fingerprint == other.fingerprint
}

// encode keeps the bytes of the parameters as they were registered.
func (r record) encode() ([]byte, error) {
	function, err := r.Function.AppendJSON([]byte(`{"function":`))
	if err != nil {
		return nil, err
	}
	type rest record
	body, err := json.Marshal(struct {
		rest
		Function *struct{} `json:"function,omitempty"`
	}{rest: rest(r)})
	if err != nil {
		return nil, err
	}
	return append(append(function, ','), body[1:]...), nil
}

const (
	functionKeys = "function."
	poolKeys     = "pool."
)

// functionKey is the token in the alphabet of KV keys, which has no tilde. No token
// begins with two equals signs otherwise.
func functionKey(token string) string {
	if rest, ok := strings.CutPrefix(token, "~"); ok {
		token = "==" + rest
	}
	return functionKeys + token
}

func tokenOfKey(key string) (string, bool) {
	token, ok := strings.CutPrefix(key, functionKeys)
	if rest, hashed := strings.CutPrefix(token, "=="); hashed {
		token = "~" + rest
	}
	return token, ok
}

// get reads a function's record; revision 0 means that there is none.
func (r *Registry) get(ctx context.Context, token string) (record, error) {
	entry, err := r.kv.Get(ctx, functionKey(token))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return record{}, nil
	}
	if err != nil {
		return record{}, err
	}
	return parseRecord(entry)
}

func parseRecord(entry jetstream.KeyValueEntry) (record, error) {
	rec := record{revision: entry.Revision(), deleted: entry.Operation() != jetstream.KeyValuePut}
	if rec.deleted {
		return rec, nil
	}
	if err := json.Unmarshal(entry.Value(), &rec); err != nil {
		return record{}, fmt.Errorf("key %s is not readable: %w", entry.Key(), err)
	}
	rec.fingerprint = rec.Function.Fingerprint()
	return rec, nil
}

// put stores the record if the stored one still has revision, 0 for none.
func (r *Registry) put(ctx context.Context, token string, rec record, revision uint64) (record, error) {
	rec.At = time.Now().UTC()
	body, err := rec.encode()
	if err != nil {
		return record{}, err
	}
	if rec.revision, err = r.compareAndSet(ctx, functionKey(token), body, revision); err != nil {
		return record{}, err
	}
	r.remember(token, rec)
	return rec, nil
}

// compareAndSet gives errRaced when somebody else was faster.
func (r *Registry) compareAndSet(ctx context.Context, key string, body []byte, revision uint64) (uint64, error) {
	var err error
	if revision == 0 {
		revision, err = r.kv.Create(ctx, key, body)
	} else {
		revision, err = r.kv.Update(ctx, key, body, revision)
	}
	if errors.Is(err, jetstream.ErrKeyExists) || errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return 0, errRaced
	}
	return revision, err
}

// members are the tokens of a pool, as all dispatchers agreed.
type poolRecord struct {
	Tokens []string `json:"tokens"`
}

func (r *Registry) poolTokens(ctx context.Context, pool string) (tokens []string, revision uint64, err error) {
	entry, err := r.kv.Get(ctx, poolKeys+pool)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	var rec poolRecord
	if err := json.Unmarshal(entry.Value(), &rec); err != nil {
		return nil, 0, fmt.Errorf("key %s is not readable: %w", entry.Key(), err)
	}
	return rec.Tokens, entry.Revision(), nil
}

func (r *Registry) setPoolTokens(ctx context.Context, pool string, tokens []string, revision uint64) error {
	slices.Sort(tokens)
	body, err := json.Marshal(poolRecord{Tokens: slices.Compact(tokens)})
	if err != nil {
		return err
	}
	_, err = r.compareAndSet(ctx, poolKeys+pool, body, revision)
	return err
}

// load reads every record and returns when all are known.
func (r *Registry) load(ctx context.Context) error {
	watcher, err := r.kv.Watch(ctx, functionKeys+">")
	if err != nil {
		return err
	}
	defer func() { _ = watcher.Stop() }()
	for {
		select {
		case entry, open := <-watcher.Updates():
			if entry == nil { // all are read, or the watch broke
				if !open {
					return errRaced
				}
				return nil
			}
			r.take(entry)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// watch follows the records until ctx ends or the connection is closed.
func (r *Registry) watch(ctx context.Context) {
	waits := newBackOff(5 * time.Second)
	for ctx.Err() == nil && !r.c.nc.IsClosed() {
		watcher, err := r.kv.Watch(ctx, functionKeys+">")
		if err == nil {
			waits.Reset()
			r.follow(ctx, watcher.Updates())
			_ = watcher.Stop()
		}
		if sleep(ctx, waits.NextBackOff()) != nil {
			return
		}
	}
}

// follow does not rely on the channel being closed: the client forgets that when
// the connection ends while a watch begins.
func (r *Registry) follow(ctx context.Context, updates <-chan jetstream.KeyValueEntry) {
	for {
		select {
		case entry, open := <-updates:
			if !open {
				return
			}
			if entry != nil { // nil marks the end of what was there
				r.take(entry)
			}
		case <-r.c.closed:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (r *Registry) take(entry jetstream.KeyValueEntry) {
	token, ok := tokenOfKey(entry.Key())
	if !ok {
		return
	}
	rec, err := parseRecord(entry)
	if err != nil {
		r.c.log.Error("a registered function is not readable; register it again", "error", err)
		return
	}
	r.remember(token, rec)
}
