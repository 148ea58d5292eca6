package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/callfan/callfan/pkg/call"
)

var benchArguments = `{"customer_id":"123","note":"` + strings.Repeat("x", 260) + `"}`

func BenchmarkEncodeCall(b *testing.B) {
	b.ReportAllocs()
	n, d := names{"fn"}, dispatchOf("get_customer", benchArguments)
	for b.Loop() {
		if _, err := n.encodeCall(&d); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeCall(b *testing.B) {
	b.ReportAllocs()
	n, d := names{"fn"}, dispatchOf("get_customer", benchArguments)
	m, err := n.encodeCall(&d)
	require.NoError(b, err)
	for b.Loop() {
		if _, err := n.decodeCall(m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeOutcome(b *testing.B) {
	b.ReportAllocs()
	n, d := names{"fn"}, dispatchOf("get_customer", `{}`)
	o := call.Outcome{Kind: call.Success, Output: json.RawMessage(`"` + strings.Repeat("y", 300) + `"`)}
	for b.Loop() {
		if _, err := n.encodeOutcome(&d, &o); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeOutcome(b *testing.B) {
	b.ReportAllocs()
	n, d := names{"fn"}, dispatchOf("get_customer", `{}`)
	m, err := n.encodeOutcome(&d, &call.Outcome{Kind: call.Success, Output: json.RawMessage(`"` + strings.Repeat("y", 300) + `"`)})
	require.NoError(b, err)
	for b.Loop() {
		if _, err := decodeOutcome(m); err != nil {
			b.Fatal(err)
		}
	}
}

// The two round trips do the same work on the same kind of streams: publish turns
// of 32 calls, pull them, publish a 300 byte outcome each, await its PubAck, ack the
// call, consume the outcome, ack it; 256 calls in flight, 64 handlers.
const (
	benchTurn     = 32
	benchInFlight = 256
	benchHandlers = 64
)

func BenchmarkRoundTrip(b *testing.B) {
	b.Run("queue", benchmarkQueue)
	b.Run("raw", benchmarkRaw)
}

func benchConfig() Config { return Config{Partitions: 8, Logger: slog.New(slog.DiscardHandler)} }

// turns publishes n calls in turns, with at most benchInFlight unanswered; answered
// gives one token per answered call.
func turns(n int, answered <-chan struct{}, publish func(first, count int)) {
	inFlight := 0
	for sent := 0; sent < n; {
		for inFlight+benchTurn > benchInFlight {
			<-answered
			inFlight--
		}
		for len(answered) > 0 {
			<-answered
			inFlight--
		}
		count := min(benchTurn, n-sent)
		publish(sent, count)
		sent += count
		inFlight += count
	}
	for ; inFlight > 0; inFlight-- {
		<-answered
	}
}

func benchmarkQueue(b *testing.B) {
	i := install(b, benchConfig())
	executor := connect(b, Config{URL: i.server.URL(), Logger: slog.New(slog.DiscardHandler)})
	puller := bind(b, executor, "bench", "f")
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	work := make(chan *Taken, benchHandlers)
	output := json.RawMessage(`"` + strings.Repeat("y", 300) + `"`)
	for range benchHandlers {
		group.Go(func() {
			for taken := range work {
				if executor.Report(ctx, taken.Dispatch, call.Outcome{Kind: call.Success, Output: output}) == nil {
					_ = taken.Ack()
				}
			}
		})
	}
	group.Go(func() {
		defer close(work)
		for ctx.Err() == nil {
			_ = puller.Pull(ctx, benchHandlers, func(taken *Taken) { work <- taken })
		}
	})
	answered := make(chan struct{}, 2*benchInFlight)
	for partition := range i.cfg.Partitions {
		group.Go(func() {
			_ = i.dispatcher.Consume(ctx, partition, func(batch []call.Delivered) {
				for k := range batch {
					batch[k].Ack()
					answered <- struct{}{}
				}
			})
		})
	}
	// Nonces are the dispatcher's work, not the queue's.
	all := make([]call.Dispatch, b.N)
	for n := range all {
		all[n] = i.dispatch(fmt.Sprintf("sess_%d", n/benchTurn), "f", n, benchArguments)
	}
	b.ReportAllocs()
	b.ResetTimer()
	used := cpuTime()
	var publishing sync.WaitGroup
	turns(b.N, answered, func(first, count int) {
		publishing.Go(func() {
			for _, err := range i.dispatcher.Publish(ctx, all[first:first+count]) {
				if err != nil {
					b.Errorf("publish: %v", err)
				}
			}
		})
	})
	publishing.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
	b.ReportMetric(float64((cpuTime()-used).Microseconds())/float64(b.N), "cpu-µs/call")
	cancel()
	group.Wait()
}

func benchmarkRaw(b *testing.B) {
	i := install(b, benchConfig())
	ctx, cancel := context.WithCancel(context.Background())
	open := func() (*nats.Conn, jetstream.JetStream) {
		nc, err := nats.Connect(i.server.URL())
		require.NoError(b, err)
		b.Cleanup(nc.Close)
		js, err := jetstream.New(nc)
		require.NoError(b, err)
		return nc, js
	}
	_, requester := open()
	_, worker := open()
	calls, err := requester.CreateConsumer(ctx, "FN_CALLS", jetstream.ConsumerConfig{Durable: "raw", FilterSubjects: []string{"fn.call.f"}, AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 20000})
	require.NoError(b, err)
	payload, output := []byte(benchArguments), []byte(`"`+strings.Repeat("y", 300)+`"`)
	work := make(chan jetstream.Msg, benchHandlers)
	var group sync.WaitGroup
	for range benchHandlers {
		group.Go(func() {
			for m := range work {
				id := m.Headers().Get("Nats-Msg-Id")
				future, err := worker.PublishMsgAsync(&nats.Msg{Subject: m.Headers().Get("Reply"), Header: nats.Header{"Nats-Msg-Id": {id}}, Data: output})
				if err != nil {
					continue
				}
				select {
				case <-future.Ok():
					_ = m.Ack()
				case err := <-future.Err():
					b.Errorf("report: %v", err)
				}
			}
		})
	}
	consuming, err := calls.Consume(func(m jetstream.Msg) { work <- m }, jetstream.PullMaxMessages(256))
	require.NoError(b, err)
	answered := make(chan struct{}, 2*benchInFlight)
	var stops []jetstream.ConsumeContext
	for partition := range i.cfg.Partitions {
		results, err := requester.Consumer(ctx, "FN_RESULTS", resultDurable(partition))
		require.NoError(b, err)
		stop, err := results.Consume(func(m jetstream.Msg) { _ = m.Ack(); answered <- struct{}{} }, jetstream.PullMaxMessages(256))
		require.NoError(b, err)
		stops = append(stops, stop)
	}
	var seq atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	used := cpuTime()
	var publishing sync.WaitGroup
	turns(b.N, answered, func(first, count int) {
		publishing.Go(func() {
			futures := make([]jetstream.PubAckFuture, 0, count)
			for range count {
				n := seq.Add(1)
				future, err := requester.PublishMsgAsync(&nats.Msg{Subject: "fn.call.f", Data: payload, Header: nats.Header{
					"Nats-Msg-Id": {fmt.Sprintf("raw-%d-%d", b.N, n)}, "Reply": {fmt.Sprintf("fn.result.f.p%02d", first/benchTurn%i.cfg.Partitions)},
				}})
				if err != nil {
					b.Errorf("publish: %v", err)
					return
				}
				futures = append(futures, future)
			}
			for _, future := range futures {
				select {
				case <-future.Ok():
				case err := <-future.Err():
					b.Errorf("publish: %v", err)
				}
			}
		})
	})
	publishing.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
	b.ReportMetric(float64((cpuTime()-used).Microseconds())/float64(b.N), "cpu-µs/call")
	consuming.Stop()
	<-consuming.Closed()
	for _, stop := range stops {
		stop.Stop()
		<-stop.Closed()
	}
	close(work)
	group.Wait()
	cancel()
}
