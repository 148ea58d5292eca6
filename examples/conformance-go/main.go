// Command conformance-go is the conformance executor of the Go SDK: it serves the
// functions of protocol/conformance.md.
//
//	callfan conformance --executor 'go run ./examples/conformance-go'
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/callfan/callfan/pkg/executor"
	"github.com/callfan/callfan/pkg/queue"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		slog.New(slog.NewTextHandler(os.Stderr, nil)).Error("the executor failed", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	concurrency, err := number("EXECUTOR_CONCURRENCY")
	if err != nil {
		return err
	}
	stopTimeout, err := number("EXECUTOR_STOP_TIMEOUT_MS")
	if err != nil {
		return err
	}
	events, err := os.OpenFile(os.Getenv("CONFORMANCE_LOG"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer events.Close()
	j := journal{events}
	ex, err := executor.New(executor.Config{
		Queue: queue.Config{
			URL: os.Getenv("NATS_URL"), User: os.Getenv("NATS_USER"), Password: os.Getenv("NATS_PASSWORD"),
			CredsFile: os.Getenv("NATS_CREDS"), NKeyFile: os.Getenv("NATS_NKEY"),
			CAFile: os.Getenv("NATS_CA"), CertFile: os.Getenv("NATS_CERT"), KeyFile: os.Getenv("NATS_KEY"),
			InboxPrefix: os.Getenv("CONFORMANCE_INBOX_PREFIX"),
		},
		Middleware: []executor.Middleware{j.around}, Pool: os.Getenv("CONFORMANCE_POOL"), Concurrency: concurrency, StopTimeout: time.Duration(stopTimeout) * time.Millisecond,
	})
	if err != nil {
		return err
	}
	if err := j.register(ex); err != nil {
		return err
	}
	return ex.Run(ctx)
}

func number(name string) (int, error) {
	n, err := strconv.Atoi(os.Getenv(name))
	if err != nil {
		return 0, fmt.Errorf("%s: %w; the conformance suite sets it", name, err)
	}
	return n, nil
}
