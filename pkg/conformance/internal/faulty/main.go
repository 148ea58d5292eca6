// Command faulty is an executor on the bare protocol, with faults on request, for the
// suite's own test: each fault has to be noticed, and without one it passes the core.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// fault says whether the executor is to be wrong in that way.
func fault(name string) bool { return os.Getenv("FAULT") == name }

// worker is the executor.
type worker struct {
	nc    *nats.Conn
	js    jetstream.JetStream
	pool  string
	lease time.Duration
	max   int64
	slots chan struct{}
	soft  context.Context
	once  func() error // registers the functions

	mu      sync.Mutex
	held    map[string]bool               // by hand-over
	cancels map[string]context.CancelFunc // by call
	nonces  map[string]string
	running sync.WaitGroup
}

func main() {
	soft, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(soft); err != nil {
		fmt.Fprintln(os.Stderr, "faulty:", err)
		os.Exit(1)
	}
	if fault("exit-status") {
		os.Exit(1)
	}
}

func run(soft context.Context) error {
	slots, err := strconv.Atoi(os.Getenv("EXECUTOR_CONCURRENCY"))
	if err != nil {
		return err
	}
	if fault("more-at-once") {
		slots++
	}
	w := &worker{
		pool: os.Getenv("CONFORMANCE_POOL"), slots: make(chan struct{}, slots), soft: soft,
		held: map[string]bool{}, cancels: map[string]context.CancelFunc{}, nonces: map[string]string{},
	}
	opts := []nats.Option{
		nats.MaxReconnects(-1), nats.RetryOnFailedConnect(!fault("no-server-no-executor") && !fault("no-creds") && !fault("no-nkey")), nats.ReconnectWait(250 * time.Millisecond),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if fault("no-reconnect") && err != nil {
				fmt.Fprintln(os.Stderr, "faulty: the connection is lost:", err)
				os.Exit(1)
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if !fault("silent-denial") && !fault("hides-refusals") {
				fmt.Fprintln(os.Stderr, "faulty: NATS:", err)
			}
		}),
	}
	proof, err := identity()
	if err != nil {
		return err
	}
	opts = append(opts, proof...)
	if prefix := os.Getenv("CONFORMANCE_INBOX_PREFIX"); prefix != "" {
		opts = append(opts, nats.CustomInboxPrefix(prefix))
	}
	if w.nc, err = nats.Connect(os.Getenv("NATS_URL"), opts...); err != nil {
		return err
	}
	defer w.nc.Close()
	if w.js, err = jetstream.New(w.nc); err != nil {
		return err
	}
	stream, consumer, err := w.register()
	if err != nil {
		return err
	}
	if err := w.listen(); err != nil {
		return err
	}
	w.pull(stream, consumer)
	if fault("stop-drops") {
		return nil
	}
	w.running.Wait()
	return w.nc.FlushTimeout(5 * time.Second)
}

// register declares the functions until a dispatcher has them, and then every so often.
func (w *worker) register() (stream, consumer string, err error) {
	var refresh time.Duration
	once := func() error {
		for _, f := range functions() {
			body, err := json.Marshal(map[string]any{
				"protocol": 1, "pool": w.pool, "function": f, "functions": names(),
				"executor": map[string]any{"id": "faulty-" + strconv.Itoa(os.Getpid()), "language": "bare"},
			})
			if err != nil {
				return err
			}
			reply, err := w.nc.Request("fn.register."+token(f.Name), body, 2*time.Second)
			if err != nil {
				return err
			}
			var answer struct {
				Binding struct {
					Stream   string `json:"calls_stream"`
					Consumer string `json:"consumer"`
					AckWait  int64  `json:"ack_wait_ms"`
					Max      int64  `json:"max_payload"`
					Refresh  int64  `json:"refresh_ms"`
				} `json:"binding"`
				Error *struct{ Code, Message string } `json:"error"`
			}
			if err := json.Unmarshal(reply.Data, &answer); err != nil {
				return err
			}
			if answer.Error != nil && answer.Error.Code == "unavailable" && !fault("takes-no-for-final") {
				return errors.New(answer.Error.Message)
			}
			if answer.Error != nil {
				fmt.Fprintln(os.Stderr, "faulty: refused:", answer.Error.Message)
				os.Exit(1)
			}
			b := answer.Binding
			stream, consumer, w.lease, w.max = b.Stream, b.Consumer, time.Duration(b.AckWait)*time.Millisecond, b.Max
			refresh = time.Duration(b.Refresh) * time.Millisecond
		}
		return nil
	}
	w.once = once
	for err = once(); err != nil && w.soft.Err() == nil; err = once() {
		if w.nc.IsConnected() && fault("no-dispatcher-no-executor") {
			return "", "", err
		}
		time.Sleep(250 * time.Millisecond) //nolint:forbidigo // nothing to wait on
	}
	if err == nil && !fault("registers-once") {
		go func() {
			for {
				time.Sleep(refresh) //nolint:forbidigo // ends with the process
				_ = once()
			}
		}()
	}
	return stream, consumer, err
}

// pull takes calls into free slots until the stop.
func (w *worker) pull(stream, name string) {
	for w.soft.Err() == nil {
		free := cap(w.slots) - len(w.slots)
		if free == 0 {
			pause(w.soft, 5*time.Millisecond)
			continue
		}
		if fault("greedy") {
			free += 10
		}
		ctx, cancel := context.WithTimeout(w.soft, 3*time.Second)
		consumer, err := w.js.Consumer(ctx, stream, name)
		cancel()
		if err != nil {
			if errors.Is(err, jetstream.ErrConsumerNotFound) && !fault("waits-for-the-consumer") {
				_ = w.once()
			}
			pause(w.soft, 250*time.Millisecond)
			continue
		}
		ctx, cancel = context.WithTimeout(w.soft, 10*time.Second)
		batch, err := consumer.Fetch(free, jetstream.FetchContext(ctx))
		if err != nil {
			cancel()
			pause(w.soft, 250*time.Millisecond)
			continue
		}
		for m := range batch.Messages() {
			w.slots <- struct{}{}
			w.running.Go(func() {
				defer func() { <-w.slots }()
				w.handle(m)
			})
		}
		cancel()
	}
}

// listen takes cancel notices.
func (w *worker) listen() error {
	for _, name := range names() {
		_, err := w.nc.Subscribe("fn.cancel."+token(name), func(m *nats.Msg) {
			var notice struct {
				Session string `json:"session_id"`
				Turn    string `json:"turn_id"`
				Call    string `json:"call_id"`
			}
			if json.Unmarshal(m.Data, &notice) != nil || fault("ignores-cancel") {
				return
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if cancel := w.cancels[notice.Session+"/"+notice.Turn+"/"+notice.Call]; cancel != nil {
				cancel()
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
