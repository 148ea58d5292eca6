package queue

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

// leastPayload is the max_payload below which ordinary results would not fit.
const leastPayload = 64 << 10

// recommendedPayload fits the largest result that the API takes, 4 MiB, with room.
const recommendedPayload = 5 << 20

// Provision makes or checks the streams, the partitions' consumers and the KV
// bucket of the installation. It changes nothing that is as it should be, and
// several dispatchers may run it at once. While JetStream does not answer it waits,
// until ctx ends. An error that wraps ErrIncompatible names what exists and does
// not fit, and what to do.
func (c *Conn) Provision(ctx context.Context) error {
	if err := c.await(ctx, "provision", c.checkPayload); err != nil {
		return err
	}
	if err := c.await(ctx, "provision bucket "+c.names.bucket(), c.ensureBucket); err != nil {
		return err
	}
	if err := c.await(ctx, "provision layout", c.ensureLayout); err != nil {
		return err
	}
	for _, stream := range c.streams() {
		err := c.await(ctx, "provision stream "+stream.Name, func(ctx context.Context) error { return c.ensureStream(ctx, stream) })
		if err != nil {
			return err
		}
	}
	if err := c.await(ctx, "provision consumers", c.ensureResultDurables); err != nil {
		return err
	}
	c.setProbe(func(ctx context.Context) error {
		_, err := c.js.Stream(ctx, c.names.calls())
		return err
	})
	return nil
}

func (c *Conn) checkPayload(context.Context) error {
	switch limit := c.nc.MaxPayload(); {
	case limit < leastPayload:
		return fmt.Errorf("%w: the server's max_payload is %d bytes; set it to at least %d, better %d", ErrIncompatible, limit, leastPayload, recommendedPayload)
	case limit < recommendedPayload:
		c.log.Warn("the server's max_payload is smaller than the largest result; larger calls and results will be refused",
			"max_payload", limit, "recommended", recommendedPayload)
	}
	return nil
}

func (c *Conn) ensureBucket(ctx context.Context) error {
	_, err := c.js.KeyValue(ctx, c.names.bucket())
	if !errors.Is(err, jetstream.ErrBucketNotFound) {
		return err
	}
	_, err = c.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: c.names.bucket(), Description: "functions, pools and settings of this installation",
		Storage: c.storage(), Replicas: c.cfg.Replicas, MaxBytes: 64 * mib,
	})
	if errors.Is(err, jetstream.ErrBucketExists) {
		return errRaced
	}
	return err
}

// layout is what every dispatcher of an installation must agree on.
type layout struct {
	Protocol   int    `json:"protocol"`
	Prefix     string `json:"prefix"`
	Partitions int    `json:"partitions"`
}

const (
	layoutKey = "layout"
	secretKey = "secret"
)

func (c *Conn) ensureLayout(ctx context.Context) error {
	want := layout{Protocol: 1, Prefix: c.cfg.Prefix, Partitions: c.cfg.Partitions}
	body, err := json.Marshal(want)
	if err != nil {
		return err
	}
	stored, err := c.createOrGet(ctx, layoutKey, body)
	if err != nil {
		return err
	}
	var have layout
	if err := json.Unmarshal(stored, &have); err != nil {
		return fmt.Errorf("%w: key %s of bucket %s is not readable: %w", ErrIncompatible, layoutKey, c.names.bucket(), err)
	}
	switch {
	case have.Partitions != want.Partitions:
		return fmt.Errorf("%w: this installation has %d partitions and the configuration says %d; set partitions to %d, or use another prefix",
			ErrIncompatible, have.Partitions, want.Partitions, have.Partitions)
	case have != want:
		return fmt.Errorf("%w: bucket %s belongs to prefix %q, protocol %d; use another prefix", ErrIncompatible, c.names.bucket(), have.Prefix, have.Protocol)
	}
	return nil
}

// Secret is the installation's secret for call.NewNonces: 32 random bytes, made by
// the first dispatcher that asks, the same for all. It waits for JetStream until
// ctx ends. Provision must have run.
func (c *Conn) Secret(ctx context.Context) ([]byte, error) {
	fresh := make([]byte, 32)
	_, _ = rand.Read(fresh) // never fails
	var secret []byte
	err := c.await(ctx, "read the installation's secret", func(ctx context.Context) (err error) {
		secret, err = c.createOrGet(ctx, secretKey, fresh)
		return err
	})
	return secret, err
}

// createOrGet stores value under key unless there is one, and gives what is stored.
func (c *Conn) createOrGet(ctx context.Context, key string, value []byte) ([]byte, error) {
	kv, err := c.js.KeyValue(ctx, c.names.bucket())
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil, errRaced // another replica has just made it, and the server that was asked does not know yet
	}
	if err != nil {
		return nil, err
	}
	_, err = kv.Create(ctx, key, value)
	if err == nil {
		return value, nil
	}
	if !errors.Is(err, jetstream.ErrKeyExists) {
		return nil, err
	}
	entry, err := kv.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, errRaced
	}
	if err != nil {
		return nil, err
	}
	return entry.Value(), nil
}

// resultsAckWait is how long an outcome that a dispatcher took and did not ack waits
// for the next one: as long as the lease of the partition, so that a killed
// dispatcher delays nothing for longer. An outcome that waits for the API is handed
// out again as often, which the store recognises.
const resultsAckWait = 10 * time.Second

// OutcomeLease is how long an outcome stays with a dispatcher that took it and did
// not ack it. Ask it of a configuration with its defaults.
func (c Config) OutcomeLease() time.Duration { return min(c.AckWait, resultsAckWait) }

func (c *Conn) resultDurableConfig(partition int) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable: resultDurable(partition), FilterSubject: c.names.prefix + ".result.*." + partitionToken(partition),
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: c.cfg.OutcomeLease(), MaxDeliver: -1,
		MaxAckPending: c.cfg.MaxAckPending, MaxRequestBatch: maxPull, MaxRequestExpires: maxExpires,
		MemoryStorage: !c.cfg.ResultConsumersOnFile,
	}
}

func (c *Conn) makeResultDurable(ctx context.Context, partition int) error {
	_, err := c.js.CreateOrUpdateConsumer(ctx, c.names.results(), c.resultDurableConfig(partition))
	return err
}

// ensureResultDurables makes the partitions' consumers that do not exist.
func (c *Conn) ensureResultDurables(ctx context.Context) error {
	stream, err := c.js.Stream(ctx, c.names.results())
	if err != nil {
		return err
	}
	missing := make(map[string]int, c.cfg.Partitions)
	for partition := range c.cfg.Partitions {
		missing[resultDurable(partition)] = partition
	}
	lister := stream.ConsumerNames(ctx)
	for name := range lister.Name() {
		delete(missing, name)
	}
	if err := lister.Err(); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for _, partition := range slices.Sorted(maps.Values(missing)) {
		group.Go(func() error { return c.makeResultDurable(ctx, partition) })
	}
	return group.Wait()
}
