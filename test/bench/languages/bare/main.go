// Command bare is the limit that the executors are held against: a loop over plain nats.go that takes calls and
// answers each with the least that dispatchers accept. It extends no lease, looks nothing up, and ends no handler.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func main() {
	if err := run(); err != nil {
		slog.New(slog.NewTextHandler(os.Stderr, nil)).Error("the executor failed", "error", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	concurrency, err := strconv.Atoi(os.Getenv("BENCH_CONCURRENCY"))
	if err != nil {
		return err
	}
	conn, err := nats.Connect(os.Getenv("NATS_URL"))
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	consumer, err := register(ctx, conn, js)
	if err != nil {
		return err
	}
	work := make(chan jetstream.Msg, concurrency)
	for range concurrency {
		go func() {
			for m := range work {
				if err := answer(js, m); err != nil {
					slog.New(slog.NewTextHandler(os.Stderr, nil)).Error("no answer", "error", err)
				}
			}
		}()
	}
	taking, err := consumer.Consume(func(m jetstream.Msg) { work <- m }, jetstream.PullMaxMessages(concurrency))
	if err != nil {
		return err
	}
	<-ctx.Done()
	taking.Stop()
	return nil
}

// register declares the function and gives its pool's consumer.
func register(ctx context.Context, conn *nats.Conn, js jetstream.JetStream) (jetstream.Consumer, error) {
	const request = `{"protocol":1,"pool":"bench-bare","function":{"name":"noop_bare","policy":{"effects":"none"}},"functions":["noop_bare"],"executor":{"id":"bare","language":"bare"}}`
	m, err := conn.Request("fn.register.noop_bare", []byte(request), 10*time.Second)
	if err != nil {
		return nil, err
	}
	var reply struct {
		Binding struct {
			Stream   string `json:"calls_stream"`
			Consumer string `json:"consumer"`
		} `json:"binding"`
	}
	if err := json.Unmarshal(m.Data, &reply); err != nil {
		return nil, err
	}
	if reply.Binding.Consumer == "" {
		return nil, fmt.Errorf("refused: %s", m.Data)
	}
	return js.Consumer(ctx, reply.Binding.Stream, reply.Binding.Consumer)
}

// answer reports success, waits until that is stored, and acks the call. The ids are taken over as they are: the call's
// members up to its name are those of the outcome, too.
func answer(js jetstream.JetStream, m jetstream.Msg) error {
	from, to := bytes.Index(m.Data(), []byte(`"session_id"`)), bytes.Index(m.Data(), []byte(`,"name":`))
	if from < 0 || to < from {
		return fmt.Errorf("not a call: %s", m.Data())
	}
	nonce := m.Headers().Get("Fn-Nonce")
	body := make([]byte, 0, 512)
	body = append(append(body, '{'), m.Data()[from:to]...)
	body = append(append(append(body, `,"nonce":"`...), nonce...), `","success":true,"output":"ok"}`...)
	future, err := js.PublishMsgAsync(&nats.Msg{
		Subject: m.Headers().Get("Fn-Result-Subject"), Data: body, Header: nats.Header{"Nats-Msg-Id": {nonce + ".success"}},
	})
	if err != nil {
		return err
	}
	select {
	case <-future.Ok():
		return m.Ack()
	case err := <-future.Err():
		return err
	}
}
