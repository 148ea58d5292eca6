// Command go answers greet_go, one of the five languages of callfan demo --languages.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
	"github.com/callfan/callfan/pkg/queue"
)

type person struct {
	Name string `json:"name" jsonschema:"who is greeted"`
}

func greet(_ context.Context, in person) (string, error) {
	return fmt.Sprintf("Hello, %s, from Go %s.", in.Name, strings.TrimPrefix(runtime.Version(), "go")), nil
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ex, err := executor.New(executor.Config{
		Pool:  "greeters-go",
		Queue: queue.Config{URL: os.Getenv("NATS_URL"), Prefix: os.Getenv("CALLFAN_PREFIX")},
	})
	if err != nil {
		return err
	}
	err = executor.Handle(ex, "greet_go", greet, executor.WithEffects(call.EffectsNone), executor.WithDescription("Greet somebody from Go."))
	if err != nil {
		return err
	}
	return ex.Run(ctx)
}

func main() {
	if err := run(); err != nil {
		slog.New(slog.NewTextHandler(os.Stderr, nil)).Error("the executor failed", "error", err)
		os.Exit(1)
	}
}
