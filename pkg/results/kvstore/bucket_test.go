package kvstore_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/internal/testservers"
	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/results"
	"github.com/callfan/callfan/pkg/results/kvstore"
)

func key(id string) call.Key { return call.Key{Session: "sess_1", Turn: "turn_1", Call: id} }

func claims(ids ...string) []results.Claim {
	out := make([]results.Claim, len(ids))
	for i, id := range ids {
		out[i] = results.Claim{Key: key(id), Function: "get_weather", State: call.Seen}
	}
	return out
}

func saving(id, outcome string, output []byte) []results.Completion {
	return []results.Completion{{
		Key: key(id), Function: "get_weather", OutcomeID: outcome, Adopt: true,
		Result: call.Result{Success: true, Output: output, Reason: call.ReasonHandler},
	}}
}

// keys lists the subjects of the bucket that hold something.
func keys(t *testing.T, js jetstream.JetStream, filter string) []string {
	t.Helper()
	ctx := context.Background()
	stream, err := js.Stream(ctx, "KV_"+kvstore.DefaultBucket)
	require.NoError(t, err)
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter("$KV."+kvstore.DefaultBucket+"."+filter))
	require.NoError(t, err)
	var found []string
	for subject := range info.State.Subjects {
		found = append(found, subject)
	}
	return found
}

func TestReplicasStartTogether(t *testing.T) {
	t.Parallel()
	js := connect(t, testservers.NATS(t).URL())
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			config := kvstore.Config{}
			if i%2 == 1 {
				config.MaxBytes = 1 << 30 // a replica whose configuration is newer
			}
			var s *kvstore.Store
			if s, errs[i] = kvstore.New(context.Background(), js, config); errs[i] == nil {
				errs[i] = s.Close()
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
}

func TestAnUnfitBucketIsRefused(t *testing.T) {
	t.Parallel()
	js := connect(t, testservers.NATS(t).URL())
	_, err := js.CreateKeyValue(context.Background(), jetstream.KeyValueConfig{Bucket: "mortal"})
	require.NoError(t, err)
	_, err = kvstore.New(context.Background(), js, kvstore.Config{Bucket: "mortal"})
	require.ErrorIs(t, err, kvstore.ErrBucketUnfit)
	_, err = js.CreateKeyValue(context.Background(), jetstream.KeyValueConfig{Bucket: "long", History: 5, LimitMarkerTTL: time.Hour})
	require.NoError(t, err)
	_, err = kvstore.New(context.Background(), js, kvstore.Config{Bucket: "long"})
	require.ErrorIs(t, err, kvstore.ErrBucketUnfit)
}

func TestAFullBucketRefuses(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	js := connect(t, testservers.NATS(t).URL())
	s := open(t, js, kvstore.Config{MaxBytes: 1 << 20})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	var err error
	for n := 0; err == nil; n++ {
		require.Less(t, n, 100, "the bucket never fills up")
		_, err = s.Complete(ctx, []uint64{1}, saving(fmt.Sprintf("call_%d", n), "o", make([]byte, 64<<10)))
	}
	require.ErrorIs(t, err, results.ErrFull)
	require.NoError(t, s.Ping(ctx))
	records, err := s.Get(ctx, []call.Key{key("call_0")})
	require.NoError(t, err)
	require.Len(t, records[0].Result.Output, 64<<10)
	moved, err := s.Move(ctx, 1, []results.Move{{Key: key("call_0"), To: call.Settled}})
	require.NoError(t, err)
	require.True(t, moved[0].Done)
}

func TestAResultOverTheServersLimitSaysSo(t *testing.T) {
	t.Parallel()
	js := connect(t, testservers.NATS(t, testservers.NATSMaxPayload(1<<20)).URL())
	s := open(t, js, kvstore.Config{})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	_, err := s.Complete(context.Background(), []uint64{1}, saving("call_1", "o", make([]byte, 2<<20)))
	require.ErrorContains(t, err, "max_payload")
}

// TestNothingIsLeftBehind lets many writers lose and calls end, and expects only
// what the turn points to in the bucket.
func TestNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	url := testservers.NATS(t).URL()
	js := connect(t, url)
	stores := make([]*kvstore.Store, 4)
	for i := range stores {
		stores[i] = open(t, connect(t, url), kvstore.Config{})
		t.Cleanup(func() { require.NoError(t, stores[i].Close()) })
	}
	_, err := stores[0].Claim(ctx, 1, claims("call_1"))
	require.NoError(t, err)
	errs := make([]error, 16)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			// Some are the same outcome from different processes, and one is fenced.
			outcome := fmt.Sprintf("o%d", i/4)
			_, errs[i] = stores[i%4].Complete(ctx, []uint64{uint64(i % 2)}, saving("call_1", outcome, []byte(outcome)))
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	records, err := stores[0].Get(ctx, []call.Key{key("call_1")})
	require.NoError(t, err)
	require.Equal(t, records[0].OutcomeID, string(records[0].Result.Output))
	require.Eventually(t, func() bool { return len(keys(t, js, "b.>")) == 1 }, 20*time.Second, 50*time.Millisecond)

	_, err = stores[0].Move(ctx, 1, []results.Move{{Key: key("call_1"), To: call.Settled}})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(keys(t, js, "b.>")) == 0 }, 20*time.Second, 50*time.Millisecond)
	require.Len(t, keys(t, js, "t.>"), 1)
}

func TestNATSRestarts(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testservers.NATS(t)
	s := open(t, connect(t, server.URL()), kvstore.Config{})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	before, err := s.Claim(ctx, 1, claims("call_1"))
	require.NoError(t, err)

	server.Stop()
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	_, err = s.Claim(short, 1, claims("call_1"))
	require.Error(t, err)

	server.Start()
	var after []results.Record
	require.Eventually(t, func() bool {
		after, err = s.Claim(ctx, 1, claims("call_1"))
		return err == nil
	}, 30*time.Second, 50*time.Millisecond)
	require.Equal(t, before[0].ClaimedAt, after[0].ClaimedAt)
}

// TestAnUnansweredWriteIsRepeated freezes the server under requests, so that
// nobody knows whether they happened, and makes them again.
func TestAnUnansweredWriteIsRepeated(t *testing.T) {
	t.Parallel()
	server := testservers.NATS(t)
	s := open(t, connect(t, server.URL()), kvstore.Config{})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	hang := func(request func(context.Context) error) {
		t.Helper()
		server.Pause()
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, request(ctx), context.DeadlineExceeded)
		server.Resume()
		require.Eventually(t, func() bool { return request(context.Background()) == nil }, 30*time.Second, 50*time.Millisecond)
	}
	hang(func(ctx context.Context) error {
		records, err := s.Claim(ctx, 1, claims("call_1"))
		if err == nil {
			require.Equal(t, call.Seen, records[0].State)
		}
		return err
	})
	hang(func(ctx context.Context) error {
		answers, err := s.Complete(ctx, []uint64{1}, saving("call_1", "o1", []byte("1")))
		if err == nil {
			require.Equal(t, results.Saved, answers[0].Verdict)
		}
		return err
	})
	hang(func(ctx context.Context) error {
		moved, err := s.Move(ctx, 1, []results.Move{{Key: key("call_1"), To: call.Submitted}})
		if err == nil {
			require.Equal(t, results.Moved{Done: true, State: call.Submitted}, moved[0])
		}
		return err
	})
	hang(func(ctx context.Context) error {
		leases, err := s.Acquire(ctx, "a", []int{1}, time.Minute)
		if err == nil {
			require.Len(t, leases, 1)
		}
		return err
	})
}

func TestKeysSuitTheBucket(t *testing.T) {
	t.Parallel()
	js := connect(t, testservers.NATS(t).URL())
	s := open(t, js, kvstore.Config{})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	long := call.Key{Session: strings.Repeat("s", 4096), Turn: "*.>", Call: "\x00"}
	_, err := s.Claim(context.Background(), 1, []results.Claim{{Key: long, Function: "f", State: call.Seen}})
	require.NoError(t, err)
	kv, err := js.KeyValue(context.Background(), kvstore.DefaultBucket)
	require.NoError(t, err)
	names, err := kv.Keys(context.Background())
	require.NoError(t, err)
	require.Len(t, names, 1)
	require.Less(t, len(names[0]), 64)
}

func TestAPIPrefixIsTakenWithAndWithoutItsDot(t *testing.T) {
	t.Parallel()
	server := testservers.NATS(t)
	for i, prefix := range []string{"$JS.API", "$JS.API."} {
		js, err := jetstream.NewWithAPIPrefix(connect(t, server.URL()).Conn(), prefix)
		require.NoError(t, err)
		s := open(t, js, kvstore.Config{Bucket: fmt.Sprint("prefixed-", i)})
		_, err = s.Claim(context.Background(), 1, claims("call_1"))
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
}
