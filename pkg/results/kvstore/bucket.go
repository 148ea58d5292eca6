package kvstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrBucketUnfit is wrapped by the error of New for a bucket that exists and
// cannot be used.
var ErrBucketUnfit = errors.New("the bucket cannot hold results")

// bucket is the key-value bucket as compare-and-set needs it: reads tell the
// revision also where nothing is, and writes have a time to live.
type bucket struct {
	js     jetstream.JetStream
	stream jetstream.Stream
	kv     jetstream.KeyValue
	prefix string
}

// entry is a value with its revision; revision 0 is the absence of a value.
type entry struct {
	value    []byte
	revision uint64
	created  time.Time
}

// openBucket finds the bucket or makes it. Several replicas may do so at once.
func openBucket(ctx context.Context, js jetstream.JetStream, c Config) (*bucket, error) {
	name := "KV_" + c.Bucket
	stream, err := js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		stream, err = js.CreateStream(ctx, streamConfig(name, c))
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another replica was faster, with other settings
			stream, err = js.Stream(ctx, name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", c.Bucket, err)
	}
	got := stream.CachedInfo().Config
	switch {
	case !got.AllowMsgTTL:
		return nil, fmt.Errorf("%w: %s does not allow a time to live per key; delete it or name another one", ErrBucketUnfit, c.Bucket)
	case got.MaxMsgsPerSubject != 1 || !got.AllowRollup:
		return nil, fmt.Errorf("%w: %s is not a bucket with a history of 1; delete it or name another one", ErrBucketUnfit, c.Bucket)
	}
	kv, err := js.KeyValue(ctx, c.Bucket)
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", c.Bucket, err)
	}
	prefix := "$KV." + c.Bucket + "."
	// The prefix is as the caller wrote it, with or without the last dot.
	if api := strings.TrimSuffix(js.Options().APIPrefix, ".") + "."; api != "." && api != jetstream.DefaultAPIPrefix {
		prefix = api + prefix
	}
	return &bucket{js: js, stream: stream, kv: kv, prefix: prefix}, nil
}

// streamConfig is a key-value bucket in all but two things: it leaves no marker
// where a value expired, and with replicas it is read from its leader only, as
// the others may answer with what was before the last write.
func streamConfig(name string, c Config) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              name,
		Description:       "callfan: results of function calls",
		Subjects:          []string{"$KV." + c.Bucket + ".>"},
		MaxMsgsPerSubject: 1,
		MaxBytes:          c.MaxBytes,
		MaxMsgs:           -1,
		MaxMsgSize:        -1,
		MaxConsumers:      -1,
		Discard:           jetstream.DiscardNew,
		Storage:           c.Storage,
		Replicas:          c.Replicas,
		AllowRollup:       true,
		DenyDelete:        true,
		AllowDirect:       c.Replicas == 1,
		AllowMsgTTL:       true,
		// Retried writes are told apart by revision, not by message id.
		Duplicates: time.Minute,
	}
}

func (b *bucket) get(ctx context.Context, key string) (entry, error) {
	m, err := b.stream.GetLastMsgForSubject(ctx, "$KV."+b.kv.Bucket()+"."+key)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return entry{}, nil
	}
	if err != nil {
		return entry{}, explain(ctx, err)
	}
	if m.Header.Get("KV-Operation") != "" || m.Header.Get(jetstream.MarkerReasonHeader) != "" { // deleted
		return entry{revision: m.Sequence}, nil
	}
	return entry{value: m.Data, revision: m.Sequence, created: m.Time}, nil
}

// put writes a value, for ttl if that is not 0, and only over the revision.
func (b *bucket) put(ctx context.Context, key string, value []byte, revision uint64, ttl time.Duration) error {
	return b.publish(ctx, key, value, ttl, jetstream.WithExpectLastSequencePerSubject(revision))
}

// publish writes a value whatever there was.
func (b *bucket) publish(ctx context.Context, key string, value []byte, ttl time.Duration, opts ...jetstream.PublishOpt) error {
	if ttl > 0 {
		opts = append(opts, jetstream.WithMsgTTL(wholeSeconds(ttl)))
	}
	m := &nats.Msg{Subject: b.prefix + key, Data: value}
	if _, err := b.js.PublishMsg(ctx, m, opts...); err != nil {
		return explain(ctx, err)
	}
	return nil
}

// remove deletes a value; the marker that says so goes after a second.
func (b *bucket) remove(ctx context.Context, key string) error {
	if err := b.kv.Purge(ctx, key, jetstream.PurgeTTL(time.Second)); err != nil {
		return explain(ctx, err)
	}
	return nil
}

// list reads the values of all keys that match the filter.
func (b *bucket) list(ctx context.Context, filter string) ([][]byte, error) {
	var values [][]byte
	err := b.walk(ctx, filter, func(value []byte) error {
		values = append(values, value)
		return nil
	})
	return values, err
}

// walk reads the values of all keys that match the filter, one at a time. visit
// must not wait for anything: the values come without being asked for. Its error
// ends the walk and is returned.
func (b *bucket) walk(ctx context.Context, filter string, visit func(value []byte) error) error {
	watcher, err := b.kv.Watch(ctx, filter, jetstream.IgnoreDeletes())
	if err != nil {
		return explain(ctx, err)
	}
	defer func() { _ = watcher.Stop() }()
	for {
		select {
		case update, ok := <-watcher.Updates():
			switch {
			case !ok:
				return explain(ctx, errors.New("the watch ended early"))
			case update == nil: // everything that was there has come
				return nil
			}
			if err := visit(update.Value()); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// wholeSeconds rounds up to what the server can count.
func wholeSeconds(d time.Duration) time.Duration {
	return max(time.Second, (d + time.Second - 1).Truncate(time.Second))
}
