// Command first answers calls of get_customer.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/callfan/callfan/pkg/call"
	"github.com/callfan/callfan/pkg/executor"
	"github.com/callfan/callfan/pkg/queue"
)

type In struct {
	CustomerID string `json:"customer_id"`
}

type Out struct {
	Found bool   `json:"found"`
	Name  string `json:"name,omitempty"`
}

func getCustomer(ctx context.Context, in In) (Out, error) {
	if in.CustomerID != "123" {
		return Out{}, nil
	}
	return Out{Found: true, Name: "Example Customer"}, nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	ex, err := executor.New(executor.Config{
		Pool:  "customers",
		Queue: queue.Config{URL: os.Getenv("NATS_URL")}, // empty: nats://127.0.0.1:4222
	})
	if err != nil {
		return err
	}
	err = executor.Handle(ex, "get_customer", getCustomer,
		executor.WithDescription("Look up a customer by ID."), executor.WithEffects(call.EffectsNone))
	if err != nil {
		return err
	}
	return ex.Run(ctx)
}
