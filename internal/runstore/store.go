package runstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/callfan/callfan/internal/runs"
)

var validID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func key(kind, id string) (string, error) {
	if !validID.MatchString(id) {
		return "", fmt.Errorf("%w: a run's id is 1 to 64 letters, digits, underscores and dashes", runs.ErrNotFound)
	}
	return kind + "." + id, nil
}

func refKey(kind, id string, ref runs.Ref) (string, error) {
	k, err := key(kind, id)
	return fmt.Sprintf("%s.%d.%d.%d", k, ref.Round, ref.Attempt, ref.Index), err
}

// Create records a run and its request, and makes it active.
func (s *Store) Create(ctx context.Context, run runs.Run, request json.RawMessage) error {
	head, err := json.Marshal(run)
	if err != nil {
		return err
	}
	k, err := key("run", run.ID)
	if err != nil {
		return err
	}
	if stored, err := s.create(ctx, "request."+run.ID, request); err != nil {
		return err
	} else if !bytes.Equal(stored, request) {
		return runs.ErrExists
	}
	stored, err := s.create(ctx, k, head)
	if err != nil {
		return err
	}
	if !bytes.Equal(stored, head) {
		return runs.ErrExists
	}
	return s.Nudge(ctx, run.ID)
}

// Load gives a run and its revision.
func (s *Store) Load(ctx context.Context, id string) (runs.Run, uint64, error) {
	k, err := key("run", id)
	if err != nil {
		return runs.Run{}, 0, err
	}
	entry, err := s.kv.Get(ctx, k)
	if err != nil {
		return runs.Run{}, 0, explain(err)
	}
	var run runs.Run
	if err := json.Unmarshal(entry.Value(), &run); err != nil {
		return runs.Run{}, 0, fmt.Errorf("the run %s in the store cannot be read: %w", id, err)
	}
	return run, entry.Revision(), nil
}

// Save writes a run over the revision.
func (s *Store) Save(ctx context.Context, run runs.Run, revision uint64) (uint64, error) {
	head, err := json.Marshal(run)
	if err != nil {
		return 0, err
	}
	k, err := key("run", run.ID)
	if err != nil {
		return 0, err
	}
	next, err := s.kv.Update(ctx, k, head, revision)
	if !conflict(err) {
		return next, explain(err)
	}
	entry, err := s.kv.Get(ctx, k)
	switch {
	case err != nil:
		return 0, explain(err)
	case bytes.Equal(entry.Value(), head): // an earlier try, whose answer was lost
		return entry.Revision(), nil
	}
	return 0, runs.ErrStale
}

// Request gives the request of a run.
func (s *Store) Request(ctx context.Context, id string) (json.RawMessage, error) {
	k, err := key("request", id)
	return s.get(ctx, k, err)
}

// PutTools stores the run's resolved list of tools unless there is one.
func (s *Store) PutTools(ctx context.Context, id string, tools json.RawMessage) (json.RawMessage, error) {
	k, err := key("tools", id)
	if err != nil {
		return nil, err
	}
	return s.create(ctx, k, tools)
}

// PutItem stores an item of a response.
func (s *Store) PutItem(ctx context.Context, id string, ref runs.Ref, item json.RawMessage) error {
	k, err := refKey("item", id, ref)
	if err != nil {
		return err
	}
	_, err = s.kv.Put(ctx, k, item)
	return explain(err)
}

// Item gives it.
func (s *Store) Item(ctx context.Context, id string, ref runs.Ref) (json.RawMessage, error) {
	k, err := refKey("item", id, ref)
	return s.get(ctx, k, err)
}

// PutOutput stores the output of a call unless there is one.
func (s *Store) PutOutput(ctx context.Context, id string, out runs.Output) (json.RawMessage, error) {
	k, err := refKey("output", id, out.Ref)
	if err != nil {
		return nil, err
	}
	return s.create(ctx, k, out.Item)
}

// Output gives it.
func (s *Store) Output(ctx context.Context, id string, ref runs.Ref) (json.RawMessage, error) {
	k, err := refKey("output", id, ref)
	return s.get(ctx, k, err)
}

// Cancel notes that the run shall end, and tells its owner.
func (s *Store) Cancel(ctx context.Context, id string) error {
	k, err := key("cancel", id)
	if err != nil {
		return err
	}
	if _, err := s.create(ctx, k, []byte("cancel")); err != nil {
		return err
	}
	return s.Nudge(ctx, id)
}

// Cancelled says whether Cancel was called.
func (s *Store) Cancelled(ctx context.Context, id string) (bool, error) {
	k, err := key("cancel", id)
	if _, err = s.get(ctx, k, err); errors.Is(err, runs.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Nudge has the run's owner look at it, and makes it active.
func (s *Store) Nudge(ctx context.Context, id string) error {
	k, err := key("active", id)
	if err != nil {
		return err
	}
	_, err = s.kv.Put(ctx, k, strconv.AppendInt(nil, time.Now().UnixMilli(), 10))
	return explain(err)
}

// Retire ends the activity of a run.
func (s *Store) Retire(ctx context.Context, id string) error {
	k, err := key("active", id)
	if err != nil {
		return err
	}
	return explain(s.kv.Purge(ctx, k))
}

// Remember notes to which run a response belongs.
func (s *Store) Remember(ctx context.Context, response, id string) error {
	_, err := s.kv.Put(ctx, responseKey(response), []byte(id))
	return explain(err)
}

// RunOf finds the run of a response.
func (s *Store) RunOf(ctx context.Context, response string) (string, error) {
	id, err := s.get(ctx, responseKey(response), nil)
	return string(id), err
}

// responseKey hides what an id may contain.
func responseKey(response string) string {
	sum := sha256.Sum256([]byte(response))
	return "response." + base64.RawURLEncoding.EncodeToString(sum[:])
}

func (s *Store) get(ctx context.Context, k string, err error) (json.RawMessage, error) {
	if err != nil {
		return nil, err
	}
	entry, err := s.kv.Get(ctx, k)
	if err != nil {
		return nil, explain(err)
	}
	return entry.Value(), nil
}

// create stores a value unless there is one, and gives what is stored.
func (s *Store) create(ctx context.Context, k string, value []byte) (json.RawMessage, error) {
	_, err := s.kv.Create(ctx, k, value)
	if err == nil {
		return value, nil
	}
	if !errors.Is(err, jetstream.ErrKeyExists) {
		return nil, explain(err)
	}
	return s.get(ctx, k, nil)
}

// conflict says that a value was changed since it was read.
func conflict(err error) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return errors.Is(err, jetstream.ErrKeyExists) || ok &&
		(api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
			api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// explain gives an error of NATS the name that the contract has for it.
func explain(err error) error {
	api, ok := errors.AsType[*jetstream.APIError](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrKeyNotFound), errors.Is(err, jetstream.ErrKeyDeleted):
		return runs.ErrNotFound
	case errors.Is(err, nats.ErrMaxPayload), ok && api.ErrorCode == jetstream.JSErrCodeStreamMessageExceedsMaximum:
		return fmt.Errorf("%w: more than the server's max_payload: %w", runs.ErrTooLarge, err)
	}
	return fmt.Errorf("jetstream: %w", err)
}
